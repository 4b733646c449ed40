//! What the tables' columns and indexes must be like.

use super::{ColumnFacts, Facts, TableFacts, check_table};
use crate::check::Finding;
use crate::dialect::Dialect;
use crate::identifier::quote;
use crate::table::{OutboxTable, PayloadType, TimeType};

pub(super) fn check_columns(table: &OutboxTable, live: &TableFacts, name: &str, found: &mut Vec<Finding>) {
    for (part, column) in table.columns().named() {
        match live.columns.iter().find(|live| live.name.to_lowercase() == column.to_lowercase()) {
            Some(live) => check_column(table, part, live, name, found),
            None => found.push(Finding::error(format!(
                "{name} has no column {column:?} ({part}): add it, or correct the name in the table's description"
            ))),
        }
    }
}

fn check_column(table: &OutboxTable, part: &str, live: &ColumnFacts, name: &str, found: &mut Vec<Finding>) {
    let column = format!("{name}.{}", live.name);
    let (wanted, serves) = type_of(table, part);
    if !serves(&live.column_type) {
        let why = match part {
            "tenant_id" | "subject_id" => {
                ": a column of text takes different texts for equal ones, and a shorter one may cut them off"
            }
            "kind" => ": a shorter one may cut kinds off",
            _ => "",
        };
        found.push(Finding::error(format!(
            "{column} is {}: make it {wanted}, or correct the table's description{why}",
            live.column_type
        )));
    }
    let required = matches!(part, "id" | "tenant_id" | "kind" | "subject_id" | "occurred_at");
    if required && live.nullable {
        found.push(Finding::warning(format!(
            "{column} may be null, and a row with a null there stops its tenant: make it NOT NULL"
        )));
    }
    if !required && !live.nullable {
        let fix = if part == "published_at" { "null is what is pending" } else { "null is needed there" };
        found.push(Finding::error(format!("{column} is NOT NULL, and {fix}: make it NULL")));
    }
    if part == "id" && !live.extra.to_lowercase().contains("auto_increment") {
        found.push(Finding::error(format!("{column} draws no number of its own: make it AUTO_INCREMENT")));
    }
    if !may(live, "select") {
        found.push(Finding::error(format!(
            "this user may not read {column}: GRANT SELECT ON {}",
            table.quoted(Dialect::MySql)
        )));
    }
}

fn may(column: &ColumnFacts, what: &str) -> bool {
    column.privileges.split(',').any(|privilege| privilege.trim().eq_ignore_ascii_case(what))
}

/// The type that a column should have, and whether another one serves as well.
fn type_of(table: &OutboxTable, part: &str) -> (&'static str, fn(&str) -> bool) {
    match part {
        "id" => ("bigint", |live| live.starts_with("bigint") && !live.contains("unsigned")),
        "tenant_id" => ("varbinary(255)", |live| bytes_of(live, "varbinary") >= Some(255)),
        "subject_id" => ("varbinary(1024)", |live| {
            bytes_of(live, "varbinary") >= Some(1_024) || live.ends_with("blob") && live != "tinyblob"
        }),
        "kind" => ("varchar(255)", |live| {
            bytes_of(live, "varchar") >= Some(255) || live.ends_with("text") && live != "tinytext"
        }),
        "headers" => ("json", |live| live == "json" || live == "longtext"),
        "payload" if table.payload_type() == PayloadType::Bytes => ("longblob", |live| live == "longblob"),
        "payload" => ("longtext", |live| live == "longtext"),
        _ if table.time_type() == TimeType::UtcMillis => ("datetime(3)", |live| live == "datetime(3)"),
        _ => ("datetime(6)", |live| live == "datetime(6)"),
    }
}

/// How long a column of this type may be: 255 of `varbinary(255)`.
fn bytes_of(live: &str, kind: &str) -> Option<u32> {
    live.strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')')?.parse().ok()
}

pub(super) fn check_index(table: &OutboxTable, live: &TableFacts, name: &str, found: &mut Vec<Finding>) {
    let columns = table.columns();
    let is = |names: &[String], wanted: &[&str]| {
        names.len() == wanted.len()
            && names.iter().zip(wanted).all(|(name, wanted)| name.to_lowercase() == wanted.to_lowercase())
    };
    let keyed =
        live.indexes.iter().any(|index| index.name == "PRIMARY" && is(&index.columns, &[&columns.id]));
    if !keyed {
        found.push(Finding::error(format!(
            "{name}.{} is not the primary key, by which the store reads and marks: make it the primary key",
            columns.id
        )));
    }
    let wanted = [columns.published_at.as_str(), &columns.tenant_id, &columns.id];
    // InnoDB appends the primary key to every index.
    let serves = |names: &[String]| is(names, &wanted) || keyed && is(names, &wanted[..2]);
    if !live.indexes.iter().any(|index| serves(&index.columns)) {
        let word = |name: &str| quote(name, Dialect::MySql);
        found.push(Finding::warning(format!(
            "{name} has no index of what is pending, and every claim reads what was ever published: ALTER TABLE {} \
             ADD INDEX `outbox_pending` ({}, {}, {})",
            table.quoted(Dialect::MySql),
            word(wanted[0]),
            word(wanted[1]),
            word(wanted[2]),
        )));
    }
}

pub(super) fn check_claims(table: &OutboxTable, facts: &Facts, found: &mut Vec<Finding>) {
    let name = match table.schema_on(Dialect::MySql) {
        "" => table.claims_name(),
        schema => format!("{schema}.{}", table.claims_name()),
    };
    let Some(live) = &facts.claims else {
        found.push(Finding::error(format!(
            "there is no table {name}, whose rows the claims lock: run the DDL (MySqlTable::ddl) or the migration"
        )));
        return;
    };
    check_table(&name, live, found);
    match live.columns.iter().find(|column| column.name.eq_ignore_ascii_case("tenant_id")) {
        None => found.push(Finding::error(format!("{name} has no column tenant_id: make the table anew"))),
        Some(column) => {
            if bytes_of(&column.column_type, "varbinary").is_none_or(|bytes| bytes < 255) {
                found.push(Finding::error(format!(
                    "{name}.tenant_id is {}: make it varbinary(255), else tenants that are alike exclude each other",
                    column.column_type
                )));
            }
            for privilege in ["select", "insert", "update"] {
                if !may(column, privilege) {
                    let privilege = privilege.to_uppercase();
                    found.push(Finding::error(format!(
                        "this user lacks {privilege} on {name}, where claims lock and add rows: GRANT {privilege} ON {}",
                        table.beside(&table.claims_name(), Dialect::MySql)
                    )));
                }
            }
        }
    }
    let key = |index: &super::IndexFacts| {
        index.unique && index.columns.len() == 1 && index.columns[0].eq_ignore_ascii_case("tenant_id")
    };
    if !live.indexes.iter().any(key) {
        found.push(Finding::error(format!(
            "{name}.tenant_id is not unique, so that a tenant could be held twice: make it the primary key"
        )));
    }
    if facts.sentinel == Some(false) {
        found.push(Finding::error(format!(
            "{name} lacks its empty row, which whoever adds a row locks: INSERT INTO {} (tenant_id) VALUES (x'')",
            table.beside(&table.claims_name(), Dialect::MySql)
        )));
    }
}
