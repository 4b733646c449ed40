//! What can break a promise though the table fits: a sequence that was set back, a default, triggers, a file that is not
//! synchronized.

use super::TableFacts;
use super::words::words;
use crate::check::Finding;
use crate::dialect::Dialect;
use crate::identifier::{literal, quote};
use crate::table::OutboxTable;

/// Asks what can break a promise, about a table of which the rest is known: what it is, and more about it.
pub fn describe_dangers(table: &OutboxTable, live: &TableFacts) -> String {
    let (word, text) =
        (|name: &str| quote(name, Dialect::Sqlite), |text: &str| literal(text, Dialect::Sqlite));
    let columns = table.columns();
    let (schema, name) = (table.schema_on(Dialect::Sqlite), text(table.name()));
    let (quoted, schema) = (word(schema), text(schema));
    let triggers = |of: &str| {
        format!(
            "SELECT 'trigger', t.name FROM {of}.sqlite_schema AS t \
             WHERE t.type = 'trigger' AND t.tbl_name = {name} COLLATE NOCASE AND (upper(t.sql) LIKE '%BEFORE%' \
             OR upper(t.sql) LIKE '%RAISE%' OR instr(lower(t.sql), lower({})))",
            text(&columns.published_at)
        )
    };
    let mut asked = vec![
        triggers(&quoted),
        triggers("temp"),
        format!(
            "SELECT 'default', coalesce(c.dflt_value, 'generated') FROM main.pragma_table_xinfo({name}, {schema}) AS c \
             WHERE c.name = {} COLLATE NOCASE AND (c.hidden <> 0 OR upper(coalesce(c.dflt_value, 'NULL')) <> 'NULL')",
            text(&columns.published_at)
        ),
        format!(
            "SELECT 'synchronous', CAST(s.synchronous AS TEXT) FROM main.pragma_synchronous({schema}) AS s"
        ),
    ];
    // There is a table of sequences where a table has one.
    if has_sequence(live) && live.column(&columns.id).is_some() {
        asked.push(format!(
            "SELECT 'sequence', CAST(m.id AS TEXT) FROM (SELECT max(o.{id}) AS id FROM {of} AS o) AS m \
             WHERE m.id > coalesce((SELECT max(q.seq) FROM {quoted}.sqlite_sequence AS q \
             WHERE q.name = {name} COLLATE NOCASE), 0)",
            id = word(&columns.id),
            of = table.quoted(Dialect::Sqlite),
        ));
    }
    asked.join(" UNION ALL ")
}

fn has_sequence(live: &TableFacts) -> bool {
    words(&live.definition).iter().any(|word| word.is("AUTOINCREMENT"))
}

pub(super) fn check_dangers(
    table: &OutboxTable,
    live: &TableFacts,
    in_a_file: bool,
    found: &mut Vec<Finding>,
) {
    let name = table.display_name(Dialect::Sqlite);
    let published_at = &table.columns().published_at;
    if words(&live.definition).iter().any(|word| word.is("CONFLICT")) {
        found.push(Finding::warning(format!(
            "{name} says what to do ON CONFLICT: a row that is written by hand may take the place of a message, or be \
             passed over; leave it out"
        )));
    }
    for (danger, detail) in &live.dangers {
        found.extend(match danger.as_str() {
            "trigger" => Some(Finding::warning(format!(
                "the trigger {detail} of {name} may keep a message from being written or marked, or change which are: \
                 let it skip no row, and leave {published_at} alone"
            ))),
            "default" => Some(Finding::error(format!(
                "{name}.{published_at} is {detail} unless it is given, so that messages are born marked and never \
                 published: make the column one without a default"
            ))),
            "synchronous" if in_a_file && detail == "0" => Some(Finding::warning(
                "PRAGMA synchronous is OFF: a machine that loses power may lose what was committed and published, \
                 and damage the file; set it to FULL, or to NORMAL for the relay's own connections",
            )),
            "sequence" => Some(Finding::error(format!(
                "the sequence of {name} is behind its rows (row {detail}), so that ids of deleted messages are issued \
                 again: UPDATE {}.sqlite_sequence SET seq = the highest id that there ever was WHERE name = {}",
                quote(table.schema_on(Dialect::Sqlite), Dialect::Sqlite),
                literal(table.name(), Dialect::Sqlite),
            ))),
            _ => None,
        });
    }
}
