//! The index of what is pending.

use super::IndexFacts;
use super::words::{Word, words};
use crate::check::Finding;
use crate::dialect::Dialect;
use crate::identifier::quote;
use crate::table::{Columns, OutboxTable};

/// Looks for the index on tenant and id of the pending rows, in the collation that compares bytes.
pub(super) fn check_indexes(table: &OutboxTable, indexes: &[IndexFacts], found: &mut Vec<Finding>) {
    let columns = table.columns();
    let of_pending: Vec<_> = indexes.iter().filter(|index| serves(index, columns)).collect();
    if of_pending.iter().any(|index| compares_bytes(index)) {
        return;
    }
    if let Some(index) = of_pending.first() {
        found.push(Finding::error(format!(
            "the column {:?} is not compared by bytes in the index {:?}: give it the collation BINARY, or tenants \
             that differ in case or spaces become one",
            columns.tenant_id, index.name
        )));
        return;
    }
    let word = |name: &str| quote(name, Dialect::Sqlite);
    found.push(Finding::warning(format!(
        "there is no index of what is pending, and every look reads what was ever published: CREATE INDEX \
         {schema}.{index} ON {name} ({tenant}, {id}) WHERE {published_at} IS NULL",
        schema = word(table.schema_on(Dialect::Sqlite)),
        index = word(&format!("{}_pending", table.name())),
        name = word(table.name()),
        tenant = word(&columns.tenant_id),
        id = word(&columns.id),
        published_at = word(&columns.published_at),
    )));
}

/// Whether it has the pending rows, and no others, in the order of tenant and id. The id is the table's own key,
/// which SQLite adds to every index.
fn serves(index: &IndexFacts, columns: &Columns) -> bool {
    let wanted = [&columns.tenant_id, &columns.id];
    let ordered = matches!(index.columns.len(), 1 | 2)
        && index
            .columns
            .iter()
            .zip(wanted)
            .all(|(column, wanted)| column.name.eq_ignore_ascii_case(wanted) && !column.descending);
    ordered && index.definition.as_deref().is_some_and(|sql| is_of_pending(sql, &columns.published_at))
}

fn compares_bytes(index: &IndexFacts) -> bool {
    index.columns.iter().all(|column| column.collation.eq_ignore_ascii_case("BINARY"))
}

/// Whether an index's definition ends with `WHERE published_at IS NULL`, however it is written.
fn is_of_pending(definition: &str, published_at: &str) -> bool {
    let words = words(definition);
    let Some(place) = words.iter().rposition(|word| word.is("WHERE")) else { return false };
    // Parentheses change nothing about a condition of one column and one operator.
    let condition: Vec<&Word> =
        words[place + 1..].iter().filter(|word| !matches!(word, Word::Sign('(' | ')' | ';'))).collect();
    match condition[..] {
        [column, is, null] => column.names(published_at) && is.is("IS") && null.is("NULL"),
        [column, is_null] => column.names(published_at) && is_null.is("ISNULL"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::IndexedColumn;
    use super::*;

    fn index(columns: &[&str], collation: &str, condition: &str) -> IndexFacts {
        let column = |name: &&str| IndexedColumn {
            name: (*name).to_owned(),
            collation: collation.to_owned(),
            descending: false,
        };
        IndexFacts {
            name: "i".to_owned(),
            definition: Some(format!("CREATE INDEX i ON outbox_message (…) {condition}")),
            columns: columns.iter().map(column).collect(),
        }
    }

    fn findings(indexes: &[IndexFacts]) -> String {
        let mut found = Vec::new();
        check_indexes(&OutboxTable::default(), indexes, &mut found);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_index_of_the_pending_rows_serves_however_it_is_written() {
        for condition in [
            "WHERE published_at IS NULL",
            "where (\"published_at\") is null",
            "WHERE ([Published_At] /* pending */ ISNULL) -- so",
        ] {
            let both = index(&["tenant_id", "id"], "BINARY", condition);
            assert_eq!(findings(&[both]), "", "{condition}");
            let tenant = index(&["Tenant_Id"], "binary", condition);
            assert_eq!(findings(&[tenant]), "", "{condition}");
        }
    }

    #[test]
    fn an_index_of_other_rows_or_columns_does_not_serve() {
        for (columns, condition) in [
            (&["tenant_id", "id"][..], ""),
            (&["tenant_id", "id"], "WHERE published_at IS NOT NULL"),
            (&["tenant_id", "id"], "WHERE published_at IS NULL AND kind = 'a'"),
            (&["tenant_id", "id"], "WHERE 'published_at' IS NULL"),
            (&["tenant_id", "id"], "WHERE payload IS NULL"),
            (&["id", "tenant_id"], "WHERE published_at IS NULL"),
            (&["tenant_id", "kind"], "WHERE published_at IS NULL"),
            (&["tenant_id", "id", "kind"], "WHERE published_at IS NULL"),
            (&[""], "WHERE published_at IS NULL"),
            (&[], "WHERE published_at IS NULL"),
        ] {
            let found = findings(&[index(columns, "BINARY", condition)]);
            assert!(
                found.starts_with("warning: there is no index of what is pending"),
                "{columns:?} {condition}"
            );
        }
        let mut descending = index(&["tenant_id", "id"], "BINARY", "WHERE published_at IS NULL");
        descending.columns[1].descending = true;
        assert!(findings(&[descending]).contains("there is no index"));
    }

    #[test]
    fn an_index_that_takes_tenants_for_one_another_is_an_error_unless_there_is_another() {
        let pending = "WHERE published_at IS NULL";
        let loose = index(&["tenant_id", "id"], "NOCASE", pending);
        assert!(findings(std::slice::from_ref(&loose)).starts_with("error: "));
        assert_eq!(findings(&[loose, index(&["tenant_id", "id"], "BINARY", pending)]), "");
    }
}
