//! What a SQLite table and its database must be like.

mod ask;
mod dangers;
mod index;
mod words;

pub use self::ask::compare;
use self::dangers::check_dangers;
pub use self::dangers::describe_dangers;
use self::index::check_indexes;
use self::words::words;
use crate::check::Finding;
use crate::dialect::Dialect;
use crate::identifier::{literal, quote};
use crate::table::OutboxTable;

/// Asks for a table's definition; there is no row if there is no table.
pub fn describe_table(table: &OutboxTable) -> String {
    let schema = quote(table.schema_on(Dialect::Sqlite), Dialect::Sqlite);
    let name = literal(table.name(), Dialect::Sqlite);
    format!("SELECT sql FROM {schema}.sqlite_schema WHERE type = 'table' AND name = {name} COLLATE NOCASE")
}

/// Asks for a table's columns: name, declared type in capitals, place in the primary key.
pub fn describe_columns(table: &OutboxTable) -> String {
    let literal = |text: &str| literal(text, Dialect::Sqlite);
    let (name, schema) = (literal(table.name()), literal(table.schema_on(Dialect::Sqlite)));
    format!("SELECT name, upper(type), pk FROM main.pragma_table_info({name}, {schema})")
}

/// Asks for the columns of a table's indexes, in order: index, its definition, column (null if it is an
/// expression), collation, whether it descends. [`IndexFacts::gather`] takes the rows.
pub fn describe_indexes(table: &OutboxTable) -> String {
    let literal = |text: &str| literal(text, Dialect::Sqlite);
    let (name, schema) = (literal(table.name()), literal(table.schema_on(Dialect::Sqlite)));
    let quoted = quote(table.schema_on(Dialect::Sqlite), Dialect::Sqlite);
    format!(
        "SELECT list.name, definition.sql, part.name, part.coll, part.\"desc\" \
         FROM main.pragma_index_list({name}, {schema}) AS list \
         CROSS JOIN {quoted}.sqlite_schema AS definition \
         ON definition.type = 'index' AND definition.name = list.name \
         CROSS JOIN main.pragma_index_xinfo(list.name, {schema}) AS part \
         WHERE part.key ORDER BY list.name, part.seqno"
    )
}

/// Asks for the journal mode of the table's database.
pub fn describe_journal(table: &OutboxTable) -> String {
    format!("PRAGMA {}.journal_mode", quote(table.schema_on(Dialect::Sqlite), Dialect::Sqlite))
}

/// Asks for the milliseconds that a connection waits for a writer.
pub const DESCRIBE_BUSY_TIMEOUT: &str = "PRAGMA busy_timeout";

/// What a database said about itself and the table.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The table; `None` if there is none of this name.
    pub table: Option<TableFacts>,
    /// The file of the database; `None` if it is in memory.
    pub file: Option<FileFacts>,
    /// Whether the database is in the memory of a connection that the pool closes after a while.
    pub ends_with_its_connection: bool,
    /// What was tried and refused, such as a write or a lock file, in words that say what to do.
    pub refusals: Vec<String>,
}

/// What the database said about its file and how it is used.
#[derive(Debug, Clone, Default)]
pub struct FileFacts {
    /// The journal mode.
    pub journal_mode: String,
    /// The milliseconds that a connection waits for a writer.
    pub busy_timeout: i64,
}

/// What the database said about the table.
#[derive(Debug, Clone, Default)]
pub struct TableFacts {
    /// Its definition.
    pub definition: String,
    /// Its columns.
    pub columns: Vec<ColumnFacts>,
    /// Its indexes.
    pub indexes: Vec<IndexFacts>,
    /// What [`describe_dangers`] answered: what it is, and more about it.
    pub dangers: Vec<(String, String)>,
}

impl TableFacts {
    /// Whether every column of the description is there.
    pub fn has_columns_of(&self, table: &OutboxTable) -> bool {
        table.columns().named().all(|(_, column)| self.column(column).is_some())
    }

    fn column(&self, name: &str) -> Option<&ColumnFacts> {
        self.columns.iter().find(|live| live.name.eq_ignore_ascii_case(name))
    }
}

/// What the database said about a column.
#[derive(Debug, Clone, Default)]
pub struct ColumnFacts {
    /// Its name.
    pub name: String,
    /// Its declared type, in capitals.
    pub data_type: String,
    /// Its place in the primary key, from 1; 0 if it is not of it.
    pub key: i64,
}

