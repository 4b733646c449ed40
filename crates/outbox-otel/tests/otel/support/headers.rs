//! A publisher that keeps the headers it got.

use std::sync::{Arc, Mutex};

use outbox_core::{Accepted, Delivery, Headers, PublishError, Publisher, async_trait};

/// Accepts every message and keeps its headers. A clone keeps them in the same place.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeaderRecorder(Arc<Mutex<Vec<Headers>>>);

impl HeaderRecorder {
    pub(crate) fn headers(&self) -> Vec<Headers> {
        self.0.lock().expect("nobody panics with it").clone()
    }
}

#[async_trait]
impl Publisher for HeaderRecorder {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        self.0.lock().expect("nobody panics with it").push(delivery.headers.clone());
        Ok(Accepted)
    }
}
