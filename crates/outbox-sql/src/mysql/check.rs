//! What a MySQL or MariaDB table and its server must be like.

mod ask;
mod columns;
mod dangers;
mod server;

use outbox_core::Settling;

pub use self::ask::create_if_missing;
use self::columns::{check_claims, check_columns, check_index};
use self::dangers::check_dangers;
use self::server::check_server;
use crate::check::Finding;
use crate::dialect::Dialect;
use crate::mysql::error::relay_rights;
use crate::mysql::schema::version_comment;
use crate::table::OutboxTable;

/// Asks about the server and the session: names and values of settings, those that it has.
pub(crate) const DESCRIBE_SERVER: &str = "\
SHOW VARIABLES WHERE Variable_name IN (
    'version', 'version_comment', 'autocommit', 'read_only', 'super_read_only', 'innodb_read_only', 'sql_mode',
    'binlog_format', 'log_bin', 'innodb_rollback_on_timeout', 'wsrep_on', 'group_replication_group_name',
    'group_replication_single_primary_mode', 'idle_transaction_timeout', 'idle_write_transaction_timeout',
    'wait_timeout', 'innodb_flush_log_at_trx_commit', 'innodb_flush_method', 'sync_binlog', 'innodb_doublewrite')";

/// Asks about a table: schema or null, name. Its type, engine and comment; the names of triggers that run before a row
/// of it is written, marked or deleted, as far as this user may see them; how many ids it has given.
pub(crate) const DESCRIBE_TABLE: &str = "\
SELECT cast(t.TABLE_TYPE AS char), cast(t.ENGINE AS char), cast(t.TABLE_COMMENT AS char),
       (SELECT group_concat(cast(g.TRIGGER_NAME AS char) ORDER BY g.TRIGGER_NAME SEPARATOR ', ')
        FROM information_schema.TRIGGERS AS g
        WHERE g.EVENT_OBJECT_SCHEMA = t.TABLE_SCHEMA AND g.EVENT_OBJECT_TABLE = t.TABLE_NAME
          AND g.ACTION_TIMING = 'BEFORE'),
       cast(t.AUTO_INCREMENT AS char)
FROM information_schema.TABLES AS t
WHERE TABLE_SCHEMA = coalesce(convert(? USING utf8mb4), database()) AND TABLE_NAME = convert(? USING utf8mb4)";

/// Asks about its columns: schema or null, name. What else a column is says too whether it has a default.
pub(crate) const DESCRIBE_COLUMNS: &str = "\
SELECT cast(COLUMN_NAME AS char), cast(COLUMN_TYPE AS char), cast(IS_NULLABLE AS char),
       cast(concat(EXTRA, CASE WHEN coalesce(COLUMN_DEFAULT, 'NULL') = 'NULL' THEN '' ELSE ' default' END) AS char),
       cast(PRIVILEGES AS char)
FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = coalesce(convert(? USING utf8mb4), database()) AND TABLE_NAME = convert(? USING utf8mb4)";

/// Asks about its indexes, a row for each column: schema or null, name.
pub(crate) const DESCRIBE_INDEXES: &str = "\
SELECT cast(INDEX_NAME AS char), cast(COLUMN_NAME AS char), NON_UNIQUE = 0
FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = coalesce(convert(? USING utf8mb4), database()) AND TABLE_NAME = convert(? USING utf8mb4)
ORDER BY INDEX_NAME, SEQ_IN_INDEX";

/// What a database said about itself and the tables.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// Names and values of settings.
    pub(crate) settings: Vec<(String, String)>,
    /// What the store does with a published row.
    pub(crate) settling: Settling,
    /// Whether this user may do that; `None` if it could not be asked.
    pub(crate) may_settle: Option<bool>,
    /// The table; `None` if there is none of this name.
    pub(crate) table: Option<TableFacts>,
    /// The table of claims; `None` if there is none.
    pub(crate) claims: Option<TableFacts>,
    /// Whether the table of claims has its sentinel; `None` if it could not be asked.
    pub(crate) sentinel: Option<bool>,
}

