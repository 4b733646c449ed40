//! SQLite's statements.
//!
//! Every column is named through its table: SQLite takes a quoted name that is no column for a text, and would
//! find nothing pending in a table that lacks one. Times are whole microseconds since 1970.

use std::fmt::Write as _;
use std::sync::Arc;

use outbox_core::{MessageId, Settling, TenantId, Timestamp};
use serde_json::Value;

use crate::dialect::Dialect;
use crate::identifier::quote;
use crate::table::{InvalidTable, OutboxTable};

/// The microseconds since 1970 by SQLite's own clock, which counts milliseconds. (`unixepoch('now', 'subsec')`
/// says the same from SQLite 3.42 on only.)
pub(crate) const NOW: &str = "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000";

/// The statements of one table. Numbered parameters are given in order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqliteStatements {
    /// A tenant's oldest pending messages. Parameters: tenant, limit.
    pub pending: Arc<str>,
    /// The same, up to the message before which there are so many bytes. Parameters: tenant, limit,
    /// bytes.
    pub claim: Arc<str>,
    /// The same of other subjects than these, whose rows are walked past. Parameters: tenant, limit, bytes, a
    /// JSON array of subjects.
    pub claim_others: Arc<str>,
    /// Each tenant's oldest pending message: tenant, id, `occurred_at`, and the time of the statement.
    pub probe: Arc<str>,
    /// The same of some tenants only. Parameter: a JSON array of texts.
    pub probe_named: Arc<str>,
    /// Marks messages as published, or deletes them. Parameter: what [`json_rows`] makes of them. A row with another
    /// time is another message, and stays as it is.
    pub mark: Arc<str>,
    /// Changes no row, and fails if the database cannot be written to.
    pub prove_writable: Arc<str>,
    /// Answers no row, and fails if the database or the table is gone.
    pub prove_alive: Arc<str>,
}

impl SqliteStatements {
    /// The statements of this table, for a store that marks.
    ///
    /// # Errors
    /// [`InvalidTable`], if SQLite can hold no such table.
    pub fn new(table: &OutboxTable) -> Result<Self, InvalidTable> {
        table.check(Dialect::Sqlite)?;
        let names = Names::of(table);
        let Names { table, id, published_at, .. } = &names;
        Ok(Self {
            pending: names.pending().into(),
            claim: names.claim("").into(),
            claim_others: names.claim(&names.others("?4")).into(),
            probe: names.probe("").into(),
            probe_named: names.probe(" WHERE tenant.name IN (SELECT value FROM main.json_each(?1))").into(),
            mark: names.mark(Settling::Mark).into(),
            prove_writable: format!("UPDATE {table} AS o SET {published_at} = o.{published_at} WHERE 0")
                .into(),
            prove_alive: format!("SELECT o.{id} FROM {table} AS o WHERE 0").into(),
        })
    }

    /// The same for a store that settles so. The table is the one that these are of.
    pub fn with_settling(mut self, table: &OutboxTable, settling: Settling) -> Self {
        self.mark = Names::of(table).mark(settling).into();
        self
    }
}

/// Messages, each with its `occurred_at`, as the JSON object that [`SqliteStatements::mark`] takes: `{"1":0}`.
pub fn json_rows(rows: impl IntoIterator<Item = (MessageId, Timestamp)>) -> String {
    let mut text = String::from("{");
    for (index, (id, time)) in rows.into_iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        // Writing to a string does not fail.
        let _ = write!(text, "{separator}\"{id}\":{}", time.as_micros());
    }
    text.push('}');
    text
}

/// Tenants as the JSON array that [`SqliteStatements::probe_named`] takes.
pub fn json_tenants<'a>(tenants: impl IntoIterator<Item = &'a TenantId>) -> String {
    tenants.into_iter().map(TenantId::as_str).collect::<Value>().to_string()
}

/// How many rows one `INSERT` of a table writes at most: SQLite before 3.32 binds 999 values at most.
pub const ROWS_PER_INSERT: usize = 999 / COLUMNS_PER_ROW;
const COLUMNS_PER_ROW: usize = 6;

/// Appends so many rows (1 to [`ROWS_PER_INSERT`]) and answers their ids, in any order. Parameters for each
/// row: tenant, kind, subject, payload, headers (unless the table has none), `occurred_at` or null for now.
pub fn append(table: &OutboxTable, rows: usize) -> String {
    let Names { table, id, tenant, kind, subject, payload, headers, occurred_at, .. } = Names::of(table);
    let columns = [Some(tenant), Some(kind), Some(subject), Some(payload), headers, Some(occurred_at)];
    let columns: Vec<_> = columns.into_iter().flatten().collect();
    let row = format!("({}coalesce(?, {NOW}))", "?, ".repeat(columns.len() - 1));
    let rows = vec![row; rows.max(1)].join(", ");
    format!("INSERT INTO {table} ({}) VALUES {rows} RETURNING {id}", columns.join(", "))
}

/// The names of a table, quoted.
struct Names {
    table: String,
    id: String,
    tenant: String,
    kind: String,
    subject: String,
    payload: String,
    headers: Option<String>,
    occurred_at: String,
    published_at: String,
}

