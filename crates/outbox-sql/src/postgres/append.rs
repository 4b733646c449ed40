//! What the append's statement is bound to.

use outbox_core::{NewMessage, Timestamp};

use crate::headers;
use crate::table::{OutboxTable, PayloadType};

/// Messages as the arrays that [`append`](super::PostgresStatements::append) takes, in its order.
#[derive(Debug)]
#[non_exhaustive]
pub struct AppendArrays<'m> {
    /// Whose they are.
    pub tenants: Vec<&'m str>,
    /// What sort of message each is.
    pub kinds: Vec<&'m str>,
    /// Which thing each is about.
    pub subjects: Vec<&'m str>,
    /// Their content.
    pub payloads: PayloadArray<'m>,
    /// Their headers, as JSON; not bound where the table has no such column.
    pub headers: Option<Vec<Option<String>>>,
    /// When they happened, in microseconds since 1970.
    pub micros: Vec<Option<i64>>,
}

/// The contents of messages, as the column holds them.
#[derive(Debug)]
pub enum PayloadArray<'m> {
    /// An array of `bytea`.
    Bytes(Vec<Option<&'m [u8]>>),
    /// An array of `text`.
    Text(Vec<Option<&'m str>>),
}

impl<'m> AppendArrays<'m> {
    /// The arrays of these messages, which were [checked](crate::append::check) for the table.
    pub fn new(messages: &'m [NewMessage], table: &OutboxTable) -> Self {
        let texts = |text: fn(&'m NewMessage) -> &'m str| messages.iter().map(text).collect();
        let payloads = messages.iter().map(|message| message.payload.as_ref());
        Self {
            tenants: texts(|message| message.tenant_id.as_str()),
            kinds: texts(|message| &message.kind),
            subjects: texts(|message| &message.subject_id),
            payloads: if table.payload_type() == PayloadType::Bytes {
                PayloadArray::Bytes(payloads.map(|payload| payload.map(AsRef::as_ref)).collect())
            } else {
                // Checked: a payload for a column of text is UTF-8.
                let text = payloads.map(|payload| payload.and_then(|payload| payload.as_str().ok()));
                PayloadArray::Text(text.collect())
            },
            headers: table
                .columns()
                .headers
                .as_ref()
                .map(|_| messages.iter().map(|message| headers::to_json(&message.headers)).collect()),
            micros: messages.iter().map(|message| message.occurred_at.map(Timestamp::as_micros)).collect(),
        }
    }
}