impl Facts {
    fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn is_on(&self, name: &str) -> bool {
        self.setting(name).is_some_and(|value| value.eq_ignore_ascii_case("ON") || value == "1")
    }
}

/// What the database said about a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableFacts {
    /// `BASE TABLE`, on MariaDB `SYSTEM VERSIONED`, or what else it is.
    pub(crate) kind: String,
    /// Its storage engine.
    pub(crate) engine: Option<String>,
    /// Its comment.
    pub(crate) comment: String,
    /// The triggers that run before a row of it is written, marked or deleted.
    pub(crate) triggers: Option<String>,
    /// The next id, in digits.
    pub(crate) next_id: Option<String>,
    /// Its columns.
    pub(crate) columns: Vec<ColumnFacts>,
    /// Its indexes.
    pub(crate) indexes: Vec<IndexFacts>,
}

/// What the database said about a column.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnFacts {
    /// Its name.
    pub(crate) name: String,
    /// Its type, as the server writes it.
    pub(crate) column_type: String,
    /// Whether it takes null.
    pub(crate) nullable: bool,
    /// What else it is: `auto_increment`, `on update current_timestamp()`, `VIRTUAL GENERATED`, `default`.
    pub(crate) extra: String,
    /// What this user may do with it: `select,insert,update`.
    pub(crate) privileges: String,
}

/// What the database said about an index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IndexFacts {
    /// Its name.
    pub(crate) name: String,
    /// Its columns; an expression is empty.
    pub(crate) columns: Vec<String>,
    /// Whether it is unique.
    pub(crate) unique: bool,
}

/// Gathers the rows of [`DESCRIBE_INDEXES`]: an index's name, one of its columns, and whether it is unique.
pub(crate) fn indexes(rows: impl IntoIterator<Item = (String, Option<String>, bool)>) -> Vec<IndexFacts> {
    let mut indexes: Vec<IndexFacts> = Vec::new();
    for (name, column, unique) in rows {
        let column = column.unwrap_or_default();
        match indexes.last_mut().filter(|last| last.name == name) {
            Some(index) => index.columns.push(column),
            None => indexes.push(IndexFacts { name, columns: vec![column], unique }),
        }
    }
    indexes
}

/// Compares the facts with what the store needs. Nothing is found if all is well.
pub(crate) fn findings(table: &OutboxTable, facts: &Facts) -> Vec<Finding> {
    let name = table.display_name(Dialect::MySql);
    let mut found = Vec::new();
    check_server(facts, &mut found);
    match &facts.table {
        None => found.push(Finding::error(format!(
            "there is no table {name}: run its DDL (MySqlTable::ddl) or its migration, or correct schema and name"
        ))),
        Some(live) => {
            check_table(&name, live, &mut found);
            check_dangers(table, live, &name, &mut found);
            check_columns(table, live, &name, &mut found);
            check_index(table, live, &name, &mut found);
            if facts.may_settle == Some(false) {
                let rights = relay_rights(facts.settling);
                found.push(Finding::error(format!(
                    "this user may not settle messages of {name}: grant {rights} on {name}"
                )));
            }
        }
    }
    check_claims(table, facts, &mut found);
    found
}

fn check_table(name: &str, live: &TableFacts, found: &mut Vec<Finding>) {
    // MariaDB says `SYSTEM VERSIONED` of a table that keeps the versions of its rows: a table like others to us.
    if !matches!(live.kind.as_str(), "BASE TABLE" | "SYSTEM VERSIONED") {
        found.push(Finding::error(format!("{name} is no table: name the table itself, not a view of it")));
    } else if !live.engine.as_deref().is_some_and(|engine| engine.eq_ignore_ascii_case("InnoDB")) {
        found.push(Finding::error(format!(
            "{name} has the engine {}, which has no transactions: ALTER TABLE … ENGINE = InnoDB",
            live.engine.as_deref().unwrap_or("none")
        )));
    }
    if live.comment.starts_with("outbox schema ") && live.comment != version_comment() {
        found.push(Finding::error(format!(
            "{name} has another version than this library's {:?}: run the migrations between",
            version_comment()
        )));
    }
}

#[cfg(test)]
mod tests;
