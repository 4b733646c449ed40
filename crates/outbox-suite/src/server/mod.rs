//! What the stores of every server are tested with alike, and what their own tests share.

mod database;
mod driver;
pub(crate) mod faults;
mod list;
mod pool;
mod stage;

use outbox_core::{ClaimOutcome, ClaimRequest, Claimed, NewMessage, Store, StoreError, TenantId};

pub use self::database::{PrivateServer, ServerDatabase};
pub use self::driver::{Driver, Open, ServerDriver};
pub use self::pool::{Cut, Pool, StorePool};
pub use self::stage::{Entry, Journal, Replica, Stage, assert_pool_is_whole, quick, shrinks_to, soon};
pub(crate) use self::stage::{Gate, recorded, started};

pub(crate) use crate::{BOUND, SOON};

/// A tenant.
pub fn tenant(id: &str) -> TenantId {
    TenantId::new(id).unwrap()
}

/// A tenant's message.
pub fn message(tenant_id: &str, payload: &str) -> NewMessage {
    NewMessage::new(tenant(tenant_id), "kind", "subject", payload)
}

/// A claim of a tenant's oldest 100 messages.
pub fn request(tenant_id: &str) -> ClaimRequest {
    ClaimRequest::new(tenant(tenant_id), 100.try_into().unwrap())
}

/// Claims a tenant's oldest 100 messages as soon as nobody holds it.
pub async fn claim(store: &dyn Store, tenant_id: &str) -> Claimed {
    crate::claim(store, &request(tenant_id)).await
}

/// Whether a claim on a tenant says that another holds it.
pub async fn is_held(store: &dyn Store, tenant_id: &str) -> bool {
    matches!(store.claim(&request(tenant_id)).await.unwrap(), ClaimOutcome::Held)
}

/// The error of a claim that must fail.
pub async fn refused(store: &dyn Store, tenant_id: &str) -> StoreError {
    store.claim(&request(tenant_id)).await.map(|outcome| panic!("{outcome:?}")).unwrap_err()
}

/// The ids that a claim handed out.
pub fn ids(claimed: &Claimed) -> Vec<i64> {
    claimed.messages.iter().map(|message| message.id.get()).collect()
}
