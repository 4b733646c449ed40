//! From a row as a driver reads it to a message.

use std::borrow::Cow;

use outbox_core::{
    Bytes, Headers, MessageId, OldestPending, OutboxMessage, Payload, StoreError, StoreOperation, TenantId,
    Timestamp,
};

use crate::dialect::Dialect;
use crate::headers;
use crate::meaning::said;
use crate::table::{Columns, OutboxTable};

/// Why a column's value cannot be read, in words that follow the column's name: `is null`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", said(.0))]
pub struct Unreadable(Cow<'static, str>);

impl Unreadable {
    /// A value that is null where it must not be.
    pub const NULL: Self = Self(Cow::Borrowed("is null"));

    /// A value that cannot be read, for this reason.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Self(reason.into())
    }
}

/// A column's value as it was read, or why it could not be.
pub type Cell<T> = Result<T, Unreadable>;

/// A row as a driver reads it: any of its values may be one that another program left behind.
///
/// `T` is how it reads the tenant and the headers: as a `&str` where it can, for all rows of a claim have the same tenant,
/// and headers become something else.
#[derive(Debug, Clone)]
pub struct RawRow<T = String> {
    /// The id.
    pub id: Cell<i64>,
    /// Whose message it is.
    pub tenant_id: Cell<T>,
    /// What sort of message it is.
    pub kind: Cell<String>,
    /// Which thing it is about.
    pub subject_id: Cell<String>,
    /// The content; `None` is the tombstone.
    pub payload: Cell<Option<Bytes>>,
    /// The headers as JSON text; `None` is none at all.
    pub headers: Cell<Option<T>>,
    /// When it happened, in microseconds since 1970.
    pub occurred_at: Cell<i64>,
}

/// A text that was read as bytes.
///
/// # Errors
/// [`Unreadable`], if they are not UTF-8.
pub fn text(bytes: Vec<u8>) -> Cell<String> {
    String::from_utf8(bytes).map_err(|error| Unreadable::new(format!("is not UTF-8: {error}")))
}

/// A row of a probe that was read as bytes; the times are in microseconds since 1970. `None` if its tenant is one
/// that nobody can ask for, because it is no text or empty.
pub fn oldest(tenant: Vec<u8>, id: MessageId, micros: Option<i64>, now: i64) -> Option<OldestPending> {
    let tenant = TenantId::new(String::from_utf8(tenant).ok()?).ok()?;
    Some(oldest_of(tenant, id, micros, now))
}

/// A row of a probe.
pub fn oldest_of(tenant: TenantId, id: MessageId, micros: Option<i64>, now: i64) -> OldestPending {
    match micros.map(Timestamp::from_micros) {
        Some(occurred_at) => {
            let age = occurred_at.until(Timestamp::from_micros(now));
            OldestPending::new(tenant, id, occurred_at, age)
        }
        None => OldestPending::unreadable(tenant, id),
    }
}

/// A row that cannot be read: which column, and why.
#[derive(Debug)]
struct UnreadableRow {
    id: Option<i64>,
    column: String,
    reason: String,
}

impl<T: AsRef<str>> RawRow<T> {
    /// `seen` is the tenant of the row before.
    fn decode(self, columns: &Columns, seen: &mut Option<TenantId>) -> Result<OutboxMessage, UnreadableRow> {
        let known = self.id.as_ref().ok().copied();
        let unreadable = |column: &str, reason: &dyn ToString| UnreadableRow {
            id: known,
            column: column.to_owned(),
            reason: reason.to_string(),
        };
        let id = self.id.map_err(|reason| unreadable(&columns.id, &reason))?;
        let tenant = self.tenant_id.map_err(|reason| unreadable(&columns.tenant_id, &reason))?;
        let tenant = match seen {
            Some(seen) if seen.as_str() == tenant.as_ref() => seen.clone(),
            _ => {
                let tenant = TenantId::new(tenant.as_ref());
                seen.insert(tenant.map_err(|reason| unreadable(&columns.tenant_id, &reason))?).clone()
            }
        };
        let kind = self.kind.map_err(|reason| unreadable(&columns.kind, &reason))?;
        let subject = self.subject_id.map_err(|reason| unreadable(&columns.subject_id, &reason))?;
        let payload = self.payload.map_err(|reason| unreadable(&columns.payload, &reason))?;
        let headers_column = columns.headers.as_deref().unwrap_or("headers");
        let headers = match self.headers.map_err(|reason| unreadable(headers_column, &reason))? {
            Some(json) => {
                headers::from_json(json.as_ref()).map_err(|reason| unreadable(headers_column, &reason))?
            }
            None => Headers::new(),
        };
        let occurred_at = self.occurred_at.map_err(|reason| unreadable(&columns.occurred_at, &reason))?;
        Ok(OutboxMessage::new(
            MessageId::new(id),
            tenant,
            kind,
            subject,
            payload.map(Payload::from),
            headers,
            Timestamp::from_micros(occurred_at),
        ))
    }
}

impl UnreadableRow {
    fn into_error(self, table: &OutboxTable, dialect: Dialect, operation: StoreOperation) -> StoreError {
        let Self { id, column, reason } = self;
        let row = id.map_or_else(|| "a row".to_owned(), |id| format!("row {id}"));
        let table = table.display_name(dialect);
        StoreError::permanent(
            operation,
            format!("{row} of {table} cannot be read: {column} {reason}; repair or delete the row"),
        )
    }
}

