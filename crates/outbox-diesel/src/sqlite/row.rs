//! From SQLite's rows to the shared ones. A column's type is only a wish there: each value has its own.

use diesel::SqliteConnection;
use diesel::connection::LoadConnection;
use diesel::row::{Field, Row};
use diesel::sql_types::Untyped;
use diesel::sqlite::{Sqlite, SqliteType};
use outbox_core::Bytes;
use outbox_sql::driver::{self, Answer};
use outbox_sql::row::{Cell, RawRow, Unreadable};

use super::error::Failure;
use crate::statement::Statement;

/// Reads the rows of a statement, whatever their types.
pub(super) fn read<T>(
    connection: &mut SqliteConnection,
    statement: Statement<'_, Sqlite, Untyped>,
    row: impl Fn(&Values) -> T,
) -> Result<Vec<T>, Failure> {
    let rows = LoadConnection::load(connection, statement)?;
    rows.map(|found| Ok(row(&Values::of(&found?)))).collect()
}

/// The values of a row, as SQLite has them.
pub(super) struct Values(Vec<Value>);

enum Value {
    Null,
    Integer(i64),
    Real,
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

impl Values {
    fn of<'r>(row: &impl Row<'r, Sqlite>) -> Self {
        let fields = (0..row.field_count()).filter_map(|index| row.get(index));
        Self(fields.map(|field| Value::of(&field)).collect())
    }

    /// A row of the claim's or the pending's statement. The columns are read by their place.
    pub(super) fn message(&self) -> RawRow {
        RawRow {
            id: self.integer(0),
            tenant_id: self.text(1),
            kind: self.text(2),
            subject_id: self.text(3),
            payload: self.optional(4, Self::bytes),
            headers: self.optional(5, Self::text),
            occurred_at: self.integer(6),
        }
    }

    /// A row of small values. A blob is none of them, not even a text.
    pub(super) fn answer(&self) -> Answer {
        let small = |index| match self.value(index) {
            Value::Null => Ok(driver::Value::Null),
            Value::Integer(integer) => Ok(driver::Value::Integer(*integer)),
            _ => self.text(index).map(driver::Value::Text),
        };
        (0..self.0.len()).map(|index| small(index).unwrap_or_else(driver::Value::Unreadable)).collect()
    }

    fn value(&self, index: usize) -> &Value {
        self.0.get(index).unwrap_or(&Value::Null)
    }

    fn optional<T>(&self, index: usize, read: impl Fn(&Self, usize) -> Cell<T>) -> Cell<Option<T>> {
        if matches!(self.value(index), Value::Null) { Ok(None) } else { read(self, index).map(Some) }
    }

    fn integer(&self, index: usize) -> Cell<i64> {
        match self.value(index) {
            Value::Integer(integer) => Ok(*integer),
            other => Err(other.not("an integer")),
        }
    }

    fn text(&self, index: usize) -> Cell<String> {
        match self.value(index) {
            Value::Text(bytes) => String::from_utf8(bytes.clone())
                .map_err(|error| Unreadable::new(format!("is not a text: {error}"))),
            other => Err(other.not("a text")),
        }
    }

    /// A text is its bytes, so that a payload column of text serves as well.
    fn bytes(&self, index: usize) -> Cell<Bytes> {
        match self.value(index) {
            Value::Blob(bytes) | Value::Text(bytes) => Ok(Bytes::from(bytes.clone())),
            other => Err(other.not("a blob or a text")),
        }
    }
}

impl Value {
    fn of<'f>(field: &impl Field<'f, Sqlite>) -> Self {
        let Some(mut value) = field.value() else { return Self::Null };
        match value.value_type() {
            None => Self::Null,
            Some(SqliteType::Text) => Self::Text(value.read_blob().to_vec()),
            Some(SqliteType::Binary) => Self::Blob(value.read_blob().to_vec()),
            Some(SqliteType::Float | SqliteType::Double) => Self::Real,
            Some(_) => Self::Integer(value.read_long()),
        }
    }

    fn not(&self, expected: &str) -> Unreadable {
        let found = match self {
            Self::Null => return Unreadable::NULL,
            Self::Integer(_) => "integer",
            Self::Real => "real",
            Self::Text(_) => "text",
            Self::Blob(_) => "blob",
        };
        Unreadable::new(format!("is of type {found}, not {expected}"))
    }
}
