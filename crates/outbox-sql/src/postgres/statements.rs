//! PostgreSQL: every statement of the store, named for what it does, and generated once per table.
//!
//! Every function, type, operator and catalog of the server's own is named with its schema, `pg_catalog`: what a
//! session's `search_path` finds first may be another of the same name. The `search_path` itself is left as it is, for
//! triggers of the application run in our transactions.

use std::fmt::Write as _;
use std::sync::Arc;

use outbox_core::{Settling, TenantId};

mod operator;
mod probe;
mod watermark;

use self::operator::{DIV, EQ, GE, LE, MOD, PLUS, TIMES};
pub use self::watermark::WatermarkStatements;
use super::lock_key::tenant_lock_name;
use crate::dialect::Dialect;
use crate::identifier::{escaped_literal, literal, quote};
use crate::table::{InvalidTable, OutboxTable, PayloadType, TimeType};

/// The statements of one table. Parameters are numbered in the order in which they are named here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PostgresStatements {
    /// Tries to lock a tenant for this transaction, and says whether its rows may be settled: tenant.
    pub lock: Arc<str>,
    /// The same, around the tenant as a literal.
    pub(super) lock_around: [Arc<str>; 2],
    /// A tenant's oldest pending messages, cut where those before have the bytes: tenant, limit, bytes.
    pub claim: Arc<str>,
    /// The same of other subjects than these: tenant, limit, bytes, an array of subjects. Rows of theirs are
    /// walked past.
    pub claim_others: Arc<str>,
    /// A tenant's oldest pending messages: tenant, limit.
    pub pending: Arc<str>,
    /// Each tenant's oldest pending message: tenant, id, microseconds or null, the server's time.
    pub probe: Arc<str>,
    /// The same of some tenants, looked for one by one: an array of them.
    pub probe_named: Arc<str>,
    /// Marks messages, or deletes them: an array of ids. How many it were is in the answer's tag.
    pub mark: Arc<str>,
    /// Appends messages in the order given, and answers their ids: arrays of tenants, kinds, subjects, payloads,
    /// headers as JSON (not where the table has no such column) and microseconds.
    pub append: Arc<str>,
    /// Those of a store with watermarks.
    pub watermark: WatermarkStatements,
}

impl PostgresStatements {
    /// The statements of this table, for a store that marks.
    ///
    /// # Errors
    /// [`InvalidTable`], if PostgreSQL can hold no such table.
    pub fn new(table: &OutboxTable) -> Result<Self, InvalidTable> {
        table.check(Dialect::Postgres)?;
        let words = Words::new(table);
        Ok(Self {
            lock: words.lock(table, Settling::Mark, "$1").into(),
            lock_around: around(&words.lock(table, Settling::Mark, "\0")),
            claim: words.claim(&words.whole(), "").into(),
            claim_others: words.claim(&words.whole(), &words.others("$4")).into(),
            pending: words.pending().into(),
            probe: words.probe().into(),
            probe_named: words.probe_named().into(),
            mark: words.mark(Settling::Mark).into(),
            append: words.append().into(),
            watermark: WatermarkStatements::new(table, &words),
        })
    }

    /// The same for a store that settles so. The table is the one that these are of.
    pub fn with_settling(mut self, table: &OutboxTable, settling: Settling) -> Self {
        let words = Words::new(table);
        self.lock = words.lock(table, settling, "$1").into();
        self.lock_around = around(&words.lock(table, settling, "\0"));
        self.mark = words.mark(settling).into();
        self
    }

    /// [`lock`](Self::lock) without a parameter, to be sent in one text with the statements that begin.
    pub fn lock_of(&self, tenant: &TenantId) -> String {
        let [before, after] = &self.lock_around;
        format!("{before}{}{after}", escaped_literal(tenant.as_str()))
    }

    /// What a claim reads with: from an id on if there is one, and without some subjects if it excludes any.
    pub(super) fn claim_from(&self, from: Option<i64>, excludes: bool) -> &Arc<str> {
        match (from, excludes) {
            (None, false) => &self.claim,
            (None, true) => &self.claim_others,
            (Some(_), false) => &self.watermark.claim,
            (Some(_), true) => &self.watermark.claim_others,
        }
    }
}

/// The rows of arrays side by side, which are the first parameters. (An `unnest` of several arrays has no schema.)
fn arrays(types: &[&str]) -> String {
    let array = |(index, name)| format!("pg_catalog.unnest(${}::pg_catalog.{name}[])", index + 1);
    format!("ROWS FROM ({})", types.iter().enumerate().map(array).collect::<Vec<_>>().join(", "))
}

/// What is before and what is behind the place of a literal, which is a NUL: no name has one.
fn around(statement: &str) -> [Arc<str>; 2] {
    let (before, after) = statement.split_once('\0').unwrap_or((statement, ""));
    [before.into(), after.into()]
}

