//! MySQL and MariaDB: every statement of the store, named for what it does, and generated once per table.
//!
//! They run on MariaDB from 10.6 and on MySQL from 8.0.14, and say nothing that only one of them understands
//! outside of a comment that the other one skips. Texts come and go as the bytes of UTF-8, so that no
//! connection's character set changes them; times as microseconds since 1970, so that no time zone does.
//! Parameters are `?`, in the order in which they are named here: texts and JSON as bytes, numbers as 64-bit
//! integers.

use std::fmt::Write as _;
use std::sync::Arc;

use outbox_core::{Settling, TenantId};

mod append;

pub use self::append::{APPENDED, ID_STEP, append, chunks, ids, micros};
use crate::dialect::Dialect;
use crate::identifier::quote;
use crate::mysql::server::SERVER;
use crate::table::{InvalidTable, OutboxTable, PayloadType};

/// The statements of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MySqlStatements {
    /// Changes no row, and fails where no row could be marked: on a read-only server, or without the right. Part
    /// of what a claim begins with.
    pub prove_writable: Arc<str>,
    /// Locks a tenant's row of the claims, if nobody has: tenant. A row says that it is locked now.
    pub lock: Arc<str>,
    /// Locks a row of the claims as soon as nobody else has it: tenant. For the sentinel alone, which is let go at
    /// once.
    pub wait: Arc<str>,
    /// Answers a row if there is a committed one for this tenant among the claims; waits for nobody: tenant.
    pub exists: Arc<str>,
    /// Adds a tenant's row to the claims. Only for whoever has the sentinel locked: tenant.
    pub add: Arc<str>,
    /// A tenant's oldest pending messages, cut where those before have the bytes: tenant, limit, bytes.
    pub claim: Arc<str>,
    claim_others: (Arc<str>, Arc<str>),
    /// A tenant's oldest pending messages: tenant, limit.
    pub pending: Arc<str>,
    /// The oldest pending message of some tenants: tenant, id, microseconds or null, the server's time. The
    /// parameter is [`json_tenants`].
    pub probe_named: Arc<str>,
    /// A step of the walk over whichever tenants have something: tenant, its lowest id met, how many of its
    /// entries were met, microseconds or null, the server's time. Parameters: the tenant after which to look, how
    /// many entries to meet.
    pub probe_next: Arc<str>,
    /// Marks messages, or deletes them: a JSON array of ids. The rows affected are those settled.
    pub mark: Arc<str>,
}

/// Stands for the placeholders of subjects. No name can hold a NUL.
const SUBJECTS: &str = "\0";

/// The tenant whose row among the claims no tenant has: who adds a row holds it.
pub const SENTINEL: &str = "";

impl MySqlStatements {
    /// The statements of this table.
    ///
    /// # Errors
    /// [`InvalidTable`], if MySQL can hold no such table.
    pub fn new(table: &OutboxTable) -> Result<Self, InvalidTable> {
        table.check(Dialect::MySql)?;
        let words = Words::new(table);
        let Words { claims, .. } = &words;
        Ok(Self {
            prove_writable: words.prove_writable(Settling::Mark).into(),
            lock: format!("SELECT 1 FROM {claims} WHERE `tenant_id` = ? FOR UPDATE SKIP LOCKED").into(),
            wait: format!("SELECT 1 FROM {claims} WHERE `tenant_id` = ? FOR UPDATE").into(),
            exists: format!("SELECT 1 FROM {claims} WHERE `tenant_id` = ?").into(),
            add: format!("INSERT INTO {claims} (`tenant_id`) VALUES (?)").into(),
            claim: words.claim("").into(),
            claim_others: words.claim_others(),
            pending: words.pending().into(),
            probe_named: words.probe_named().into(),
            probe_next: words.probe_next().into(),
            mark: words.mark(Settling::Mark).into(),
        })
    }

    /// The same for a store that settles so. The table is the one that these are of.
    pub fn with_settling(mut self, table: &OutboxTable, settling: Settling) -> Self {
        let words = Words::new(table);
        self.prove_writable = words.prove_writable(settling).into();
        self.mark = words.mark(settling).into();
        self
    }

    /// What a claim reads, which leaves these subjects out and walks past their rows: [`Self::claim`] if there are
    /// none. Parameters: tenant, the subjects answered, limit, bytes.
    ///
    /// The subjects are those given, the last one repeated: a few lengths, so that few statements are prepared.
    pub(super) fn claim_without<'s>(&self, subjects: &'s [String]) -> (Arc<str>, Vec<&'s str>) {
        let Some(last) = subjects.last() else { return (Arc::clone(&self.claim), Vec::new()) };
        let padded: Vec<&str> = subjects
            .iter()
            .chain(std::iter::repeat(last))
            .map(String::as_str)
            .take(subjects.len().next_power_of_two())
            .collect();
        (self.claim_others(padded.len()).into(), padded)
    }

    /// As `claim`, of other subjects than so many.
    fn claim_others(&self, subjects: usize) -> String {
        let (before, behind) = &self.claim_others;
        format!("{before}{}{behind}", vec!["?"; subjects.max(1)].join(", "))
    }
}

