//! The statements that begin at a watermark, and those that ask for the safe id.

use std::sync::Arc;

use super::operator::{EQ, GE, GT, LE, LT};
use super::{Words, arrays};
use crate::dialect::Dialect;
use crate::identifier::literal;
use crate::postgres::server::SERVER;
use crate::table::OutboxTable;

/// The statements of one table. Parameters are numbered in the order in which they are named here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatermarkStatements {
    /// A tenant's oldest pending messages from this id on: as the claim's own statement, and the id.
    pub claim: Arc<str>,
    /// The same of other subjects than these: as the claim's own statement, and the id.
    pub claim_others: Arc<str>,
    /// Each tenant's oldest pending message, of some from an id on: an array of these, and of their ids. Answers as
    /// the probe's own statement.
    pub probe: Arc<str>,
    /// The same of these tenants alone, looked for one by one: an array of them, and one of ids, of which the lowest
    /// number is none.
    pub probe_named: Arc<str>,
    /// What the table is like, the last number of its sequence and whether locks are shown: the fields of `Suitability`,
    /// in this order. No parameters.
    pub facts: Arc<str>,
    /// The virtual transactions that hold a writer's lock on the table. To be sent after `facts` was, on the same
    /// connection. No parameters.
    pub writers: Arc<str>,
}

impl WatermarkStatements {
    pub(super) fn new(table: &OutboxTable, words: &Words) -> Self {
        Self {
            claim: words.claim(&words.from("$4"), "").into(),
            claim_others: words.claim(&words.from("$5"), &words.others("$4")).into(),
            probe: words.probe_from().into(),
            probe_named: words.probe_named_from().into(),
            facts: facts(table).into(),
            writers: writers(table).into(),
        }
    }
}

/// Each statement's table has no children, so it is one relation. Locks of another database may have its number.
fn writers(table: &OutboxTable) -> String {
    let name = literal(&table.quoted(Dialect::Postgres), Dialect::Postgres);
    format!(
        "SELECT DISTINCT virtualtransaction FROM pg_catalog.pg_locks\n\
         WHERE locktype {EQ} 'relation' AND relation {EQ} {name}::pg_catalog.regclass\n  \
         AND database {EQ} (\n    SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname {EQ} pg_catalog.current_database()\n  )\n  \
         AND mode {EQ} ANY ('{{{WRITING}}}'::pg_catalog.text[])"
    )
}

/// The modes of a writer's lock, and those above them.
const WRITING: &str = "RowExclusiveLock,ShareRowExclusiveLock,ExclusiveLock,AccessExclusiveLock";

/// The view answers what was drawn by whomsoever, whether it is committed or not; nothing, if nothing was.
fn facts(table: &OutboxTable) -> String {
    let name = literal(&table.quoted(Dialect::Postgres), Dialect::Postgres);
    let id = literal(&table.columns().id, Dialect::Postgres);
    format!(
        "SELECT t.relkind::pg_catalog.text,\n       \
         t.relispartition OR EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent {EQ} t.oid),\n       \
         q.seqcache, q.seqincrement, pg_catalog.has_sequence_privilege(q.seqrelid, 'USAGE, SELECT'),\n       \
         (SELECT last_value FROM pg_catalog.pg_sequences\n        \
         WHERE schemaname {EQ} n.nspname AND sequencename {EQ} s.relname),\n       \
         EXISTS (SELECT FROM pg_catalog.pg_locks\n               \
         WHERE locktype {EQ} 'advisory' AND pid {EQ} pg_catalog.pg_backend_pid())\n\
         FROM pg_catalog.pg_class AS t\n\
         LEFT JOIN pg_catalog.pg_sequence AS q\n       \
         ON q.seqrelid {EQ} pg_catalog.pg_get_serial_sequence({name}, {id})::pg_catalog.regclass\n\
         LEFT JOIN pg_catalog.pg_class AS s ON s.oid {EQ} q.seqrelid\n\
         LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid {EQ} s.relnamespace\n\
         WHERE t.oid {EQ} {name}::pg_catalog.regclass"
    )
}

impl Words {
    /// A loose scan of the gaps between the tenants with a watermark, side by side, and one look at each of these.
    ///
    /// The tenants are in the order of their column, whatever its collation: the branch that answers nothing gives
    /// the others its own.
    fn probe_from(&self) -> String {
        let Self { table, id, tenant, .. } = self;
        let next = |after: &str| {
            let bounded =
                self.first(&format!("{{tenant}} {GT} {after}.tenant AND {{tenant}} {LT} {after}.upto"));
            let last = self.first(&format!("{after}.upto IS NULL AND {{tenant}} {GT} {after}.tenant"));
            format!("({bounded})\n    UNION ALL\n    ({last})")
        };
        format!(
            "WITH RECURSIVE mark AS (\n  \
             SELECT tenant, id, pg_catalog.lead(tenant) OVER (ORDER BY tenant) AS upto\n  FROM (\n    \
             SELECT {tenant} AS tenant, {id} AS id FROM {table} WHERE false\n    UNION ALL\n    \
             SELECT * FROM {arrays} AS given\n  ) AS given\n), passing AS (\n  \
             SELECT next.*, gap.upto\n  \
             FROM (\n    SELECT '' AS tenant, pg_catalog.min(tenant) AS upto FROM mark\n    UNION ALL\n    \
             SELECT tenant, upto FROM mark\n  ) AS gap\n  \
             CROSS JOIN LATERAL (\n    {begin}\n  ) AS next\n  UNION ALL\n  SELECT next.*, passing.upto\n  \
             FROM passing CROSS JOIN LATERAL (\n    {go_on}\n  ) AS next\n)\n{oldest}\nFROM (\n  \
             SELECT tenant, id, occurred FROM passing\n  UNION ALL\n  SELECT first.* FROM mark CROSS JOIN LATERAL (\n    \
             {marked}\n  ) AS first\n) AS oldest\nUNION ALL\n{SERVER}",
            begin = next("gap"),
            go_on = next("passing"),
            arrays = arrays(&MARKS),
            marked = self.first(&from_mark()),
            oldest = self.oldest(),
        )
    }

    fn probe_named_from(&self) -> String {
        format!(
            "{}\nFROM (SELECT DISTINCT * FROM {} AS given (tenant, id)) AS mark CROSS JOIN LATERAL (\n    {}\n) AS oldest\nUNION ALL\n{SERVER}",
            self.oldest(),
            arrays(&MARKS),
            self.first(&from_mark()),
        )
    }
}

/// The types of the arrays of tenants and of ids.
const MARKS: [&str; 2] = ["text", "int8"];

/// The entries of one tenant from its watermark on.
fn from_mark() -> String {
    format!(
        "({{tenant}}, {{id}}) {GE} (mark.tenant, mark.id) AND {{tenant}} {GE} mark.tenant AND {{tenant}} {LE} mark.tenant"
    )
}
