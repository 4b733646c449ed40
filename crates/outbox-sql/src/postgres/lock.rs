//! A tenant that is locked, in one transaction to its end: only that can be read from, and marks.

use std::collections::BTreeSet;
use std::sync::Arc;

use outbox_core::{ClaimRequest, MessageId, StoreError, StoreOperation};

use super::driver::{PostgresDriver, PostgresSession};
use super::error::relay_rights;
use super::store::Shared;
use super::watermark::{Remembering, SafeAnswer, Suitability, Watermarks};
use super::{BEGIN_CLAIM, SERVER_TRAITS, ServerTraits, claim_settings};
use crate::claim::{Holder, Marked};
use crate::driver::{Answer, Asking, Bind, Driver, Failed, Question, Session};
use crate::settlement::Fate;

const CLAIM: StoreOperation = StoreOperation::Claim;

/// A session whose transaction has a tenant. What it reads is read after the lock: its snapshot sees what the last
/// holder marked.
#[derive(Debug)]
pub(super) struct Locked<D: Driver> {
    shared: Arc<Shared<D>>,
    session: D::Session,
}

type Rows<D> = Vec<<<D as Driver>::Session as Session>::Row>;

impl<D: PostgresDriver> Locked<D> {
    /// Begins a transaction and locks the tenant in it; `None` if another has it.
    ///
    /// # Errors
    /// What a statement fails with; a permanent error if rows could be read and not settled.
    ///
    /// # Cancellation
    /// The session is dropped with the future.
    pub(super) async fn lock(
        shared: &Arc<Shared<D>>,
        request: &ClaimRequest,
    ) -> Result<Option<Self>, StoreError> {
        let failed = |error| shared.failed(CLAIM, error);
        let mut session = shared.driver.acquire().await.map_err(failed)?;
        let mut answer = begin_and_lock(shared, &mut session, request).await.map_err(failed)?;
        let unreadable = |why| failed(D::Session::unreadable(why));
        let is_ours: bool = answer.take(0).map_err(unreadable)?;
        if !is_ours {
            session.run("ROLLBACK").await.map_err(failed)?;
            session.release();
            return Ok(None);
        }
        let may_settle: Option<bool> = answer.take(1).map_err(unreadable)?;
        if may_settle != Some(true) {
            let (table, rights) = (&shared.name, relay_rights(shared.settling));
            let refused = format!("{table} could be read, and nothing settled: grant {rights} on {table}");
            return Err(StoreError::permanent(CLAIM, refused));
        }
        Ok(Some(Self { shared: Arc::clone(shared), session }))
    }

    /// Reads the tenant's messages, from its watermark on if there is one. Answers beside them who is to hear how the claim
    /// ends, where there is a watermark to raise.
    ///
    /// # Errors
    /// What a statement fails with; a permanent error if the table is one that a watermark cannot serve.
    pub(super) async fn read(
        &mut self,
        request: &ClaimRequest,
    ) -> Result<(Rows<D>, Option<Remembering>), StoreError> {
        let shared = Arc::clone(&self.shared);
        let Some(watermarks) = &shared.watermarks else {
            return Ok((self.read_from(None, request).await?, None));
        };
        self.ask_for_safe_id(watermarks).await?;
        loop {
            let start = watermarks.start(&request.tenant_id);
            let rows = self.read_from(start.from, request).await?;
            if !watermarks.read(request, &start, rows.first().and_then(D::Session::id)) {
                return Ok((rows, Some(Remembering::new(watermarks, request, start))));
            }
        }
    }

    async fn read_from(&mut self, from: Option<i64>, request: &ClaimRequest) -> Result<Rows<D>, StoreError> {
        let excluded: Vec<&str> = request.excluded_subjects.iter().map(String::as_str).collect();
        let statement = self.shared.statements.claim_from(from, !excluded.is_empty());
        let mut binds = vec![
            Bind::Text(request.tenant_id.as_str()),
            Bind::Integer(i64::from(request.limit.get())),
            Bind::Integer(i64::try_from(request.max_bytes).unwrap_or(i64::MAX)),
        ];
        if !excluded.is_empty() {
            binds.push(Bind::Texts(&excluded));
        }
        binds.extend(from.map(Bind::Integer));
        let rows = self.session.read(Question::named(statement, &binds)).await;
        rows.map_err(|error| self.failed(CLAIM, error))
    }

