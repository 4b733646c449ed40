//! One look for work.

use std::sync::Arc;

use super::shared::Shared;
use super::store_call::call;
use crate::{Operation, Outcome, ProbeRequest, Probed, StoreError, StoreOperation};

/// One probe for all tenants of the relay.
pub(super) async fn probe(shared: Arc<Shared>) -> Result<Probed, StoreError> {
    let timeout = shared.config.store_timeout;
    let request = ProbeRequest::new(shared.config.tenants.clone()).with_timeout(timeout);
    let watch = shared.observers.start(&Operation::Probe { source: shared.store.source() });
    let store = Arc::clone(&shared.store);
    let answer =
        call(&shared, StoreOperation::Probe, timeout, async move { store.probe(&request).await }).await;
    watch.end(&match &answer {
        Ok(found) => Outcome::Probed(&found.oldest),
        Err(error) => Outcome::Failed(error),
    });
    answer
}
