//! A publisher that waits inside one publish until it is let go.

use std::sync::{Arc, Mutex};

use outbox_core::{Accepted, Delivery, MessageId, PublishError, Publisher, async_trait};
use tokio::sync::watch;

use super::soon;

/// Accepts everything. The first publish of one message waits inside until the gate is opened; later publishes of
/// that message, by whichever relay, do not.
#[derive(Clone)]
pub(crate) struct Gate {
    at: Arc<Mutex<Option<MessageId>>>,
    entered: Arc<watch::Sender<bool>>,
    open: Arc<watch::Sender<bool>>,
}

impl Gate {
    /// A gate at this message.
    pub(crate) fn at(message: MessageId) -> Self {
        let at = Arc::new(Mutex::new(Some(message)));
        Self { at, entered: Arc::new(watch::Sender::new(false)), open: Arc::new(watch::Sender::new(false)) }
    }

    /// Waits until a publish waits inside.
    pub(crate) async fn entered(&self) {
        let mut entered = self.entered.subscribe();
        soon("the message is being published", entered.wait_for(|entered| *entered)).await.unwrap();
    }

    /// Lets it go.
    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }
}

#[async_trait]
impl Publisher for Gate {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        let waits = self.at.lock().unwrap().take_if(|at| *at == delivery.message.id).is_some();
        if waits {
            self.entered.send_replace(true);
            let _ = self.open.subscribe().wait_for(|open| *open).await;
        }
        Ok(Accepted)
    }
}
