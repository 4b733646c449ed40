//! What a probe asks, and what it makes of the answer.

use outbox_core::{ProbeRequest, Probed, StoreError, StoreOperation, Tenants};

use super::driver::MySqlDriver;
use super::store::MySqlStore;
use super::{Walk, WalkedTenant, json_tenants};
use crate::deadline::within;
use crate::driver::{Answer, Asking as _, Bind, Failed, Question, Session as _};
use crate::row::Cell;

const PROBE: StoreOperation = StoreOperation::Probe;

impl<D: MySqlDriver> MySqlStore<D> {
    /// Looks for each tenant's oldest pending message.
    ///
    /// # Errors
    /// What a statement answers; a permanent error where server or session do not keep a claim's promise.
    ///
    /// # Cancellation
    /// The session is dropped with the future.
    pub async fn probe(&self, request: &ProbeRequest) -> Result<Probed, StoreError> {
        within(request.timeout, PROBE, async {
            self.know_server(PROBE).await?;
            let found = match &request.tenants {
                Tenants::Named(tenants) => self.named(&json_tenants(tenants.iter())).await,
                Tenants::Discovered => self.discovered().await,
                other => {
                    let unknown = format!("this store does not know how to look for tenants by {other:?}");
                    return Err(StoreError::permanent(PROBE, unknown));
                }
            };
            found.map_err(|error| self.shared.failed(PROBE, error))?.found()
        })
        .await
        .inspect_err(|_| self.shared.server.forget())
    }

    async fn named(&self, tenants: &str) -> Result<Walk, Failed<D>> {
        let tenants = [Bind::Text(tenants)];
        let mut session = self.shared.driver.acquire().await?;
        let rows = session.ask(Question::named(&self.shared.statements.probe_named, &tenants)).await?;
        let tenants: Cell<_> = rows.into_iter().map(walked).collect();
        let walk = Walk::named(tenants.map_err(D::Session::unreadable)?);
        if walk.takes_writes() {
            session.release();
        }
        Ok(walk)
    }

    async fn discovered(&self) -> Result<Walk, Failed<D>> {
        let mut session = self.shared.driver.acquire().await?;
        let mut walk = Walk::new();
        loop {
            let (after, entries) = walk.step();
            let binds = [Bind::Bytes(after), Bind::Integer(entries)];
            let rows = session.ask(Question::named(&self.shared.statements.probe_next, &binds)).await?;
            let tenants: Cell<_> = rows.into_iter().map(walked).collect();
            if !walk.take(tenants.map_err(D::Session::unreadable)?) {
                break;
            }
        }
        if walk.takes_writes() {
            session.release();
        }
        Ok(walk)
    }
}

/// A row of the answer.
fn walked(mut row: Answer) -> Cell<WalkedTenant> {
    Ok(WalkedTenant {
        tenant: row.take(0)?,
        id: row.take(1)?,
        entries: row.take(2)?,
        micros: row.take(3)?,
        now: row.take(4)?,
    })
}
