//! From PostgreSQL's row to a message.

use std::time::Duration;

use outbox_core::{Bytes, MessageId, OldestPending, TenantId, Timestamp};
use outbox_sql::row::{Cell, RawRow, Unreadable};
use sqlx::postgres::PgRow;
use sqlx::{Decode, Postgres, Row, Type};

/// A row of the claim's or the pending's statement. The columns are read by their place.
pub(super) fn message(row: &PgRow) -> RawRow<&str> {
    RawRow {
        id: required(row, 0),
        tenant_id: required(row, 1),
        kind: required(row, 2),
        subject_id: required(row, 3),
        payload: cell::<Vec<u8>>(row, 4).map(|payload| payload.map(Bytes::from)),
        headers: cell(row, 5),
        occurred_at: cell(row, 6).and_then(|micros| {
            micros.ok_or(Unreadable::new("is infinite, null or past what 64 bits of microseconds hold"))
        }),
    }
}

/// A row of the probe.
pub(super) fn oldest(row: &PgRow) -> sqlx::Result<OldestPending> {
    let tenant: String = row.try_get(0)?;
    let tenant = TenantId::new(tenant).map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    let id = MessageId::new(row.try_get(1)?);
    let (micros, now): (Option<i64>, i64) = (row.try_get(2)?, row.try_get(3)?);
    Ok(micros.map(Timestamp::from_micros).map_or_else(
        || OldestPending::unreadable(tenant.clone(), id),
        |occurred_at| {
            let age: Duration = occurred_at.until(Timestamp::from_micros(now));
            OldestPending::new(tenant.clone(), id, occurred_at, age)
        },
    ))
}

fn cell<'r, T>(row: &'r PgRow, column: usize) -> Cell<Option<T>>
where
    T: Decode<'r, Postgres> + Type<Postgres>,
{
    row.try_get(column).map_err(|error| Unreadable::new(format!("cannot be read: {error}")))
}

fn required<'r, T>(row: &'r PgRow, column: usize) -> Cell<T>
where
    T: Decode<'r, Postgres> + Type<Postgres>,
{
    cell(row, column)?.ok_or(Unreadable::NULL)
}
