//! The DDL of a table on SQLite.

use crate::dialect::Dialect;
use crate::identifier::quote;
use crate::sqlite::statements::NOW;
use crate::table::{InvalidTable, OutboxTable, PayloadType};

/// The version of the schema, recorded in a comment inside of the table's definition.
pub const SCHEMA_VERSION: u32 = 1;

/// The statements that create the table and its index. The database must be attached.
///
/// # Errors
/// [`InvalidTable`], if SQLite can hold no such table.
pub fn create_table(table: &OutboxTable) -> Result<String, InvalidTable> {
    statements(table, "")
}

/// The same, which change nothing where there is a table of that name.
///
/// # Errors
/// As [`create_table`].
pub fn create_table_if_missing(table: &OutboxTable) -> Result<String, InvalidTable> {
    statements(table, "IF NOT EXISTS ")
}

fn statements(table: &OutboxTable, unless: &str) -> Result<String, InvalidTable> {
    table.check(Dialect::Sqlite)?;
    let word = |name: &str| quote(name, Dialect::Sqlite);
    let names = table.columns();
    let payload = match table.payload_type() {
        PayloadType::Bytes => "BLOB",
        PayloadType::Text | PayloadType::Jsonb => "TEXT",
    };
    let headers = names.headers.as_deref().map(|name| format!("    {} TEXT,\n", word(name)));
    Ok(format!(
        "\
-- The outbox: one row for each message, written in the transaction of the change that it tells of.
-- Times are microseconds since 1970. A row is pending while its last column is null.
CREATE TABLE {unless}{table} ( -- outbox schema {SCHEMA_VERSION}
    -- AUTOINCREMENT: an id is the deduplication key, and must not be issued again after a delete.
    {id} INTEGER PRIMARY KEY AUTOINCREMENT,
    {tenant} TEXT NOT NULL,
    {kind} TEXT NOT NULL,
    {subject} TEXT NOT NULL,
    -- No payload is a tombstone: the subject is gone.
    {payload_name} {payload},
{headers}    {occurred_at} INTEGER NOT NULL
        DEFAULT ({NOW}),
    {published_at} INTEGER
) STRICT;

CREATE INDEX {unless}{schema}.{index} ON {bare} ({tenant}, {id}) WHERE {published_at} IS NULL;
",
        table = table.quoted(Dialect::Sqlite),
        id = word(&names.id),
        tenant = word(&names.tenant_id),
        kind = word(&names.kind),
        subject = word(&names.subject_id),
        payload_name = word(&names.payload),
        headers = headers.unwrap_or_default(),
        occurred_at = word(&names.occurred_at),
        published_at = word(&names.published_at),
        schema = word(table.schema_on(Dialect::Sqlite)),
        index = word(&format!("{}_pending", table.name())),
        bare = word(table.name()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Columns;

    #[test]
    fn the_file_is_the_default_table() {
        assert_eq!(create_table(&OutboxTable::default()).as_deref(), Ok(include_str!("schema.sql")));
    }

    #[test]
    fn a_table_without_headers_and_with_text_says_so() -> Result<(), InvalidTable> {
        let columns = Columns { headers: None, ..Columns::default() };
        let table = OutboxTable::new("a\"b").with_columns(columns).with_payload_type(PayloadType::Text);
        let ddl = create_table(&table)?;
        assert!(!ddl.contains("headers"), "{ddl}");
        assert!(ddl.contains("\"payload\" TEXT"), "{ddl}");
        assert!(ddl.contains("INDEX \"main\".\"a\"\"b_pending\" ON \"a\"\"b\""), "{ddl}");
        Ok(())
    }
}
