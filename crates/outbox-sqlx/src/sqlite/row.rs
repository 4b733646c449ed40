//! From SQLite's rows to the shared ones. A column's type is only a wish there: each value has its own.

use outbox_core::Bytes;
use outbox_sql::driver::{Answer, Value};
use outbox_sql::row::{Cell, RawRow, Unreadable};
use sqlx::sqlite::{SqliteRow, SqliteValueRef};
use sqlx::{Decode, Row, Sqlite, TypeInfo, ValueRef};

/// A row of the claim's or the pending's statement. The columns are read by their place.
pub(super) fn message(row: &SqliteRow) -> RawRow {
    RawRow {
        id: value(row, 0).and_then(integer),
        tenant_id: value(row, 1).and_then(text),
        kind: value(row, 2).and_then(text),
        subject_id: value(row, 3).and_then(text),
        payload: value(row, 4).and_then(optional(bytes)),
        headers: value(row, 5).and_then(optional(text)),
        occurred_at: value(row, 6).and_then(integer),
    }
}

/// A row of small values. A blob is none of them, not even a text.
pub(super) fn answer(row: &SqliteRow) -> Answer {
    let small = |index| value(row, index).and_then(small).unwrap_or_else(Value::Unreadable);
    (0..row.len()).map(small).collect()
}

fn small(value: SqliteValueRef<'_>) -> Cell<Value> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let is_integer = value.type_info().name() == "INTEGER";
    if is_integer { integer(value).map(Value::Integer) } else { text(value).map(Value::Text) }
}

fn value(row: &SqliteRow, index: usize) -> Cell<SqliteValueRef<'_>> {
    row.try_get_raw(index).map_err(|error| Unreadable::new(error.to_string()))
}

fn optional<'r, T>(
    read: impl Fn(SqliteValueRef<'r>) -> Cell<T>,
) -> impl Fn(SqliteValueRef<'r>) -> Cell<Option<T>> {
    move |value| if value.is_null() { Ok(None) } else { read(value).map(Some) }
}

fn integer(value: SqliteValueRef<'_>) -> Cell<i64> {
    typed(value, &["INTEGER"], "an integer")
}

fn text(value: SqliteValueRef<'_>) -> Cell<String> {
    typed(value, &["TEXT"], "a text")
}

/// A text is its bytes, so that a payload column of text serves as well.
fn bytes(value: SqliteValueRef<'_>) -> Cell<Bytes> {
    typed::<Vec<u8>>(value, &["BLOB", "TEXT"], "a blob or a text").map(Bytes::from)
}

fn typed<'r, T: Decode<'r, Sqlite>>(value: SqliteValueRef<'r>, types: &[&str], expected: &str) -> Cell<T> {
    if value.is_null() {
        return Err(Unreadable::NULL);
    }
    let found = value.type_info().name().to_owned();
    if !types.contains(&found.as_str()) {
        return Err(Unreadable::new(format!("is of type {}, not {expected}", found.to_ascii_lowercase())));
    }
    T::decode(value).map_err(|error| Unreadable::new(format!("is not {expected}: {error}")))
}
