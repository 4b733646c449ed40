//! The statements that begin at a watermark, and those that ask for the safe id.

use std::sync::Arc;

use crate::dialect::Dialect;
use crate::dialect::postgres::Words;
use crate::identifier::literal;
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
    /// What the table is like, the last number of its sequence and whether locks are shown: see
    /// [`Suitability`](super::Suitability), which has the columns in this order. No parameters.
    pub facts: Arc<str>,
    /// The virtual transactions that hold a writer's lock on the table. To be sent after `facts` was, on the same
    /// connection. No parameters.
    pub writers: Arc<str>,
}

impl WatermarkStatements {
    pub(in crate::dialect::postgres) fn new(table: &OutboxTable, words: &Words) -> Self {
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
        "SELECT DISTINCT virtualtransaction FROM pg_locks\n\
         WHERE locktype = 'relation' AND relation = {name}::regclass\n  \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())\n  \
         AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')"
    )
}

/// The view answers what was drawn by whomsoever, whether it is committed or not; nothing, if nothing was.
fn facts(table: &OutboxTable) -> String {
    let name = literal(&table.quoted(Dialect::Postgres), Dialect::Postgres);
    let id = literal(&table.columns().id, Dialect::Postgres);
    format!(
        "SELECT t.relkind::text, t.relispartition OR EXISTS (SELECT FROM pg_inherits WHERE inhparent = t.oid),\n       \
         q.seqcache, q.seqincrement, has_sequence_privilege(q.seqrelid, 'USAGE, SELECT'),\n       \
         (SELECT last_value FROM pg_sequences WHERE schemaname = n.nspname AND sequencename = s.relname),\n       \
         EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())\n\
         FROM pg_class AS t\n\
         LEFT JOIN pg_sequence AS q ON q.seqrelid = pg_get_serial_sequence({name}, {id})::regclass\n\
         LEFT JOIN pg_class AS s ON s.oid = q.seqrelid\n\
         LEFT JOIN pg_namespace AS n ON n.oid = s.relnamespace\n\
         WHERE t.oid = {name}::regclass"
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
            let bounded = self.first(&format!("{{tenant}} > {after}.tenant AND {{tenant}} < {after}.upto"));
            let last = self.first(&format!("{after}.upto IS NULL AND {{tenant}} > {after}.tenant"));
            format!("({bounded})\n    UNION ALL\n    ({last})")
        };
        format!(
            "WITH RECURSIVE mark AS (\n  SELECT tenant, id, lead(tenant) OVER (ORDER BY tenant) AS upto\n  FROM (\n    \
             SELECT {tenant} AS tenant, {id} AS id FROM {table} WHERE false\n    UNION ALL\n    \
             SELECT * FROM unnest($1::text[], $2::bigint[])\n  ) AS given\n), passing AS (\n  \
             SELECT next.*, gap.upto\n  \
             FROM (SELECT '' AS tenant, min(tenant) AS upto FROM mark UNION ALL SELECT tenant, upto FROM mark) AS gap\n  \
             CROSS JOIN LATERAL (\n    {begin}\n  ) AS next\n  UNION ALL\n  SELECT next.*, passing.upto\n  \
             FROM passing CROSS JOIN LATERAL (\n    {go_on}\n  ) AS next\n)\n{oldest}\nFROM (\n  \
             SELECT tenant, id, occurred FROM passing\n  UNION ALL\n  SELECT first.* FROM mark CROSS JOIN LATERAL (\n    \
             {marked}\n  ) AS first\n) AS oldest",
            begin = next("gap"),
            go_on = next("passing"),
            marked = self.first(FROM_MARK),
            oldest = self.oldest(),
        )
    }

    fn probe_named_from(&self) -> String {
        format!(
            "{}\nFROM (SELECT DISTINCT * FROM unnest($1::text[], $2::bigint[]) AS given (tenant, id)) AS mark CROSS JOIN \
             LATERAL (\n    {}\n) AS oldest",
            self.oldest(),
            self.first(FROM_MARK),
        )
    }
}

/// The entries of one tenant from its watermark on.
const FROM_MARK: &str =
    "({tenant}, {id}) >= (mark.tenant, mark.id) AND {tenant} >= mark.tenant AND {tenant} <= mark.tenant";
