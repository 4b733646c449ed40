//! Appending: several rows in one statement, whose ids follow from the first.

use outbox_core::{MessageId, NewMessage, Payload, Timestamp};

use super::{NOW, Words};
use crate::table::{OutboxTable, TimeType};

/// How many rows one statement appends at most.
const ROWS: usize = 500;
/// How many payload bytes it has when no further row is added to it: far from what a server takes in one packet
/// (`max_allowed_packet`, 16 MB or more by default), which a single large message may need for itself.
const BYTES: usize = 1024 * 1024;

/// Cuts messages into what one statement appends each.
pub fn chunks(messages: &[NewMessage]) -> impl Iterator<Item = &[NewMessage]> {
    let mut rest = messages;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut bytes = 0;
        let mut fits = |message: &NewMessage| {
            let before = bytes;
            bytes += message.payload.as_ref().map_or(0, |payload: &Payload| payload.len());
            before < BYTES
        };
        let rows = rest.iter().take(ROWS).take_while(|message| fits(message)).count();
        let (chunk, others) = rest.split_at(rows.max(1));
        rest = others;
        Some(chunk)
    })
}

/// Appends so many rows. Parameters for each row: tenant, kind, subject, payload, headers as JSON (not where the
/// table has no such column), and [`micros`].
///
/// The rows' ids rise in the order given. The first is what the server answers as the last insert id, and each
/// next one is `auto_increment_increment` higher: an insert whose rows are counted beforehand draws its ids
/// together, whatever `innodb_autoinc_lock_mode` is.
pub fn append(table: &OutboxTable, rows: usize) -> String {
    let Words { table: name, tenant, kind, subject, payload, headers, occurred_at, payload_type, .. } =
        Words::new(table);
    // As bytes first: a driver may say that they are a text of its connection's character set.
    let text = "convert(convert(? USING binary) USING utf8mb4)";
    let payload_value = if payload_type == crate::PayloadType::Bytes { "?" } else { text };
    let (headers, headers_value) =
        headers.map_or_else(Default::default, |headers| (format!(", {headers}"), format!(", {text}")));
    let time =
        format!("coalesce(TIMESTAMP'1970-01-01 00:00:00' + INTERVAL cast(? AS signed) MICROSECOND, {NOW})");
    let row = format!("(?, {text}, ?, {payload_value}{headers_value}, {time})");
    format!(
        "INSERT INTO {name} ({tenant}, {kind}, {subject}, {payload}{headers}, {occurred_at})\nVALUES {}",
        vec![row; rows.max(1)].join(",\n       ")
    )
}

/// Asks how far the ids of rows that are appended together are apart.
pub const ID_STEP: &str = "SELECT cast(@@SESSION.auto_increment_increment AS signed)";

/// Asks for the last insert id of this session, and for [`ID_STEP`]'s answer, where the driver keeps the former to
/// itself. A trigger's inserts are not counted: the server gives the last insert id back at its end.
pub const APPENDED: &str =
    "SELECT cast(last_insert_id() AS signed), cast(@@SESSION.auto_increment_increment AS signed)";

/// The ids of so many rows that were appended together: the last insert id, the answer to [`ID_STEP`] (1 will do
/// for one row), and how many.
pub fn ids(first: u64, step: i64, rows: usize) -> impl Iterator<Item = MessageId> {
    // Past what the column holds, the server refuses the row.
    let first = i64::try_from(first).unwrap_or(i64::MAX);
    (0_i64..).take(rows).map(move |place| MessageId::new(first.saturating_add(place.saturating_mul(step))))
}

/// When a message happened, as the table holds it, in microseconds since 1970; `None` is now. A table with
/// milliseconds keeps the one that it was in.
pub fn micros(message: &NewMessage, table: &OutboxTable) -> Option<i64> {
    let micros = message.occurred_at.map(Timestamp::as_micros);
    match table.time_type() {
        TimeType::Micros => micros,
        TimeType::UtcMillis => micros.map(|micros| micros.div_euclid(1_000) * 1_000),
    }
}

#[cfg(test)]
mod tests {
    use outbox_core::{InvalidTenantId, TenantId};

    use super::*;

    #[test]
    fn a_chunk_ends_with_the_row_that_reaches_the_bytes() -> Result<(), InvalidTenantId> {
        let tenant = TenantId::new("acme")?;
        let message = |bytes| NewMessage::new(tenant.clone(), "k", "s", vec![0; bytes]);
        let small: Vec<_> = (0..1_001).map(|_| message(1)).collect();
        let sizes = |messages: &[NewMessage]| chunks(messages).map(<[_]>::len).collect::<Vec<_>>();
        assert_eq!(sizes(&small), [500, 500, 1]);
        assert_eq!(sizes(&[]), [0; 0]);
        let large = [message(BYTES - 1), message(BYTES), message(BYTES), message(1), message(1)];
        assert_eq!(sizes(&large), [2, 1, 2]);
        Ok(())
    }

    #[test]
    fn a_row_has_a_place_for_each_column() {
        let places = |table: &OutboxTable| append(table, 2).matches('?').count();
        assert_eq!(places(&OutboxTable::default()), 12);
        assert_eq!(places(&OutboxTable::prisma("OutboxMessage")), 10);
    }

    #[test]
    fn a_table_of_milliseconds_keeps_the_one_that_it_was_in() -> Result<(), InvalidTenantId> {
        let table = OutboxTable::default().with_time_type(TimeType::UtcMillis);
        let at = |micros| {
            let tenant = TenantId::new("acme")?;
            let message =
                NewMessage::new(tenant, "k", "s", "").with_occurred_at(Timestamp::from_micros(micros));
            Ok(super::micros(&message, &table))
        };
        assert_eq!((at(1_999)?, at(-1)?), (Some(1_000), Some(-1_000)));
        Ok(())
    }
}