impl Names {
    fn of(table: &OutboxTable) -> Self {
        let columns = table.columns();
        let quote = |name: &str| quote(name, Dialect::Sqlite);
        Self {
            table: table.quoted(Dialect::Sqlite),
            id: quote(&columns.id),
            tenant: quote(&columns.tenant_id),
            kind: quote(&columns.kind),
            subject: quote(&columns.subject_id),
            payload: quote(&columns.payload),
            headers: columns.headers.as_deref().map(quote),
            occurred_at: quote(&columns.occurred_at),
            published_at: quote(&columns.published_at),
        }
    }

    /// What is read of a row, in the order in which drivers read it.
    fn row(&self) -> String {
        let Self { id, tenant, kind, subject, payload, headers, occurred_at, .. } = self;
        let headers = headers.as_ref().map_or_else(|| "NULL".to_owned(), |name| format!("o.{name}"));
        format!("o.{id}, o.{tenant}, o.{kind}, o.{subject}, o.{payload}, {headers}, o.{occurred_at}")
    }

    /// The pending rows of a tenant in id order. A range of one tenant, ordered by it, keeps to the index of
    /// pending rows: with `=`, the planner may walk the primary key through every published row instead.
    fn of_tenant(&self, tenant: &str, others: &str) -> String {
        let Self { table, id, tenant: column, published_at, .. } = self;
        format!(
            "FROM {table} AS o WHERE o.{column} >= {tenant} AND o.{column} <= {tenant} \
             AND o.{published_at} IS NULL{others} ORDER BY o.{column}, o.{id}"
        )
    }

    /// Looks each row up by its id, and compares what it finds there with what was handed out: whoever restores a
    /// backup gives ids to other messages.
    fn mark(&self, settling: Settling) -> String {
        let Self { table, id, occurred_at, published_at, .. } = self;
        let settle = if settling == Settling::Delete {
            format!("DELETE FROM {table} AS o")
        } else {
            format!("UPDATE {table} AS o SET {published_at} = {NOW}")
        };
        format!(
            "{settle} WHERE (o.{id}, o.{occurred_at}) IN (SELECT CAST(key AS INTEGER), value FROM main.json_each(?1)) \
             AND o.{published_at} IS NULL"
        )
    }

    /// Leaves subjects out. A row without a subject is none of theirs: it must not be passed over in silence.
    fn others(&self, subjects: &str) -> String {
        format!(" AND (o.{} IN (SELECT value FROM main.json_each({subjects}))) IS NOT TRUE", self.subject)
    }

    fn pending(&self) -> String {
        format!("SELECT {} {} LIMIT ?2", self.row(), self.of_tenant("?1", ""))
    }

    /// How many bytes a row has in every column that can be large. A text's own length counts characters, and stops at
    /// a NUL; a blob's is known without reading it.
    fn bytes(&self) -> String {
        let Self { tenant, kind, subject, payload, headers, .. } = self;
        let columns = [tenant, kind, subject, payload].into_iter().chain(headers.as_ref());
        let length = |column| {
            format!(
                "coalesce(CASE typeof(o.{column}) WHEN 'blob' THEN length(o.{column}) \
                 ELSE length(CAST(o.{column} AS BLOB)) END, 0)"
            )
        };
        columns.map(length).collect::<Vec<_>>().join(" + ")
    }

    fn claim(&self, others: &str) -> String {
        let Self { table, id, .. } = self;
        let (row, of_tenant, bytes) = (self.row(), self.of_tenant("?1", others), self.bytes());
        format!(
            "WITH oldest (id, bytes) AS (SELECT o.{id}, {bytes} {of_tenant} LIMIT ?2), \
             batch (id, before) AS (SELECT id, sum(bytes) OVER \
             (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) FROM oldest) \
             SELECT {row} FROM batch CROSS JOIN {table} AS o ON o.{id} = batch.id \
             WHERE batch.before IS NULL OR batch.before < ?3 ORDER BY batch.id"
        )
    }

    /// A loose index scan: from each tenant to the next one in the index of pending rows, however many rows it
    /// has. Texts sort after numbers and before blobs, so that a row whose tenant is no text, which nobody can
    /// ask for, does not end the walk.
    fn probe(&self, filter: &str) -> String {
        let Self { table, id, tenant, occurred_at, published_at, .. } = self;
        let next = |after: &str| {
            format!(
                "(SELECT o.{tenant} FROM {table} AS o WHERE o.{published_at} IS NULL \
                 AND o.{tenant} > {after} AND o.{tenant} < x'' ORDER BY o.{tenant} LIMIT 1)"
            )
        };
        let (first, following) = (next("''"), next("tenant.name"));
        let oldest = self.of_tenant("tenant.name", "");
        format!(
            "WITH RECURSIVE tenant (name) AS (SELECT {first} \
             UNION ALL SELECT {following} FROM tenant WHERE tenant.name IS NOT NULL) \
             SELECT o.{tenant}, o.{id}, o.{occurred_at}, {NOW} \
             FROM tenant CROSS JOIN {table} AS o ON o.{id} = (SELECT o.{id} {oldest} LIMIT 1){filter}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_headers_reads_and_writes_none() -> Result<(), InvalidTable> {
        let columns = crate::table::Columns { headers: None, ..crate::table::Columns::default() };
        let table = OutboxTable::default().with_columns(columns);
        assert!(!append(&table, 1).contains("headers"));
        assert!(SqliteStatements::new(&table)?.pending.contains(" NULL, o.\"occurred_at\""));
        Ok(())
    }

    #[test]
    fn a_table_that_cannot_be_has_no_statements() {
        assert!(SqliteStatements::new(&OutboxTable::new("")).is_err());
    }
}
