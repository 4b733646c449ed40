//! What a probe asks, and what it makes of the answer.

use std::sync::Arc;

use outbox_core::{MessageId, OldestPending, ProbeRequest, Probed, StoreError, StoreOperation, TenantId};

use super::PostgresStatements;
use super::driver::PostgresDriver;
use super::encoding::ENCODING;
use super::server::Server;
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
    /// What a statement answers; an error for a server that takes no writes, and a permanent one for a database that takes
    /// any bytes for text.
    ///
    /// # Cancellation
    /// The session is dropped with the future.
    pub async fn probe(&self, request: &ProbeRequest) -> Result<Probed, StoreError> {
        let shared = &self.shared;
        let probing = Probing::new(request, shared.watermarks.as_deref())?;
        let found = within(request.timeout, PROBE, async {
            self.know_encoding().await?;
            let found = self.find(&probing).await.map_err(|error| shared.failed(PROBE, error))?;
            if found.server.takes_writes() { Ok(found) } else { Err(Server::refused(PROBE)) }
        });
        let Found { oldest, server } = found.await.inspect_err(|_| shared.forget_watermarks())?;
        let mut probed = Probed::from(probing.answer(oldest, &shared.named));
        if shared.server.is_another(&server) {
            shared.forget_server();
        }
        probed.unfit = server.unfit();
        probed.server = Some(server.identity);
        Ok(probed)
    }

    async fn find(&self, probing: &Probing<'_>) -> Result<Found, Failed<D>> {
        let (statement, tenants, ids) = probing.asks(&self.shared.statements);
        let binds = tenants.as_deref().map(Bind::Texts).into_iter().chain(ids.map(Bind::Integers));
        let binds: Vec<Bind<'_>> = binds.collect();
        let mut session = self.begin_look().await?;
        let rows = session.ask(Question::named(statement, &binds)).await?;
        let found = Found::of(rows).map_err(D::Session::unreadable)?;
        // A session of a standby is closed: the pool has to make one of the server that took over.
        if found.server.takes_writes() {
            self.end_look(session).await?;
        }
        Ok(found)
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

/// What the rows of a probe say.
struct Found {
    oldest: Vec<OldestPending>,
    server: Server,
}

impl Found {
    fn of(rows: Vec<Answer>) -> Cell<Self> {
        let (mut oldest, mut server) = (Vec::with_capacity(rows.len()), None);
        for mut row in rows {
            let (name, id, micros) = (row.take::<String>(0)?, row.take::<Option<i64>>(1)?, row.take(2)?);
            let Some(id) = id else {
                server = Some(Server::of(name, micros)?);
                continue;
            };
            let tenant = TenantId::new(name).map_err(|why| Unreadable::new(why.to_string()))?;
            oldest.push(oldest_of(tenant, MessageId::new(id), micros, row.take(3)?));
        }
        let server = server.ok_or(Unreadable::new("do not say which server answers"))?;
        Ok(Self { oldest, server })
    }
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