/// The quoted names, and the expressions that a table's types need.
struct Words {
    table: String,
    id: String,
    tenant: String,
    kind: String,
    subject: String,
    payload: String,
    headers: Option<String>,
    occurred_at: String,
    published_at: String,
    payload_type: PayloadType,
    time_type: TimeType,
}

impl Words {
    fn new(table: &OutboxTable) -> Self {
        let word = |name: &str| quote(name, Dialect::Postgres);
        let columns = table.columns();
        Self {
            table: table.quoted(Dialect::Postgres),
            id: word(&columns.id),
            tenant: word(&columns.tenant_id),
            kind: word(&columns.kind),
            subject: word(&columns.subject_id),
            payload: word(&columns.payload),
            headers: columns.headers.as_deref().map(word),
            occurred_at: word(&columns.occurred_at),
            published_at: word(&columns.published_at),
            payload_type: table.payload_type(),
            time_type: table.time_type(),
        }
    }

    fn lock(&self, table: &OutboxTable, settling: Settling, tenant: &str) -> String {
        let literal = |text: &str| literal(text, Dialect::Postgres);
        let name = literal(&tenant_lock_name(table));
        let (quoted, column) = (literal(&self.table), literal(&table.columns().published_at));
        let may_settle = if settling == Settling::Delete {
            format!("pg_catalog.has_table_privilege({quoted}, 'DELETE')")
        } else {
            format!("pg_catalog.has_column_privilege({quoted}, {column}, 'UPDATE')")
        };
        format!(
            "SELECT pg_catalog.pg_try_advisory_xact_lock(\n           \
             pg_catalog.hashtext({name}), pg_catalog.hashtext({tenant})\n       ),\n       {may_settle}"
        )
    }

    /// The index's own condition and order. A tenant equal to `$1` is written as a range, and the order begins
    /// with it: else, after an ANALYZE in a backlog, the primary key looks cheaper, with every published row.
    fn whole(&self) -> String {
        format!("{} {GE} $1", self.tenant)
    }

    /// The tenant's entries from this id on: the scan starts there, at no dead entry below. The range of the tenant
    /// is for the planner, which does not see it in the comparison of a row, and would rather sort a backlog.
    fn from(&self, id: &str) -> String {
        format!("({}, {}) {GE} ($1, {id}) AND {}", self.tenant, self.id, self.whole())
    }

    /// The planner is not told the limit: a limit above what it believes to be pending would have it sort all that is.
    fn pending_from(&self, start: &str, others: &str) -> String {
        let Self { table, id, tenant, published_at, .. } = self;
        format!(
            "FROM {table}\n    WHERE {start} AND {tenant} {LE} $1 AND {published_at} IS NULL{others}\n    \
             ORDER BY {tenant}, {id}\n    LIMIT (SELECT $2::pg_catalog.int8)"
        )
    }

    /// Leaves subjects out. A row without a subject is none of theirs: it must not be passed over in silence.
    fn others(&self, subjects: &str) -> String {
        format!("\n          AND ({} {EQ} ANY ({subjects})) IS NOT TRUE", self.subject)
    }

    /// A message's columns, in the order in which they are read. The time is as the server keeps it: to make a number
    /// of it here took the server longer than to read the row.
    fn message(&self) -> String {
        let Self { id, tenant, kind, subject, occurred_at, .. } = self;
        let payload = match self.payload_type {
            PayloadType::Bytes => self.payload.clone(),
            PayloadType::Text => format!("pg_catalog.convert_to({}, 'UTF8')", self.payload),
            PayloadType::Jsonb => {
                format!("pg_catalog.convert_to({}::pg_catalog.text, 'UTF8')", self.payload)
            }
        };
        let headers = self.headers.as_deref().unwrap_or("NULL");
        format!("{id}, {tenant}, {kind}, {subject}, {payload}, {headers}::pg_catalog.text, {occurred_at}")
    }

    fn pending(&self) -> String {
        format!("SELECT {}\n    {}", self.message(), self.pending_from(&self.whole(), ""))
    }

    /// How many bytes of a row are sent, every column that can be large. The length of a text and of bytes is in the
    /// value's header: neither is fetched or unpacked for it. Of JSON there is only the length that it has here, packed,
    /// and none of its text, which can be a thousand times as long: it has to be made.
    fn bytes(&self) -> String {
        let as_text = |column: &str| format!("{column}::pg_catalog.text");
        let payload = match self.payload_type {
            PayloadType::Bytes | PayloadType::Text => self.payload.clone(),
            PayloadType::Jsonb => as_text(&self.payload),
        };
        let texts = [self.tenant.clone(), self.kind.clone(), self.subject.clone(), payload];
        let columns = texts.into_iter().chain(self.headers.as_deref().map(as_text));
        let length = |column| format!("coalesce(pg_catalog.octet_length({column}), 0)");
        columns.map(length).collect::<Vec<_>>().join(&format!(" {PLUS} "))
    }

