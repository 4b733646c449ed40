//! From facts to findings. What a live server says is tested with the stores.

use super::*;
use crate::check::Severity;

fn column(name: &str, column_type: &str, nullable: bool) -> ColumnFacts {
    ColumnFacts {
        name: name.into(),
        column_type: column_type.into(),
        nullable,
        extra: if name == "id" { "auto_increment".into() } else { String::new() },
        privileges: "select,insert,update,references".into(),
    }
}

fn table_facts(columns: Vec<ColumnFacts>, rows: &[(&str, &str, bool)]) -> TableFacts {
    let rows = rows.iter().map(|(name, column, unique)| ((*name).into(), Some((*column).into()), *unique));
    TableFacts {
        kind: "BASE TABLE".into(),
        engine: Some("InnoDB".into()),
        comment: version_comment(),
        columns,
        indexes: indexes(rows),
        ..TableFacts::default()
    }
}

/// What a server says of the default table.
fn healthy() -> Facts {
    let columns = vec![
        column("id", "bigint(20)", false),
        column("tenant_id", "varbinary(255)", false),
        column("kind", "varchar(255)", false),
        column("subject_id", "varbinary(1024)", false),
        column("payload", "longblob", true),
        column("headers", "longtext", true),
        column("occurred_at", "datetime(6)", false),
        column("published_at", "datetime(6)", true),
    ];
    let indexes = [
        ("PRIMARY", "id", true),
        ("outbox_pending", "published_at", false),
        ("outbox_pending", "tenant_id", false),
        ("outbox_pending", "id", false),
    ];
    Facts {
        settings: vec![
            ("version".into(), "10.11.8-MariaDB".into()),
            ("autocommit".into(), "ON".into()),
            ("read_only".into(), "OFF".into()),
        ],
        table: Some(table_facts(columns, &indexes)),
        claims: Some(table_facts(
            vec![column("tenant_id", "varbinary(255)", false)],
            &[("PRIMARY", "tenant_id", true)],
        )),
        sentinel: Some(true),
        may_settle: Some(true),
        settling: Settling::Mark,
    }
}

fn found(change: impl FnOnce(&mut Facts)) -> Vec<Finding> {
    let mut facts = healthy();
    change(&mut facts);
    findings(&OutboxTable::default(), &facts)
}

fn errors(change: impl FnOnce(&mut Facts)) -> String {
    let found = found(change);
    assert!(found.iter().all(|finding| finding.severity == Severity::Error), "{found:?}");
    found.iter().map(|finding| finding.message.clone()).collect::<Vec<_>>().join("\n")
}

#[test]
fn nothing_is_found_where_all_is_well() {
    assert_eq!(found(|_| {}), []);
}

/// What a crash may take back is told of, and an end of the ids.
#[test]
fn what_may_break_a_promise_is_a_warning() {
    let setting = |name: &str, value: &str| {
        let more = [("log_bin", "ON"), (name, value)].map(|(name, value)| (name.into(), value.into()));
        found(|facts| facts.settings.extend(more))
    };
    for (name, value, is_fine) in [
        ("innodb_flush_log_at_trx_commit", "1", true),
        ("innodb_flush_log_at_trx_commit", "2", false),
        ("innodb_flush_method", "O_DIRECT", true),
        ("innodb_flush_method", "nosync", false),
        ("innodb_doublewrite", "ON", true),
        ("innodb_doublewrite", "OFF", false),
        ("sync_binlog", "1", true),
        ("sync_binlog", "0", false),
    ] {
        let found = setting(name, value);
        assert_eq!(found.is_empty(), is_fine, "{name} {value}: {found:?}");
        assert!(found.iter().all(|finding| finding.severity == Severity::Warning));
        assert!(found.iter().all(|finding| finding.message.contains(&format!("{name} is "))), "{found:?}");
    }
    let next = |id: &str| found(|facts| facts.table.as_mut().unwrap().next_id = Some(id.to_owned()));
    assert_eq!(next("8000000000000000000"), []);
    assert!(next("9000000000000000000")[0].message.contains("near the end"));
}

#[test]
fn a_tenant_of_text_is_found() {
    let text = errors(|facts| {
        if let Some(table) = &mut facts.table {
            table.columns[1].column_type = "varchar(191)".into();
        }
    });
    assert!(text.starts_with("outbox_message.tenant_id is varchar(191): make it varbinary(255)"), "{text}");
}

#[test]
fn a_table_without_transactions_is_found() {
    let text = errors(|facts| {
        for table in [&mut facts.table, &mut facts.claims].into_iter().flatten() {
            table.engine = Some("Aria".into());
        }
    });
    assert_eq!(text.matches("has the engine Aria").count(), 2, "{text}");
}

#[test]
fn the_index_may_leave_out_the_primary_key_and_nothing_else() {
    let without = |places: usize| {
        found(|facts| {
            if let Some(table) = &mut facts.table {
                table.indexes[1].columns.truncate(places);
            }
        })
    };
    assert_eq!(without(2), []);
    assert!(without(1)[0].message.contains("ADD INDEX `outbox_pending`"));
}

#[test]
fn a_lost_sentinel_or_table_of_claims_is_found() {
    let sentinel = errors(|facts| facts.sentinel = Some(false));
    assert!(sentinel.contains("INSERT INTO `outbox_message_claims` (tenant_id) VALUES (x'')"), "{sentinel}");
    let table = errors(|facts| facts.claims = None);
    assert!(table.starts_with("there is no table outbox_message_claims"), "{table}");
}

#[test]
fn what_a_server_or_a_session_must_not_be_is_found() {
    for (name, value, word) in [
        ("read_only", "ON", "read-only"),
        ("version", "5.7.44", "MySQL from 8.0.14"),
        ("version", "8.0.11-TiDB-v8.5.0", "which takes SKIP LOCKED and locks nothing"),
        ("version_comment", "TiDB Server (Apache License 2.0)", "use MySQL or MariaDB"),
        ("autocommit", "OFF", "autocommit is off"),
        ("sql_mode", "EMPTY_STRING_IS_NULL", "EMPTY_STRING_IS_NULL"),
    ] {
        let text = errors(|facts| facts.settings.insert(0, (name.into(), value.into())));
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn a_missing_right_is_found() {
    let text = errors(|facts| {
        facts.may_settle = Some(false);
        for table in [&mut facts.table, &mut facts.claims].into_iter().flatten() {
            for column in &mut table.columns {
                column.privileges = "select".into();
            }
        }
    });
    assert!(text.contains("grant SELECT and UPDATE on outbox_message"), "{text}");
    assert!(text.contains("lacks INSERT on") && text.contains("lacks UPDATE on"), "{text}");
}