    /// Asks for the safe id where it is time to. Both statements run before the claim reads, one after the other.
    async fn ask_for_safe_id(&mut self, watermarks: &Watermarks) -> Result<(), StoreError> {
        let Some(asking) = watermarks.asks() else { return Ok(()) };
        let (facts, writers) = self.ask_writers().await.map_err(|error| self.failed(CLAIM, error))?;
        if let Some(objection) = facts.objection_of_claim(&self.shared.name) {
            return Err(StoreError::permanent(CLAIM, objection));
        }
        watermarks.told(&asking, SafeAnswer { last: facts.last, writers });
        Ok(())
    }

    async fn ask_writers(&mut self) -> Result<(Suitability, BTreeSet<String>), Failed<D>> {
        let statements = &self.shared.statements.watermark;
        let facts = self.session.ask_one(Question::plain(Arc::clone(&statements.facts))).await?;
        let facts = Suitability::of(facts).map_err(D::Session::unreadable)?;
        let writers = self.session.ask(Question::plain(Arc::clone(&statements.writers))).await?;
        let writers = writers.into_iter().map(|mut writer| writer.take(0));
        Ok((facts, writers.collect::<Result<_, _>>().map_err(D::Session::unreadable)?))
    }

    fn failed(&self, operation: StoreOperation, error: Failed<D>) -> StoreError {
        self.shared.failed(operation, error)
    }
}

/// Begins the transaction, with its settings, and tries to lock the tenant.
async fn begin_and_lock<D: PostgresDriver>(
    shared: &Shared<D>,
    session: &mut D::Session,
    request: &ClaimRequest,
) -> Result<Answer, Failed<D>> {
    let settings = |traits| claim_settings(traits, request.timeout, shared.durability);
    let (statements, tenant) = (&shared.statements, &request.tenant_id);
    if let Some(traits) = shared.traits.get() {
        let begin = format!("{BEGIN_CLAIM}; {}", settings(traits));
        // An error is perhaps another server's than the one that was asked.
        return session.lock(begin, statements, tenant).await.inspect_err(|_| shared.traits.forget());
    }
    session.run(BEGIN_CLAIM).await?;
    let traits = session.ask_one(Question::unnamed(SERVER_TRAITS, &[])).await?;
    let traits = ServerTraits::of(traits).map_err(D::Session::unreadable)?;
    let answer = session.lock(settings(traits), statements, tenant).await?;
    shared.traits.remember(traits);
    Ok(answer)
}

impl<D: PostgresDriver> Holder for Locked<D> {
    async fn verify(&mut self) -> Result<(), StoreError> {
        let heard = self.session.run("SELECT 1").await;
        heard.map_err(|error| self.failed(StoreOperation::Verify, error))
    }

    async fn mark(mut self, published: &[MessageId]) -> Result<Marked, StoreError> {
        let ids: Vec<i64> = published.iter().map(|id| id.get()).collect();
        let binds = [Bind::Integers(&ids)];
        let mark = self.session.mark(Question::named(&self.shared.statements.mark, &binds)).await;
        let rows = mark.map_err(|error| self.failed(StoreOperation::Settle, error))?;
        let fate = match self.session.commit().await {
            Ok(true) => Fate::Committed,
            Ok(false) => Fate::RolledBack,
            Err(error) => {
                let fate = Fate::Unknown(self.failed(StoreOperation::Settle, error));
                return Ok(Marked { rows, fate });
            }
        };
        self.session.release();
        Ok(Marked { rows, fate })
    }

    async fn roll_back(mut self) -> Result<(), StoreError> {
        let rolled_back = self.session.run("ROLLBACK").await;
        rolled_back.map_err(|error| self.failed(StoreOperation::Settle, error))?;
        self.session.release();
        Ok(())
    }
}