/// What becomes of rows.
#[derive(Debug, Clone, Copy)]
pub struct Decoding<'a> {
    table: &'a OutboxTable,
    dialect: Dialect,
    operation: StoreOperation,
}

impl<'a> Decoding<'a> {
    /// Of a table's rows, for an operation: a claim has the messages up to the first row that cannot be read.
    pub fn of(table: &'a OutboxTable, dialect: Dialect, operation: StoreOperation) -> Self {
        Self { table, dialect, operation }
    }

    /// The messages of these rows.
    ///
    /// # Errors
    /// As [`decode_batch`], and as [`decode_all`] for what is no claim.
    pub fn decode<T: AsRef<str>>(
        self,
        rows: impl IntoIterator<Item = RawRow<T>>,
    ) -> Result<Vec<OutboxMessage>, StoreError> {
        let Self { table, dialect, operation } = self;
        if operation == StoreOperation::Claim {
            decode_batch(rows, table, dialect, operation)
        } else {
            decode_all(rows, table, dialect, operation)
        }
    }

    /// The same, of rows as a driver has them: each is dropped once it is read, so that they do not stay in memory beside
    /// the messages that they become.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_each<R>(
        self,
        rows: Vec<R>,
        raw: impl for<'r> Fn(&'r R) -> RawRow<&'r str>,
    ) -> Result<Vec<OutboxMessage>, StoreError> {
        let Self { table, dialect, operation } = self;
        let (mut messages, mut seen) = (Vec::with_capacity(rows.len()), None);
        for row in rows {
            match raw(&row).decode(table.columns(), &mut seen) {
                Ok(message) => messages.push(message),
                Err(_) if operation == StoreOperation::Claim && !messages.is_empty() => break,
                Err(row) => return Err(row.into_error(table, dialect, operation)),
            }
        }
        Ok(messages)
    }
}

/// The messages of a claim: up to the first row that cannot be read.
///
/// # Errors
/// A permanent [`StoreError`] that names the table, the row and what is wrong with it, if it is the first.
pub fn decode_batch<T: AsRef<str>>(
    rows: impl IntoIterator<Item = RawRow<T>>,
    table: &OutboxTable,
    dialect: Dialect,
    operation: StoreOperation,
) -> Result<Vec<OutboxMessage>, StoreError> {
    let rows = rows.into_iter();
    let (mut messages, mut seen) = (Vec::with_capacity(rows.size_hint().0), None);
    for row in rows {
        match row.decode(table.columns(), &mut seen) {
            Ok(message) => messages.push(message),
            Err(row) if messages.is_empty() => return Err(row.into_error(table, dialect, operation)),
            Err(_) => break,
        }
    }
    Ok(messages)
}

/// Every row as a message, for readers without a claim.
///
/// # Errors
/// A permanent [`StoreError`] that names the table, the row and what is wrong with it, if one cannot be read.
pub fn decode_all<T: AsRef<str>>(
    rows: impl IntoIterator<Item = RawRow<T>>,
    table: &OutboxTable,
    dialect: Dialect,
    operation: StoreOperation,
) -> Result<Vec<OutboxMessage>, StoreError> {
    let mut seen = None;
    rows.into_iter()
        .map(|row| {
            row.decode(table.columns(), &mut seen).map_err(|row| row.into_error(table, dialect, operation))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64) -> RawRow {
        RawRow {
            id: Ok(id),
            tenant_id: Ok("acme".into()),
            kind: Ok("order.placed".into()),
            subject_id: Ok("order-1".into()),
            payload: Ok(None),
            headers: Ok(None),
            occurred_at: Ok(0),
        }
    }

    #[test]
    fn each_row_has_its_own_tenant() {
        let tenants =
            ["acme", "acme", "globex", "acme"].map(|tenant| RawRow { tenant_id: Ok(tenant), ..borrowed() });
        let messages =
            decode_all(tenants, &OutboxTable::default(), Dialect::Postgres, StoreOperation::Pending);
        let found = messages
            .map(|messages| messages.into_iter().map(|message| message.tenant_id.to_string()).collect());
        let expected: Vec<String> = ["acme", "acme", "globex", "acme"].map(str::to_owned).into();
        assert_eq!(found.map_err(|error| error.to_string()), Ok(expected));
    }

    fn borrowed() -> RawRow<&'static str> {
        let RawRow { id, kind, subject_id, payload, occurred_at, .. } = row(1);
        RawRow { id, tenant_id: Ok("acme"), kind, subject_id, payload, headers: Ok(None), occurred_at }
    }

    fn decode(rows: Vec<RawRow>) -> Result<Vec<i64>, String> {
        decode_batch(rows, &OutboxTable::default(), Dialect::Postgres, StoreOperation::Claim)
            .map(|messages| messages.iter().map(|message| message.id.get()).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_batch_ends_before_a_row_that_cannot_be_read() {
        let hostile = RawRow { kind: Err(Unreadable::NULL), ..row(2) };
        assert_eq!(decode(vec![row(1), hostile, row(3)]), Ok(vec![1]));
    }

    #[test]
    fn a_first_row_that_cannot_be_read_is_an_error_that_names_it() {
        let hostile = RawRow { headers: Ok(Some("[]".into())), ..row(7) };
        assert_eq!(
            decode(vec![hostile, row(8)]),
            Err("claim failed: row 7 of public.outbox_message cannot be read: headers is an array, not a \
                 JSON object; repair or delete the row"
                .to_owned())
        );
    }
}
