//! From MySQL's rows to the shared ones. Texts are read as bytes: no type of a column and no character set of a
//! connection comes between.

use std::panic::{AssertUnwindSafe, catch_unwind};

use diesel::QueryResult;
use diesel::deserialize::{self, FromSql, QueryableByName};
use diesel::mysql::{Mysql, MysqlType, MysqlValue};
use diesel::result::Error;
use diesel::row::{Field, NamedRow, Row};
use diesel::sql_types::BigInt;
use outbox_core::Bytes;
use outbox_sql::mysql::WalkedTenant;
use outbox_sql::row::{self, Cell, RawRow, Unreadable};

/// The values of a row, as they came. A row that another program left behind fails by itself.
pub(super) struct Values(Vec<Value>);

enum Value {
    Null,
    Integer(i64),
    Bytes(Vec<u8>),
    Unreadable(Unreadable),
}

impl QueryableByName<Mysql> for Values {
    fn build<'r>(row: &impl NamedRow<'r, Mysql>) -> deserialize::Result<Self> {
        Ok(Self((0..row.field_count()).map(|index| Value::read(row, index)).collect()))
    }
}

impl Values {
    /// A row of the claim's or the pending's statement. The columns are read by their place.
    pub(super) fn message(&self) -> RawRow {
        RawRow {
            id: required(self.integer(0)),
            tenant_id: self.text(1),
            kind: self.text(2),
            subject_id: self.text(3),
            payload: self.bytes(4).map(|payload| payload.map(Bytes::from)),
            headers: self.bytes(5).and_then(|headers| headers.map(row::text).transpose()),
            occurred_at: self
                .integer(6)
                .and_then(|micros| micros.ok_or(Unreadable::new("is null or no time that there is"))),
        }
    }

    /// A row of a probe.
    pub(super) fn walked(&self) -> QueryResult<WalkedTenant> {
        Ok(WalkedTenant {
            tenant: self.expect_bytes(0)?,
            id: self.expect(1)?,
            entries: self.expect(2)?,
            micros: self.integer(3).map_err(no_row)?,
            now: self.expect(4)?,
        })
    }

    /// An integer that must be there.
    pub(super) fn expect(&self, index: usize) -> QueryResult<i64> {
        required(self.integer(index)).map_err(no_row)
    }

    /// A text that must be there.
    pub(super) fn expect_text(&self, index: usize) -> QueryResult<String> {
        self.text(index).map_err(no_row)
    }

    /// A text that may be null.
    pub(super) fn optional_text(&self, index: usize) -> QueryResult<Option<String>> {
        self.bytes(index).and_then(|text| text.map(row::text).transpose()).map_err(no_row)
    }

    fn expect_bytes(&self, index: usize) -> QueryResult<Vec<u8>> {
        required(self.bytes(index)).map_err(no_row)
    }

    fn integer(&self, index: usize) -> Cell<Option<i64>> {
        match self.value(index)? {
            Value::Null => Ok(None),
            Value::Integer(integer) => Ok(Some(*integer)),
            _ => Err(Unreadable::new("is no integer")),
        }
    }

    fn bytes(&self, index: usize) -> Cell<Option<Vec<u8>>> {
        match self.value(index)? {
            Value::Null => Ok(None),
            Value::Bytes(bytes) => Ok(Some(bytes.clone())),
            _ => Err(Unreadable::new("is neither a text nor bytes")),
        }
    }

    fn text(&self, index: usize) -> Cell<String> {
        row::text(required(self.bytes(index))?)
    }

    fn value(&self, index: usize) -> Cell<&Value> {
        match self.0.get(index) {
            Some(Value::Unreadable(why)) => Err(why.clone()),
            Some(value) => Ok(value),
            None => Ok(&Value::Null),
        }
    }
}

impl Value {
    /// Diesel panics at a value of a type that it does not know, as a column made by somebody else may have.
    fn read<'r>(row: &impl Row<'r, Mysql>, index: usize) -> Self {
        let read = || row.get(index).and_then(|field| field.value().map(|value| Self::of(&value)));
        match catch_unwind(AssertUnwindSafe(read)) {
            Ok(value) => value.unwrap_or(Self::Null),
            Err(_) => Self::Unreadable(Unreadable::new("is of a type that Diesel does not know")),
        }
    }

    fn of(value: &MysqlValue<'_>) -> Self {
        match value.value_type() {
            MysqlType::String | MysqlType::Blob | MysqlType::Enum | MysqlType::Set | MysqlType::Bit => {
                Self::Bytes(value.as_bytes().to_vec())
            }
            MysqlType::Tiny
            | MysqlType::Short
            | MysqlType::Long
            | MysqlType::LongLong
            | MysqlType::UnsignedTiny
            | MysqlType::UnsignedShort
            | MysqlType::UnsignedLong
            | MysqlType::UnsignedLongLong => <i64 as FromSql<BigInt, Mysql>>::from_sql(value.clone())
                .map_or_else(
                    |why| Self::Unreadable(Unreadable::new(format!("cannot be read: {why}"))),
                    Self::Integer,
                ),
            other => Self::Unreadable(Unreadable::new(format!("is of type {other:?}"))),
        }
    }
}

fn required<T>(cell: Cell<Option<T>>) -> Cell<T> {
    cell?.ok_or(Unreadable::NULL)
}

fn no_row(why: Unreadable) -> Error {
    Error::DeserializationError(Box::new(why))
}