    /// Two looks at the same rows: at how many bytes they are, up to the row that is too much, and, from the first of
    /// them on, at those that are handed out.
    fn claim(&self, from: &str, others: &str) -> String {
        let Self { id, tenant, kind, subject, payload, occurred_at, .. } = self;
        // By name: the right to read these is enough.
        let mut columns = format!("{id}, {tenant}, {kind}, {subject}, {payload}, {occurred_at}");
        if let Some(headers) = &self.headers {
            let _ = write!(columns, ", {headers}");
        }
        format!(
            "WITH batch AS MATERIALIZED (\n  \
             SELECT pg_catalog.min(id) AS first, pg_catalog.max(place) AS cut\n  FROM (\n    \
             SELECT id, place FROM (\n      \
             SELECT {tenant} AS tenant, {id} AS id,\n        \
             pg_catalog.sum({payload}) OVER before AS bytes, pg_catalog.count(*) OVER before AS place\n      \
             FROM (\n    SELECT {tenant}, {id}, {bytes} AS {payload}\n    {pending}\n    ) AS message\n      \
             WINDOW before AS (ORDER BY {tenant}, {id} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)\n    \
             ) AS message\n    WHERE bytes IS NULL OR bytes {GE} $3\n    \
             ORDER BY tenant, id\n    LIMIT 2\n  ) AS ends\n)\n\
             SELECT {message}\nFROM (\n    SELECT {columns}\n    {from_first}\n) AS message\n\
             ORDER BY {tenant}, {id}\n\
             LIMIT (SELECT CASE WHEN cut {LE} 0 THEN $2 ELSE cut END FROM batch)",
            message = self.message(),
            bytes = self.bytes(),
            pending = self.pending_from(from, others),
            from_first = self.pending_from(&self.from("(SELECT first FROM batch)"), others),
        )
    }

    /// By the primary key, and by nothing else. "Is null" is asked in words that do not match the index's condition:
    /// with statistics from before a backlog that index looks empty, and each mark would read all that is pending.
    fn mark(&self, settling: Settling) -> String {
        let Self { table, id, published_at, .. } = self;
        let settle = if settling == Settling::Delete {
            format!("DELETE FROM {table}")
        } else {
            format!("UPDATE {table} SET {published_at} = {}", self.time("pg_catalog.clock_timestamp()"))
        };
        format!("{settle}\nWHERE {id} {EQ} ANY ($1) AND ({published_at} IS NULL) IS TRUE")
    }

    fn append(&self) -> String {
        let Self { table, id, tenant, kind, subject, payload, occurred_at, .. } = self;
        let (payload_type, payload_value) = match self.payload_type {
            PayloadType::Bytes => ("bytea", "payload"),
            PayloadType::Text => ("text", "payload"),
            PayloadType::Jsonb => ("text", "payload::pg_catalog.jsonb"),
        };
        let mut columns = format!("{tenant}, {kind}, {subject}, {payload}");
        let mut values = format!("tenant, kind, subject, {payload_value}");
        let mut types = vec!["text", "text", "text", payload_type];
        let mut names = "tenant, kind, subject, payload".to_owned();
        if let Some(headers) = &self.headers {
            let _ = write!(columns, ", {headers}");
            values.push_str(", headers::pg_catalog.jsonb");
            types.push("text");
            names.push_str(", headers");
        }
        types.push("int8");
        // Hours and the rest apart: an interval is multiplied as a floating number, exact for each of the two.
        let given = format!(
            "pg_catalog.timestamptz 'epoch' {PLUS} ((micros {DIV} 3600000000) {TIMES} pg_catalog.interval '1 hour') \
             {PLUS} ((micros {MOD} 3600000000) {TIMES} pg_catalog.interval '1 microsecond')"
        );
        let time = self.time(&format!("coalesce({given}, pg_catalog.clock_timestamp())"));
        format!(
            "INSERT INTO {table} ({columns}, {occurred_at})\nSELECT {values},\n       {time}\n\
             FROM {arrays}\n     WITH ORDINALITY AS message ({names}, micros, place)\n\
             ORDER BY place\nRETURNING {id}",
            arrays = arrays(&types),
        )
    }

    /// A `timestamptz` as the columns hold it.
    fn time(&self, time: &str) -> String {
        match self.time_type {
            TimeType::Micros => time.to_owned(),
            TimeType::UtcMillis => format!("({time}) AT TIME ZONE 'UTC'"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_has_the_typescript_relay_s_key_and_its_scope() -> Result<(), InvalidTable> {
        let lock = PostgresStatements::new(&OutboxTable::prisma("OutboxMessage"))?.lock;
        assert!(
            lock.contains(
                "(\n           pg_catalog.hashtext('public.outboxMessage'), pg_catalog.hashtext($1)\n       )"
            ),
            "{lock}"
        );
        Ok(())
    }

    #[test]
    fn a_table_that_cannot_be_has_no_statements() {
        assert!(PostgresStatements::new(&OutboxTable::new("")).is_err());
    }
}