/// Tenants as the JSON array that [`MySqlStatements::probe_named`] takes: each once, its bytes in hexadecimal
/// digits.
pub fn json_tenants<'a>(tenants: impl IntoIterator<Item = &'a TenantId>) -> String {
    let mut tenants: Vec<&str> = tenants.into_iter().map(TenantId::as_str).collect();
    tenants.sort_unstable();
    tenants.dedup();
    let mut json = String::from("[");
    for (index, tenant) in tenants.into_iter().enumerate() {
        json.push_str(if index == 0 { "\"" } else { ",\"" });
        for byte in tenant.bytes() {
            let _ = write!(json, "{byte:02x}");
        }
        json.push('"');
    }
    json.push(']');
    json
}

/// The quoted names.
struct Words {
    table: String,
    /// The table as `o`, read by its primary key and in no other way, however few rows the server takes it to
    /// have: a scan would wait for rows that the application is writing.
    by_id: String,
    claims: String,
    id: String,
    tenant: String,
    kind: String,
    subject: String,
    payload: String,
    headers: Option<String>,
    occurred_at: String,
    published_at: String,
    payload_type: PayloadType,
}

impl Words {
    fn new(table: &OutboxTable) -> Self {
        let word = |name: &str| quote(name, Dialect::MySql);
        let columns = table.columns();
        Self {
            table: table.quoted(Dialect::MySql),
            by_id: format!("{} AS o FORCE INDEX (PRIMARY)", table.quoted(Dialect::MySql)),
            claims: table.beside(&table.claims_name(), Dialect::MySql),
            id: word(&columns.id),
            tenant: word(&columns.tenant_id),
            kind: word(&columns.kind),
            subject: word(&columns.subject_id),
            payload: word(&columns.payload),
            headers: columns.headers.as_deref().map(word),
            occurred_at: word(&columns.occurred_at),
            published_at: word(&columns.published_at),
            payload_type: table.payload_type(),
        }
    }

    fn prove_writable(&self, settling: Settling) -> String {
        let Self { table, published_at, .. } = self;
        if settling == Settling::Delete {
            return format!("DELETE FROM {table} WHERE FALSE");
        }
        format!("UPDATE {table} SET {published_at} = {published_at} WHERE FALSE")
    }

    /// The ids of the oldest pending rows of a tenant. From the index alone: where other columns are read beside
    /// it, MariaDB may take the whole tenant and sort it. It orders by the id and nothing else for the same
    /// reason.
    fn oldest(&self, others: &str) -> String {
        format!("{}{others} ORDER BY p.{} LIMIT ?", self.pending_of("?"), self.id)
    }

    fn pending_of(&self, tenant: &str) -> String {
        let Self { table, id, tenant: column, published_at, .. } = self;
        format!(
            "SELECT p.{id} AS `id` FROM {table} AS p\n    \
             WHERE p.{published_at} IS NULL AND p.{column} = {tenant}"
        )
    }

    /// A message's columns, in the order in which they are read.
    fn message(&self) -> String {
        let Self { id, tenant, kind, subject, payload, occurred_at, .. } = self;
        let payload = match self.payload_type {
            PayloadType::Bytes => format!("o.{payload}"),
            PayloadType::Text | PayloadType::Jsonb => utf8(payload),
        };
        let headers = self.headers.as_deref().map_or_else(|| "NULL".to_owned(), utf8);
        let (kind, micros) = (utf8(kind), since_epoch(&format!("o.{occurred_at}")));
        format!("o.{id}, o.{tenant}, {kind}, o.{subject}, {payload}, {headers},\n       {micros}")
    }

    fn pending(&self) -> String {
        let Self { by_id, id, .. } = self;
        format!(
            "SELECT {message}\nFROM (\n    {oldest}\n) AS `oldest` STRAIGHT_JOIN {by_id} \
             ON o.{id} = `oldest`.`id`\nORDER BY `oldest`.`id`",
            message = self.message(),
            oldest = self.oldest(""),
        )
    }

    /// What stands before the placeholders of the subjects, and behind them.
    fn claim_others(&self) -> (Arc<str>, Arc<str>) {
        // A row without a subject is none of theirs: it must not be passed over in silence.
        let claim = self.claim(&format!(" AND (p.{} IN ({SUBJECTS})) IS NOT TRUE", self.subject));
        let (before, behind) = claim.split_once(SUBJECTS).unwrap_or((&claim, ""));
        (before.into(), behind.into())
    }

    /// How many bytes a row has in every column that can be large.
    fn bytes(&self) -> String {
        let Self { tenant, kind, subject, payload, headers, .. } = self;
        let columns = [tenant, kind, subject, payload].into_iter().chain(headers.as_ref());
        columns.map(|column| format!("coalesce(octet_length(o.{column}), 0)")).collect::<Vec<_>>().join(" + ")
    }

