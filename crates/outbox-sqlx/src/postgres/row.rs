//! From PostgreSQL's rows to the shared ones.

use std::fmt;

use outbox_core::Bytes;
use outbox_sql::driver::{Answer, Value};
use outbox_sql::postgres::{TIME_OIDS, micros_since_1970};
use outbox_sql::row::{Cell, RawRow, Unreadable};
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgRow, PgTypeInfo, PgValueRef};
use sqlx::{Column, Decode, Postgres, Row, Type, ValueRef as _};

/// Whether each column of the claim's or the pending's statement has a type that can be read. All rows of an answer have
/// the same types: they are compared with what is expected once, and not for each value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Types([bool; 7]);

impl Types {
    pub(super) fn of(rows: &[PgRow]) -> Self {
        let Some(row) = rows.first() else { return Self::default() };
        Self([
            is::<i64>(row, 0),
            is::<str>(row, 1),
            is::<str>(row, 2),
            is::<str>(row, 3),
            is::<Vec<u8>>(row, 4),
            is::<str>(row, 5),
            is::<SentTime>(row, 6),
        ])
    }

    /// A row, whose columns are read by their place.
    pub(super) fn message(self, row: &PgRow) -> RawRow<&str> {
        let [id, tenant_id, kind, subject_id, payload, headers, occurred_at] = self.0;
        let sent = |time: Option<SentTime>| micros_since_1970(time.map(|SentTime(time)| time));
        RawRow {
            id: cell(row, 0, id).and_then(required),
            tenant_id: cell(row, 1, tenant_id).and_then(required),
            kind: cell(row, 2, kind).and_then(required),
            subject_id: cell(row, 3, subject_id).and_then(required),
            payload: cell::<Vec<u8>>(row, 4, payload).map(|payload| payload.map(Bytes::from)),
            headers: cell(row, 5, headers),
            occurred_at: cell(row, 6, occurred_at).and_then(sent),
        }
    }
}

fn is<T: Type<Postgres> + ?Sized>(row: &PgRow, column: usize) -> bool {
    row.try_column(column).is_ok_and(|column| T::compatible(column.type_info()))
}

/// A time as the server sends it to a prepared statement: in binary.
struct SentTime(i64);

impl Type<Postgres> for SentTime {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(TIME_OIDS[0]))
    }

    fn compatible(of: &PgTypeInfo) -> bool {
        of.oid().is_some_and(|Oid(oid)| TIME_OIDS.contains(&oid))
    }
}

impl<'r> Decode<'r, Postgres> for SentTime {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        Ok(Self(i64::from_be_bytes(value.as_bytes()?.try_into()?)))
    }
}

/// A row of small values.
pub(super) fn answer(row: &PgRow) -> Answer {
    (0..row.len()).map(|column| value(row, column).unwrap_or_else(Value::Unreadable)).collect()
}

fn value(row: &PgRow, column: usize) -> Cell<Value> {
    let found = row.try_get_raw(column).map_err(|error| unreadable(&error))?;
    if found.is_null() {
        return Ok(Value::Null);
    }
    let found = found.type_info();
    let read = match found.oid() {
        Some(Oid(16)) => row.try_get_unchecked(column).map(Value::Boolean),
        Some(Oid(20)) => row.try_get_unchecked(column).map(Value::Integer),
        Some(Oid(23)) => row.try_get_unchecked::<i32, _>(column).map(|number| Value::Integer(number.into())),
        Some(Oid(701)) => row.try_get_unchecked(column).map(Value::Real),
        Some(Oid(1009)) => row.try_get_unchecked(column).map(Value::Texts),
        _ if <str as Type<Postgres>>::compatible(&found) => row.try_get_unchecked(column).map(Value::Text),
        _ => return Err(Unreadable::new(format!("has the type {found}"))),
    };
    read.map_err(|error| unreadable(&error))
}

fn cell<'r, T: Decode<'r, Postgres>>(row: &'r PgRow, column: usize, readable: bool) -> Cell<Option<T>> {
    if readable {
        return row.try_get_unchecked(column).map_err(|error| unreadable(&error));
    }
    let found = row.try_column(column).map_err(|error| unreadable(&error))?;
    Err(unreadable(&format_args!("its type is {}", found.type_info())))
}

fn unreadable(why: &dyn fmt::Display) -> Unreadable {
    Unreadable::new(format!("cannot be read: {why}"))
}

fn required<T>(value: Option<T>) -> Cell<T> {
    value.ok_or(Unreadable::NULL)
}
