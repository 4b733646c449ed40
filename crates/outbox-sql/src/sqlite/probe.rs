//! What a probe asks, and what it makes of the answer.

use outbox_core::{
    MessageId, OldestPending, ProbeRequest, Probed, StoreError, StoreOperation, TenantId, Tenants, Timestamp,
};

use super::driver::SqliteDriver;
use super::json_tenants;
use super::store::{Shared, SqliteStore, refusal};
use crate::deadline::within;
use crate::driver::{Answer, Bind, Question};

const PROBE: StoreOperation = StoreOperation::Probe;

impl<D: SqliteDriver> SqliteStore<D> {
    /// Looks for each tenant's oldest pending message.
    ///
    /// # Errors
    /// What a statement answers.
    pub async fn probe(&self, request: &ProbeRequest) -> Result<Probed, StoreError> {
        let found = within(request.timeout, PROBE, self.shared.find_oldest(&request.tenants)).await?;
        Ok(found.into())
    }
}

impl<D: SqliteDriver> Shared<D> {
    async fn find_oldest(&self, tenants: &Tenants) -> Result<Vec<OldestPending>, StoreError> {
        let names = match tenants {
            Tenants::Named(names) => Some(json_tenants(names.iter())),
            Tenants::Discovered => None,
            other => {
                let unknown = format!("this store does not know how to look for tenants by {other:?}");
                return Err(StoreError::permanent(PROBE, unknown));
            }
        };
        self.place(PROBE).await?;
        let binds: Vec<Bind<'_>> = names.iter().map(|names| Bind::Text(names)).collect();
        let statement = if names.is_some() { &self.statements.probe_named } else { &self.statements.probe };
        let rows = self.driver.ask(self.reading(), Question::named(statement, &binds)).await;
        let rows = rows.map_err(|refused| refusal::<D>(PROBE, refused))?;
        self.verify_place(PROBE)?;
        self.verify_writable(PROBE)?;
        Ok(rows.into_iter().filter_map(oldest).collect())
    }
}

/// A row of the answer; `None` if its tenant is one that nobody can ask for.
fn oldest(mut row: Answer) -> Option<OldestPending> {
    let tenant = TenantId::new(row.take::<String>(0).ok()?).ok()?;
    let id = MessageId::new(row.take(1).ok()?);
    let occurred_at = row.take(2).map(Timestamp::from_micros);
    let now = row.take(3).map(Timestamp::from_micros);
    Some(match (occurred_at, now) {
        (Ok(occurred_at), Ok(now)) => OldestPending::new(tenant, id, occurred_at, occurred_at.until(now)),
        _ => OldestPending::unreadable(tenant, id),
    })
}
