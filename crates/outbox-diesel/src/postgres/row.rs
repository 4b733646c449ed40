//! From PostgreSQL's rows to the shared ones.

use diesel::deserialize::{self, FromSql, Queryable, QueryableByName};
use diesel::pg::data_types::PgTimestamp;
use diesel::pg::{Pg, PgValue};
use diesel::row::{Field, NamedRow, Row};
use diesel::sql_types::is_nullable::NotNull;
use diesel::sql_types::{
    Array, BigInt, Binary, Bool, Double, Integer, Nullable, SingleValue, SqlType, Text, Timestamptz,
};
use outbox_core::Bytes;
use outbox_sql::driver::{Answer, Value};
use outbox_sql::postgres::{TIME_OIDS, micros_since_1970};
use outbox_sql::row::{Cell, RawRow, Unreadable};

type Int = Nullable<BigInt>;
type Words = Nullable<Text>;

/// The columns of the claim's and the pending's statement.
pub(super) type MessageColumns = (Int, Words, Words, Words, Nullable<Binary>, Words, Nullable<Timestamptz>);

/// A row of these.
pub(super) struct MessageRow(pub(super) RawRow);

impl Queryable<MessageColumns, Pg> for MessageRow {
    type Row =
        (Read<i64>, Read<String>, Read<String>, Read<String>, Read<Vec<u8>>, Read<String>, Read<PgTimestamp>);

    fn build(row: Self::Row) -> deserialize::Result<Self> {
        let (id, tenant, kind, subject, payload, headers, occurred_at) = row;
        Ok(Self(RawRow {
            id: id.required(),
            tenant_id: tenant.required(),
            kind: kind.required(),
            subject_id: subject.required(),
            payload: payload.0.map(|payload| payload.map(Bytes::from)),
            headers: headers.0,
            occurred_at: occurred_at.0.and_then(|time| micros_since_1970(time.map(|PgTimestamp(time)| time))),
        }))
    }
}

/// A row of small values.
pub(super) struct SmallRow(pub(super) Answer);

impl QueryableByName<Pg> for SmallRow {
    fn build<'r>(row: &impl NamedRow<'r, Pg>) -> deserialize::Result<Self> {
        Ok(Self((0..row.field_count()).map(|column| value(row, column)).collect()))
    }
}

fn value<'r>(row: &impl Row<'r, Pg>, column: usize) -> Value {
    let Some(field) = row.get(column) else { return Value::Null };
    let Some(value) = field.value() else { return Value::Null };
    let read = match value.get_oid().get() {
        16 => <bool as FromSql<Bool, Pg>>::from_sql(value).map(Value::Boolean),
        20 => <i64 as FromSql<BigInt, Pg>>::from_sql(value).map(Value::Integer),
        23 => <i32 as FromSql<Integer, Pg>>::from_sql(value).map(|number| Value::Integer(number.into())),
        701 => <f64 as FromSql<Double, Pg>>::from_sql(value).map(Value::Real),
        1009 => <Vec<String> as FromSql<Array<Text>, Pg>>::from_sql(value).map(Value::Texts),
        _ => <String as FromSql<Text, Pg>>::from_sql(value).map(Value::Text),
    };
    read.unwrap_or_else(|why| Value::Unreadable(Unreadable::new(format!("cannot be read: {why}"))))
}

/// A value as it was read, or why it could not be: a row that another program left behind fails by itself.
pub(super) struct Read<T>(Cell<Option<T>>);

impl<T> Read<T> {
    fn required(self) -> Cell<T> {
        self.0?.ok_or(Unreadable::NULL)
    }
}

impl<T: Readable> FromSql<Nullable<T::Column>, Pg> for Read<T> {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        let known = T::OIDS.contains(&value.get_oid().get());
        let unreadable = |why: &dyn std::fmt::Display| Unreadable::new(format!("cannot be read: {why}"));
        Ok(Self(if known {
            T::from_sql(value).map(Some).map_err(|error| unreadable(&error))
        } else {
            Err(unreadable(&format_args!("it has another type, of oid {}", value.get_oid())))
        }))
    }

    fn from_nullable_sql(value: Option<PgValue<'_>>) -> deserialize::Result<Self> {
        value.map_or(Ok(Self(Ok(None))), Self::from_sql)
    }
}

impl<T: Readable> Queryable<Nullable<T::Column>, Pg> for Read<T> {
    type Row = Self;

    fn build(row: Self) -> deserialize::Result<Self> {
        Ok(row)
    }
}

/// What a message consists of. Diesel does not look at what type the server says a value has, and would take the bytes
/// of one for those of another.
pub(super) trait Readable: FromSql<Self::Column, Pg> {
    /// Its type, as Diesel calls it.
    type Column: SqlType<IsNull = NotNull> + SingleValue;

    /// The types that the server may say it has.
    const OIDS: &'static [u32];
}

impl Readable for i64 {
    type Column = BigInt;

    const OIDS: &'static [u32] = &[20];
}

impl Readable for PgTimestamp {
    type Column = Timestamptz;

    const OIDS: &'static [u32] = &TIME_OIDS;
}

impl Readable for String {
    type Column = Text;

    /// `text`, `varchar`, `bpchar`, `name` and what has no type yet.
    const OIDS: &'static [u32] = &[25, 1043, 1042, 19, 705];
}

impl Readable for Vec<u8> {
    type Column = Binary;

    const OIDS: &'static [u32] = &[17];
}
