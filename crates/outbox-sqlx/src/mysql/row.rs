//! From MySQL's rows to the shared ones. Texts are read as bytes: no type of a column and no character set of a connection
//! comes between.

use outbox_core::Bytes;
use outbox_sql::driver::{Answer, Value};
use outbox_sql::row::{self, Cell, RawRow, Unreadable};
use sqlx::mysql::MySqlRow;
use sqlx::{Column as _, Decode, MySql, Row, Type};

/// A row of the claim's or the pending's statement. The columns are read by their place.
pub(super) fn message(row: &MySqlRow) -> RawRow {
    RawRow {
        id: number(row, 0).and_then(|id| id.ok_or(Unreadable::NULL)),
        tenant_id: text(row, 1),
        kind: text(row, 2),
        subject_id: text(row, 3),
        payload: bytes(row, 4).map(|payload| payload.map(Bytes::from)),
        headers: bytes(row, 5).and_then(|headers| headers.map(row::text).transpose()),
        occurred_at: number(row, 6)
            .and_then(|micros| micros.ok_or(Unreadable::new("is null or no time that there is"))),
    }
}

/// A row of small values.
pub(super) fn answer(row: &MySqlRow) -> Answer {
    (0..row.len()).map(|column| value(row, column).unwrap_or_else(Value::Unreadable)).collect()
}

fn value(row: &MySqlRow, column: usize) -> Cell<Value> {
    let is_number =
        row.try_column(column).is_ok_and(|column| <i64 as Type<MySql>>::compatible(column.type_info()));
    let value = if is_number {
        number(row, column)?.map(Value::Integer)
    } else {
        bytes(row, column)?.map(Value::Bytes)
    };
    Ok(value.unwrap_or_default())
}

fn number<'r, T>(row: &'r MySqlRow, column: usize) -> Cell<Option<T>>
where
    T: Decode<'r, MySql> + Type<MySql>,
{
    row.try_get(column).map_err(|error| unreadable(&error))
}

fn bytes(row: &MySqlRow, column: usize) -> Cell<Option<Vec<u8>>> {
    row.try_get_unchecked(column).map_err(|error| unreadable(&error))
}

fn text(row: &MySqlRow, column: usize) -> Cell<String> {
    row::text(bytes(row, column)?.ok_or(Unreadable::NULL)?)
}

fn unreadable(error: &sqlx::Error) -> Unreadable {
    Unreadable::new(format!("cannot be read: {error}"))
}
