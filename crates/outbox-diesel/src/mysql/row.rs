//! From MySQL's rows to the shared ones. Texts are read as bytes: no type of a column and no character set of a
//! connection comes between.

use std::panic::{AssertUnwindSafe, catch_unwind};

use diesel::deserialize::{self, FromSql, QueryableByName};
use diesel::mysql::{Mysql, MysqlType, MysqlValue};
use diesel::row::{Field, NamedRow, Row};
use diesel::sql_types::BigInt;
use outbox_core::Bytes;
use outbox_sql::driver::{Answer, Value};
use outbox_sql::row::{RawRow, Unreadable};

/// The values of a row, as they came. A row that another program left behind fails by itself.
pub(super) struct SmallRow(pub(super) Answer);

impl QueryableByName<Mysql> for SmallRow {
    fn build<'r>(row: &impl NamedRow<'r, Mysql>) -> deserialize::Result<Self> {
        Ok(Self((0..row.field_count()).map(|column| read(row, column)).collect()))
    }
}

/// A row of the claim's or the pending's statement. The columns are read by their place.
pub(super) fn message(mut row: Answer) -> RawRow {
    RawRow {
        id: row.take(0),
        tenant_id: row.take(1),
        kind: row.take(2),
        subject_id: row.take(3),
        payload: row.take::<Option<Vec<u8>>>(4).map(|payload| payload.map(Bytes::from)),
        headers: row.take(5),
        occurred_at: row
            .take::<Option<_>>(6)
            .and_then(|micros| micros.ok_or(Unreadable::new("is null or no time that there is"))),
    }
}

/// Diesel panics at a value of a type that it does not know, as a column made by somebody else may have.
fn read<'r>(row: &impl Row<'r, Mysql>, column: usize) -> Value {
    let read = || row.get(column).and_then(|field| field.value().map(|value| value_of(&value)));
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(value) => value.unwrap_or_default(),
        Err(_) => Value::Unreadable(Unreadable::new("is of a type that Diesel does not know")),
    }
}

fn value_of(value: &MysqlValue<'_>) -> Value {
    match value.value_type() {
        MysqlType::String | MysqlType::Blob | MysqlType::Enum | MysqlType::Set | MysqlType::Bit => {
            Value::Bytes(value.as_bytes().to_vec())
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
                |why| Value::Unreadable(Unreadable::new(format!("cannot be read: {why}"))),
                Value::Integer,
            ),
        other => Value::Unreadable(Unreadable::new(format!("is of type {other:?}"))),
    }
}
