//! The publisher of each replica: it writes into the journal, which stands for a broker.

use std::path::Path;
use std::time::Duration;

use outbox_core::{Accepted, Delivery, PublishError, Publisher, async_trait};

use super::control::Control;
use super::journal::{Entry, Journal};

/// How long a publisher takes its time when it is told to.
const SLOW: Duration = Duration::from_millis(250);

/// Publishes into the journal.
#[derive(Debug)]
pub(super) struct Shipping {
    name: String,
    journal: Journal,
    control: Control,
}

impl Shipping {
    pub(super) fn new(replica: &str, folder: &Path) -> Self {
        Self { name: replica.to_owned(), journal: Journal::new(folder), control: Control::new(folder) }
    }
}

#[async_trait]
impl Publisher for Shipping {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        let message = delivery.message;
        if self.control.is_refused(&message.subject_id) {
            return Err(PublishError::refused(format!("{} is not wanted now", message.subject_id)));
        }
        let (journal, entry) = (self.journal.clone(), Entry::new(&self.name, message));
        tokio::task::spawn_blocking(move || journal.accept(&entry))
            .await
            .map_err(|error| PublishError::unavailable("the journal's task died").with_source(error))?
            .map_err(|error| PublishError::unavailable(format!("the journal: {error:#}")))?;
        if self.control.is_slow(message.tenant_id.as_str()) {
            tokio::time::sleep(SLOW).await;
        }
        Ok(Accepted)
    }
}
