//! A tenant that is locked, in one transaction to its end: only that can be read from, and marks.

mod rows;

use std::sync::Arc;

use outbox_core::{ClaimRequest, MessageId, StoreError, StoreOperation};

pub(super) use self::rows::has_row;
use self::rows::{Lock, lock, no_sentinel};
use super::driver::{MySqlDriver, MySqlSession as _};
use super::store::Shared;
use super::{COMMIT, ROLLBACK, VERIFY, begin_claim};
use crate::claim::{Holder, Marked};
use crate::driver::{Asking as _, Bind, Driver, Failed, Question, Session};
use crate::settlement::Fate;

/// A session whose transaction has a tenant. What it reads is read after the lock: its snapshot sees what the last
/// holder marked.
#[derive(Debug)]
pub(super) struct Locked<D: Driver> {
    shared: Arc<Shared<D>>,
    session: D::Session,
}

impl<D: MySqlDriver> Locked<D> {
    /// Begins a transaction and locks the tenant in it; `None` if another has it.
    ///
    /// # Errors
    /// What a statement fails with; a permanent error if the [sentinel](super::SENTINEL) is missing.
    ///
    /// # Cancellation
    /// The session is dropped with the future.
    pub(super) async fn lock(
        shared: &Arc<Shared<D>>,
        request: &ClaimRequest,
    ) -> Result<Option<Self>, StoreError> {
        let failed = |error| shared.failed(StoreOperation::Claim, error);
        let mut session = shared.driver.acquire().await.map_err(failed)?;
        let begin = begin_claim(&shared.statements, request.timeout, shared.max_silence);
        let locked = lock(&mut session, &shared.statements, &begin, request.tenant_id.as_str()).await;
        match locked.map_err(failed)? {
            Lock::Taken => Ok(Some(Self { shared: Arc::clone(shared), session })),
            Lock::Held => {
                session.run(ROLLBACK).await.map_err(failed)?;
                session.release();
                Ok(None)
            }
            Lock::Conflict => Ok(None),
            Lock::NoSentinel => Err(no_sentinel(&shared.name)),
        }
    }

    /// Reads the tenant's messages.
    ///
    /// # Errors
    /// What the statement fails with.
    pub(super) async fn read(
        &mut self,
        request: &ClaimRequest,
    ) -> Result<Vec<<D::Session as Session>::Row>, StoreError> {
        let (statement, excluded) = self.shared.statements.claim_without(&request.excluded_subjects);
        let limits = [i64::from(request.limit.get()), i64::try_from(request.max_bytes).unwrap_or(i64::MAX)];
        let binds: Vec<Bind<'_>> = [Bind::Text(request.tenant_id.as_str())]
            .into_iter()
            .chain(excluded.into_iter().map(Bind::Text))
            .chain(limits.map(Bind::Integer))
            .collect();
        let rows = self.session.read(Question::named(&statement, &binds)).await;
        rows.map_err(|error| self.failed(StoreOperation::Claim, error))
    }

    fn failed(&self, operation: StoreOperation, error: Failed<D>) -> StoreError {
        self.shared.failed(operation, error)
    }
}

impl<D: MySqlDriver> Holder for Locked<D> {
    async fn verify(&mut self) -> Result<(), StoreError> {
        let heard = self.session.run(VERIFY).await;
        heard.map_err(|error| self.failed(StoreOperation::Verify, error))
    }

    async fn mark(mut self, published: &[MessageId]) -> Result<Marked, StoreError> {
        let ids: Vec<i64> = published.iter().map(|id| id.get()).collect();
        let binds = [Bind::Integers(&ids)];
        let rows = self.session.change(Question::named(&self.shared.statements.mark, &binds)).await;
        let rows = rows.map_err(|error| self.failed(StoreOperation::Settle, error))?;
        // The settings come first in it: an error says that nothing is marked, or that nobody knows.
        if let Err(error) = self.session.run(COMMIT).await {
            let fate = Fate::Unknown(self.failed(StoreOperation::Settle, error));
            return Ok(Marked { rows, fate });
        }
        self.session.release();
        Ok(Marked { rows, fate: Fate::Committed })
    }

    async fn roll_back(mut self) -> Result<(), StoreError> {
        let rolled_back = self.session.run(ROLLBACK).await;
        rolled_back.map_err(|error| self.failed(StoreOperation::Settle, error))?;
        self.session.release();
        Ok(())
    }
}
