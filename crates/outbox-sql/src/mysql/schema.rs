//! The DDL of a table on MySQL and MariaDB.

use crate::dialect::Dialect;
use crate::identifier::{literal, quote};
use crate::table::{InvalidTable, OutboxTable, PayloadType, TimeType};

/// The version of the schema, recorded in the comments of both tables.
pub const SCHEMA_VERSION: u32 = 1;

/// The comment of a table of this version: `outbox schema 1`.
pub fn version_comment() -> String {
    format!("outbox schema {SCHEMA_VERSION}")
}

/// The statements that create the table with its index, and the table of claims with its sentinel. The database
/// must exist.
///
/// # Errors
/// [`InvalidTable`], if MySQL can hold no such table.
pub fn create_table(table: &OutboxTable) -> Result<String, InvalidTable> {
    statements(table, "", "")
}

/// The same, which change nothing that is there.
///
/// # Errors
/// As [`create_table`].
pub fn create_table_if_missing(table: &OutboxTable) -> Result<String, InvalidTable> {
    statements(table, "IF NOT EXISTS ", "IGNORE ")
}

fn statements(table: &OutboxTable, unless: &str, ignore: &str) -> Result<String, InvalidTable> {
    table.check(Dialect::MySql)?;
    let word = |name: &str| quote(name, Dialect::MySql);
    let names = table.columns();
    let payload = match table.payload_type() {
        PayloadType::Bytes => "longblob",
        PayloadType::Text | PayloadType::Jsonb => "longtext",
    };
    let precision = match table.time_type() {
        TimeType::Micros => 6,
        TimeType::UtcMillis => 3,
    };
    let headers = names.headers.as_deref().map(word).map(|headers| {
        format!(
            "    {headers} json NULL CHECK (json_valid({headers}) AND json_type({headers}) = 'OBJECT'),\n"
        )
    });
    Ok(format!(
        "\
-- The transactional outbox. A row is a message that its application's transaction committed; it is pending while
-- its last column is null. The first column is the order and, with the table's name, the deduplication key.
-- Tenant and subject are bytes, which compare as such: collations of text ignore spaces at the end. Times are in
-- UTC.
CREATE TABLE {unless}{table} (
    {id} bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    {tenant} varbinary(255) NOT NULL CHECK (octet_length({tenant}) > 0),
    {kind} varchar(255) NOT NULL,
    {subject} varbinary(1024) NOT NULL,
    {payload_name} {payload} NULL,
{headers}    {occurred_at} datetime({precision}) NOT NULL DEFAULT (utc_timestamp({precision})),
    {published_at} datetime({precision}) NULL,
    -- What is pending comes first, by tenant and in order: claims and the probe read that and nothing else.
    INDEX `outbox_pending` ({published_at}, {tenant}, {id})
) ENGINE = InnoDB, ROW_FORMAT = DYNAMIC, DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, COMMENT = {comment};

-- A claim locks its tenant's row here. Whoever adds a row locks the empty one.
CREATE TABLE {unless}{claims} (
    `tenant_id` varbinary(255) NOT NULL PRIMARY KEY
) ENGINE = InnoDB, ROW_FORMAT = DYNAMIC, COMMENT = {comment};

INSERT {ignore}INTO {claims} (`tenant_id`) VALUES (x'');
",
        table = table.quoted(Dialect::MySql),
        claims = table.beside(&table.claims_name(), Dialect::MySql),
        id = word(&names.id),
        tenant = word(&names.tenant_id),
        kind = word(&names.kind),
        subject = word(&names.subject_id),
        payload_name = word(&names.payload),
        headers = headers.unwrap_or_default(),
        occurred_at = word(&names.occurred_at),
        published_at = word(&names.published_at),
        comment = literal(&version_comment(), Dialect::MySql),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_the_default_table() {
        assert_eq!(create_table(&OutboxTable::default()).as_deref(), Ok(include_str!("schema.sql")));
    }

    #[test]
    fn a_table_without_headers_and_with_text_says_so() -> Result<(), InvalidTable> {
        let ddl = create_table(&OutboxTable::prisma("OutboxMessage"))?;
        assert!(
            ddl.contains("`payload` longtext NULL,") && ddl.contains("`occurredAt` datetime(3) NOT NULL"),
            "{ddl}"
        );
        assert!(!ddl.contains("headers") && ddl.contains("CREATE TABLE `outboxMessage_claims`"), "{ddl}");
        Ok(())
    }
}