/// What the database said about an index.
#[derive(Debug, Clone, Default)]
pub struct IndexFacts {
    /// Its name.
    pub name: String,
    /// Its definition; `None` for one that SQLite made for a constraint.
    pub definition: Option<String>,
    /// Its columns.
    pub columns: Vec<IndexedColumn>,
}

impl IndexFacts {
    /// The indexes, of rows that each tell of one column: index, definition, column.
    pub fn gather(rows: impl IntoIterator<Item = (String, Option<String>, IndexedColumn)>) -> Vec<Self> {
        let mut indexes: Vec<Self> = Vec::new();
        for (name, definition, column) in rows {
            match indexes.last_mut() {
                Some(index) if index.name == name => index.columns.push(column),
                _ => indexes.push(Self { name, definition, columns: vec![column] }),
            }
        }
        indexes
    }
}

/// A column of an index.
#[derive(Debug, Clone, Default)]
pub struct IndexedColumn {
    /// Its name; empty if it is an expression.
    pub name: String,
    /// How the index compares it.
    pub collation: String,
    /// Whether the index goes from its last value to its first.
    pub descending: bool,
}

/// Compares the facts with what the store needs. Nothing is found if all is well.
pub fn findings(table: &OutboxTable, facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    match &facts.table {
        Some(live) => {
            check_table(table, live, &mut found);
            check_dangers(table, live, facts.file.is_some(), &mut found);
        }
        None => found.push(Finding::error(format!(
            "there is no table {}: run its DDL (SqliteTable::ddl) or its migration",
            table.display_name(Dialect::Sqlite)
        ))),
    }
    found.extend(facts.refusals.iter().map(Finding::error));
    if let Some(file) = &facts.file {
        check_file(file, &mut found);
    }
    if facts.ends_with_its_connection {
        found.push(Finding::error(
            "the database is in the memory of the pool's only connection, and the pool closes that after a \
             while: build it with max_lifetime(None), idle_timeout(None) and min_connections(1)",
        ));
    }
    found
}

fn check_table(table: &OutboxTable, live: &TableFacts, found: &mut Vec<Finding>) {
    if !words(&live.definition).iter().any(|word| word.is("AUTOINCREMENT")) {
        found.push(Finding::error(format!(
            "{} has no AUTOINCREMENT: after a delete an id would be issued again, and subscribers would take \
             another message for one that they know",
            table.display_name(Dialect::Sqlite)
        )));
    }
    for (part, column) in table.columns().named() {
        match live.column(column) {
            Some(live) => check_column(part, live, found),
            None => {
                found.push(Finding::error(format!("the column {column:?} ({part}) is missing: add it")));
            }
        }
    }
    check_indexes(table, &live.indexes, found);
}

fn check_column(part: &str, live: &ColumnFacts, found: &mut Vec<Finding>) {
    let ColumnFacts { name, data_type, key } = live;
    let wanted: &[&str] = match part {
        "id" | "occurred_at" | "published_at" => &["INTEGER"],
        "payload" => &["BLOB", "TEXT", "ANY"],
        _ => &["TEXT"],
    };
    if !wanted.contains(&data_type.as_str()) {
        let wanted = wanted.join(" or ");
        found.push(Finding::error(format!(
            "the column {name:?} ({part}) is {data_type:?}, and has to be {wanted}"
        )));
    }
    if part == "id" && *key != 1 {
        found.push(Finding::error(format!("the column {name:?} (id) has to be the primary key")));
    }
}

/// What matters for a database in a file: WAL and a busy timeout.
fn check_file(file: &FileFacts, found: &mut Vec<Finding>) {
    let journal = &file.journal_mode;
    if journal.eq_ignore_ascii_case("off") {
        found.push(Finding::error(
            "the journal is off, so that nothing rolls back: what the application gave up would be published; use WAL \
             (PRAGMA journal_mode = WAL)",
        ));
    } else if journal.eq_ignore_ascii_case("memory") {
        found.push(Finding::warning(
            "the journal is in memory: a process that dies while it writes leaves the database damaged, or with a part \
             of a transaction; use WAL (PRAGMA journal_mode = WAL)",
        ));
    } else if !journal.eq_ignore_ascii_case("wal") {
        found.push(Finding::warning(format!(
            "the journal mode is {journal}: writers wait for readers; use WAL (PRAGMA journal_mode = WAL)"
        )));
    }
    if file.busy_timeout == 0 {
        found.push(Finding::warning(
            "the busy timeout is 0: the application's writes fail at once while a message is marked; set one",
        ));
    }
}
