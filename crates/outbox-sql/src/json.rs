//! What is handed to a statement as one parameter: JSON.

use outbox_core::MessageId;
use serde_json::Value;

/// Ids as the JSON array that the statement `mark` takes.
pub fn json_ids<'a>(ids: impl IntoIterator<Item = &'a MessageId>) -> String {
    ids.into_iter().map(|id| id.get()).collect::<Value>().to_string()
}
