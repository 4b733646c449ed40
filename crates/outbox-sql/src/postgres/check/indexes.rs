//! What the table's indexes must be like.

use super::{IndexFacts, TableFacts};
use crate::check::Finding;
use crate::dialect::Dialect;
use crate::identifier::quote;
use crate::table::OutboxTable;

pub(super) fn check_indexes(table: &OutboxTable, live: &TableFacts, name: &str, found: &mut Vec<Finding>) {
    let columns = table.columns();
    let word = |name: &str| quote(name, Dialect::Postgres);
    if !live
        .indexes
        .iter()
        .any(|index| index.unique && index.predicate.is_none() && index.columns == [columns.id.as_str()])
    {
        found.push(Finding::error(format!(
            "{name}.{} is not unique, and subscribers deduplicate by it: make it the primary key",
            columns.id
        )));
    }
    let pending = [columns.tenant_id.as_str(), columns.id.as_str()];
    // PostgreSQL writes a name with quotes only where it needs them.
    let predicates =
        [format!("({} IS NULL)", columns.published_at), format!("({} IS NULL)", word(&columns.published_at))];
    let serves = |index: &&IndexFacts| {
        index.columns == pending
            && index.predicate.as_ref().is_some_and(|predicate| predicates.contains(predicate))
    };
    let ddl = format!(
        "CREATE INDEX CONCURRENTLY ON {} ({}, {}) WHERE {} IS NULL",
        table.quoted(Dialect::Postgres),
        word(pending[0]),
        word(pending[1]),
        word(&columns.published_at)
    );
    match live.indexes.iter().find(serves) {
        None => found.push(Finding::warning(format!(
            "{name} has no index of what is pending, and every claim reads what was ever published: {ddl}"
        ))),
        Some(index) if !index.valid => found.push(Finding::warning(format!(
            "the index of what is pending in {name} is not complete: drop it, then {ddl}"
        ))),
        Some(_) => {}
    }
}
