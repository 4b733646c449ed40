//! What a probe asks, and what it makes of the answer.

use std::sync::Arc;

use outbox_core::{MessageId, OldestPending, ProbeRequest, StoreError, StoreOperation, TenantId};

use super::PostgresStatements;
use super::driver::PostgresDriver;
use super::encoding::ENCODING;
use super::store::PostgresStore;
use super::watermark::{ProbeStart, Watermarks};
use crate::deadline::within;
use crate::driver::{Answer, Asking, Bind, Failed, Question, Session as _};
use crate::named::{Look, Named};
use crate::row::{Cell, Unreadable, oldest_of};

const PROBE: StoreOperation = StoreOperation::Probe;

impl<D: PostgresDriver> PostgresStore<D> {
    /// Looks for each tenant's oldest pending message.
    ///
    /// # Errors
    /// What a statement answers; a permanent error for a database that takes any bytes for text.
    ///
    /// # Cancellation
    /// The session is dropped with the future.
    pub async fn probe(&self, request: &ProbeRequest) -> Result<Vec<OldestPending>, StoreError> {
        let shared = &self.shared;
        let probing = Probing::new(request, shared.watermarks.as_deref())?;
        let found = within(request.timeout, PROBE, async {
            self.know_encoding().await?;
            self.find(&probing).await.map_err(|error| shared.failed(PROBE, error))
        });
        let found = found.await.inspect_err(|_| shared.forget_watermarks())?;
        Ok(probing.answer(found, &shared.named))
    }

    async fn find(&self, probing: &Probing<'_>) -> Result<Vec<OldestPending>, Failed<D>> {
        let (statement, tenants, ids) = probing.asks(&self.shared.statements);
        let binds = tenants.as_deref().map(Bind::Texts).into_iter().chain(ids.map(Bind::Integers));
        let binds: Vec<Bind<'_>> = binds.collect();
        let mut session = self.begin_look().await?;
        let rows = session.ask(Question::named(statement, &binds)).await?;
        self.end_look(session).await?;
        rows.into_iter().map(oldest).collect::<Cell<_>>().map_err(D::Session::unreadable)
    }

    /// Refuses a database that takes any bytes for text; asks once.
    async fn know_encoding(&self) -> Result<(), StoreError> {
        let shared = &self.shared;
        if shared.encoding.is_known() {
            return Ok(());
        }
        let encoding = async {
            let mut session = shared.driver.acquire().await?;
            let mut encoding = session.ask_one(Question::plain(ENCODING)).await?;
            session.release();
            encoding.take(0).map_err(D::Session::unreadable)
        };
        let encoding: String = encoding.await.map_err(|error| shared.failed(PROBE, error))?;
        shared.encoding.learn(&encoding, PROBE)
    }
}

/// A row of the answer.
fn oldest(mut row: Answer) -> Cell<OldestPending> {
    let tenant = TenantId::new(row.take::<String>(0)?).map_err(|why| Unreadable::new(why.to_string()))?;
    Ok(oldest_of(tenant, MessageId::new(row.take(1)?), row.take(2)?, row.take(3)?))
}

/// A probe, from the request to the answer.
#[derive(Debug)]
struct Probing<'a> {
    look: Look<'a>,
    start: Option<(&'a Watermarks, ProbeStart)>,
}

type Asks<'q> = (&'q Arc<str>, Option<Vec<&'q str>>, Option<&'q [i64]>);

impl<'a> Probing<'a> {
    /// Begins. To be called before anything is sent.
    fn new(request: &'a ProbeRequest, watermarks: Option<&'a Watermarks>) -> Result<Self, StoreError> {
        let look = Look::of(&request.tenants)?;
        let start = watermarks.map(|watermarks| (watermarks, watermarks.start_probe(look.one_by_one)));
        Ok(Self { look, start })
    }

    /// What is to be sent: the statement, and the tenants and ids of those of its parameters that it has.
    fn asks<'q>(&'q self, statements: &'q PostgresStatements) -> Asks<'q> {
        let start = self.start.as_ref().map(|(_, start)| start).filter(|start| start.passes_over());
        match (start, self.look.one_by_one) {
            (Some(start), one_by_one) => {
                let PostgresStatements { watermark, .. } = statements;
                let statement = if one_by_one.is_some() { &watermark.probe_named } else { &watermark.probe };
                (statement, Some(texts(&start.tenants)), Some(&start.ids))
            }
            (None, Some(tenants)) => (&statements.probe_named, Some(texts(tenants)), None),
            (None, None) => (&statements.probe, None, None),
        }
    }

    /// Takes in what was found, and answers what was asked for.
    fn answer(self, mut found: Vec<OldestPending>, named: &Named) -> Vec<OldestPending> {
        if let Some((watermarks, start)) = &self.start {
            watermarks.probed(start, &found);
        }
        if let Some(tenants) = self.look.kept {
            named.keep(tenants, &mut found);
        }
        found
    }
}

fn texts(tenants: &[TenantId]) -> Vec<&str> {
    tenants.iter().map(TenantId::as_str).collect()
}
