//! What can break a promise though the table fits: triggers, a column that fills itself, the end of the ids.

use super::TableFacts;
use crate::check::Finding;
use crate::table::OutboxTable;

/// Past this id a table has few left, of 2^63.
const NEAR_THE_END: u64 = i64::MAX.unsigned_abs() / 10 * 9;

pub(super) fn check_dangers(table: &OutboxTable, live: &TableFacts, name: &str, found: &mut Vec<Finding>) {
    let published_at = &table.columns().published_at;
    if let Some(triggers) = &live.triggers {
        found.push(Finding::warning(format!(
            "a trigger runs before a row of {name} is written, marked or deleted ({triggers}), and may change it: let it \
             leave the columns of the outbox alone"
        )));
    }
    let column = live.columns.iter().find(|column| column.name.to_lowercase() == published_at.to_lowercase());
    let extra = column.map(|column| column.extra.to_lowercase()).unwrap_or_default();
    if extra.contains("on update") {
        found.push(Finding::error(format!(
            "{name}.{published_at} is set by every UPDATE of a row, so that a message which somebody repairs is marked \
             and never published: take its ON UPDATE away"
        )));
    }
    if extra.contains("default") || extra.contains("generated") {
        found.push(Finding::error(format!(
            "{name}.{published_at} has a value of its own unless it is given one, so that messages are born marked and \
             never published: make the column DEFAULT NULL"
        )));
    }
    let next = live.next_id.as_deref().and_then(|id| id.parse::<u64>().ok());
    if let Some(next) = next.filter(|next| *next > NEAR_THE_END) {
        found.push(Finding::warning(format!(
            "the next id of {name} is {next}, near the end of bigint: no message can be appended past it"
        )));
    }
}