    /// Derived tables, and no named ones: a name there would hide a table that is called so.
    fn claim(&self, others: &str) -> String {
        let Self { by_id, id, .. } = self;
        format!(
            "SELECT {message}\nFROM (\n    \
             SELECT `oldest`.`id`, sum({bytes}) OVER (\n        \
             ORDER BY `oldest`.`id` ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING\n    \
             ) AS `bytes_before`\n    \
             FROM (\n    {oldest}\n    ) AS `oldest` STRAIGHT_JOIN {by_id} ON o.{id} = `oldest`.`id`\n\
             ) AS `batch` STRAIGHT_JOIN {by_id} ON o.{id} = `batch`.`id`\n\
             WHERE `batch`.`bytes_before` IS NULL OR `batch`.`bytes_before` < ?\nORDER BY `batch`.`id`",
            oldest = self.oldest(others),
            bytes = self.bytes(),
            message = self.message(),
        )
    }

    /// A look into the index for each tenant asked for. The ids come first, in a derived table: where the row is
    /// looked for by the question itself, MySQL asks it of every row there is. The order begins with the tenant:
    /// else MySQL walks the primary key, since the tenant is no constant here.
    fn probe_named(&self) -> String {
        let Self { by_id, id, tenant, occurred_at, .. } = self;
        format!(
            "SELECT o.{tenant}, o.{id}, 1, {micros}, {now}\nFROM (\n    \
             SELECT (\n    {oldest} ORDER BY p.{tenant}, p.{id} LIMIT 1\n    ) AS `id`\n    \
             FROM json_table(convert(? USING utf8mb4), '$[*]' COLUMNS (`hex` varchar(510) PATH '$')) AS `named`\n\
             ) AS `first` STRAIGHT_JOIN {by_id} ON o.{id} = `first`.`id`\n\
             UNION ALL\n{SERVER}",
            micros = since_epoch(&format!("o.{occurred_at}")),
            now = since_epoch(NOW),
            oldest = self.pending_of("unhex(`named`.`hex`)"),
        )
    }

    fn probe_next(&self) -> String {
        let Self { table, by_id, id, tenant, occurred_at, published_at, .. } = self;
        format!(
            "SELECT STRAIGHT_JOIN `first`.`tenant`, `first`.`id`, `first`.`entries`, {micros}, {now}\nFROM (\n    \
             SELECT `entry`.`tenant`, min(`entry`.`id`) AS `id`, count(*) AS `entries` FROM (\n        \
             SELECT o.{tenant} AS `tenant`, o.{id} AS `id` FROM {table} AS o\n        \
             WHERE o.{published_at} IS NULL AND o.{tenant} > ? ORDER BY o.{tenant}, o.{id} LIMIT ?\n    \
             ) AS `entry` GROUP BY `entry`.`tenant`\n) AS `first`\nJOIN {by_id} ON o.{id} = `first`.`id`\n\
             UNION ALL\n{SERVER}",
            micros = since_epoch(&format!("o.{occurred_at}")),
            now = since_epoch(NOW),
        )
    }

    fn mark(&self, settling: Settling) -> String {
        let Self { by_id, id, published_at, .. } = self;
        let given = format!(
            "(\n    SELECT `each`.`id` FROM json_table(\n        \
             convert(? USING utf8mb4), '$[*]' COLUMNS (`id` bigint PATH '$')\n    ) AS `each`\n\
             ) AS `given` STRAIGHT_JOIN {by_id} ON o.{id} = `given`.`id`"
        );
        let pending = format!("WHERE o.{published_at} IS NULL");
        if settling == Settling::Delete {
            return format!("DELETE o FROM {given}\n{pending}");
        }
        format!("UPDATE {given}\nSET o.{published_at} = {NOW}\n{pending}")
    }
}

/// The server's time, in UTC whatever the session's time zone.
pub(crate) const NOW: &str = "utc_timestamp(6)";

/// A column of text as the bytes of UTF-8, whatever its own character set and the connection's. Unlike a cast, no
/// setting of the server cuts what is large to a null.
fn utf8(column: &str) -> String {
    format!("convert(convert(o.{column} USING utf8mb4) USING binary)")
}

/// A time in microseconds since 1970; null if it is none, as `0000-00-00` is.
fn since_epoch(time: &str) -> String {
    format!("timestampdiff(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', {time})")
}

#[cfg(test)]
mod tests {
    use outbox_core::InvalidTenantId;

    use super::*;

    #[test]
    fn a_table_without_headers_reads_none() -> Result<(), InvalidTable> {
        let statements = MySqlStatements::new(&OutboxTable::prisma("OutboxMessage"))?;
        assert!(statements.claim.contains(", NULL,\n"), "{}", statements.claim);
        assert!(!statements.pending.contains("headers"), "{}", statements.pending);
        Ok(())
    }

    #[test]
    fn a_table_that_cannot_be_has_no_statements() {
        assert!(MySqlStatements::new(&OutboxTable::new("")).is_err());
    }

    #[test]
    fn tenants_are_asked_for_by_their_bytes_and_once() -> Result<(), InvalidTenantId> {
        let tenants = [TenantId::new("é")?, TenantId::new("A\"")?, TenantId::new("é")?];
        assert_eq!(json_tenants(&tenants), r#"["4122","c3a9"]"#);
        assert_eq!(json_tenants([]), "[]");
        Ok(())
    }
}
