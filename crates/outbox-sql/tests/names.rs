//! No name changes what the SQL says: with any names that are taken, each statement is the one of the default table
//! but for what is between quotes.

use outbox_core::{Settling, TenantId};
use outbox_sql::mysql::{self, MySqlStatements};
use outbox_sql::postgres::{self, PostgresStatements, wake};
use outbox_sql::sqlite::{self, SqliteStatements, check};
use outbox_sql::{Columns, Dialect, InvalidTable, OutboxTable};
use proptest::prelude::*;

/// What the database reads, and its comments: quoted names and texts are one sign each.
fn skeleton(sql: &str, dialect: Dialect) -> String {
    let (mut rest, mut skeleton) = (sql, String::new());
    while let Some(first) = rest.chars().next() {
        let escapes = match dialect {
            Dialect::MySql => first == '\'',
            _ => first == 'E' && rest.starts_with("E'"),
        };
        let after = &rest[first.len_utf8()..];
        rest = match first {
            '\'' => quoted(after, '\'', escapes),
            'E' if escapes => quoted(&after[1..], '\'', true),
            '"' | '`' => quoted(after, first, false),
            '-' if after.starts_with('-') => {
                let (comment, behind) = rest.split_once('\n').unwrap_or((rest, ""));
                skeleton.push_str(comment);
                rest = behind;
                continue;
            }
            other => {
                skeleton.push(other);
                rest = after;
                continue;
            }
        };
        skeleton.push(if matches!(first, '"' | '`') { '¤' } else { '§' });
    }
    skeleton
}

/// What follows the quotation that has begun.
fn quoted(text: &str, mark: char, escapes: bool) -> &str {
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let after = &rest[next.len_utf8()..];
        rest = match next {
            '\\' if escapes => after.get(1..).unwrap_or_default(),
            next if next == mark && !after.starts_with(mark) => return after,
            next if next == mark => &after[mark.len_utf8()..],
            _ => after,
        };
    }
    panic!("a quotation without an end: {text}");
}

fn postgres(table: &OutboxTable, tenant: &TenantId) -> Result<Vec<String>, InvalidTable> {
    let marking = PostgresStatements::new(table)?;
    let deleting = marking.clone().with_settling(table, Settling::Delete);
    let mut all = vec![
        postgres::schema::create_table(table)?,
        wake::notify(table),
        wake::notify_trigger_ddl(table)?,
        wake::drop_notify_trigger_ddl(table)?,
    ];
    for statements in [marking, deleting] {
        all.push(statements.lock_of(tenant));
        let PostgresStatements {
            lock, claim, claim_others, pending, probe, probe_named, mark, append, ..
        } = statements;
        all.extend(
            [lock, claim, claim_others, pending, probe, probe_named, mark, append].map(|s| s.to_string()),
        );
    }
    Ok(all)
}

fn mysql(table: &OutboxTable, _: &TenantId) -> Result<Vec<String>, InvalidTable> {
    let marking = MySqlStatements::new(table)?;
    let deleting = marking.clone().with_settling(table, Settling::Delete);
    let mut all = vec![mysql::schema::create_table(table)?, mysql::append(table, 2)];
    for MySqlStatements {
        prove_writable,
        lock,
        wait,
        exists,
        add,
        claim,
        pending,
        probe_named,
        probe_next,
        mark,
        ..
    } in [marking, deleting]
    {
        let statements =
            [prove_writable, lock, wait, exists, add, claim, pending, probe_named, probe_next, mark];
        all.extend(statements.map(|statement| statement.to_string()));
    }
    Ok(all)
}

fn sqlite(table: &OutboxTable, _: &TenantId) -> Result<Vec<String>, InvalidTable> {
    let marking = SqliteStatements::new(table)?;
    let deleting = marking.clone().with_settling(table, Settling::Delete);
    let mut all = vec![
        sqlite::schema::create_table(table)?,
        sqlite::append(table, 2),
        check::describe_table(table),
        check::describe_columns(table),
        check::describe_indexes(table),
        check::describe_journal(table),
    ];
    for SqliteStatements {
        pending,
        claim,
        claim_others,
        probe,
        probe_named,
        mark,
        prove_writable,
        prove_alive,
        ..
    } in [marking, deleting]
    {
        let each = [pending, claim, claim_others, probe, probe_named, mark, prove_writable, prove_alive];
        all.extend(each.iter().map(ToString::to_string));
    }
    Ok(all)
}

/// A table with these names; where two columns have one name, it is refused.
fn table(names: &[String]) -> OutboxTable {
    let mut columns = Columns::default();
    let parts = [
        &mut columns.id,
        &mut columns.tenant_id,
        &mut columns.kind,
        &mut columns.subject_id,
        &mut columns.payload,
        &mut columns.occurred_at,
        &mut columns.published_at,
    ];
    for (part, name) in parts.into_iter().zip(&names[2..]) {
        part.clone_from(name);
    }
    columns.headers = Some(names[9].clone());
    OutboxTable::new(&names[0]).with_schema(&names[1]).with_columns(columns)
}

/// What ends a name, a text, a statement or a comment somewhere, and what does not.
fn names() -> impl Strategy<Value = Vec<String>> {
    let part = prop_oneof![
        Just("\"".to_owned()),
        Just("'".to_owned()),
        Just("`".to_owned()),
        Just("\\".to_owned()),
        Just("; DROP TABLE t; --".to_owned()),
        Just("\n".to_owned()),
        Just("*/".to_owned()),
        Just("$$".to_owned()),
        Just("\")".to_owned()),
        any::<char>().prop_map(String::from),
        "[a-zA-Z]{1,3}",
    ];
    let name = prop::collection::vec(part, 1..4).prop_map(|parts| parts.concat());
    prop::collection::vec(name, 10)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn no_name_changes_what_a_statement_says(names in names(), tenant in "[^\0]{1,8}") {
        type Statements = fn(&OutboxTable, &TenantId) -> Result<Vec<String>, InvalidTable>;
        let databases: [(Dialect, Statements); 3] =
            [(Dialect::Postgres, postgres), (Dialect::MySql, mysql), (Dialect::Sqlite, sqlite)];
        let tenant = TenantId::new(tenant).expect("a tenant");
        let named = table(&names);
        let plain = table(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"].map(String::from));
        for (dialect, statements) in databases {
            let control = names.iter().any(|name| name.chars().any(char::is_control));
            let Ok(named) = statements(&named, &tenant) else { continue };
            prop_assert!(!control, "{dialect} takes a control character: {names:?}");
            let plain = statements(&plain, &tenant).expect("valid names");
            for (named, plain) in named.iter().zip(&plain) {
                prop_assert_eq!(channel_less(&skeleton(named, dialect)), channel_less(&skeleton(plain, dialect)));
            }
        }
    }
}

/// Without the digits of the channel, which are a hash of the names.
fn channel_less(skeleton: &str) -> String {
    let mut rest = skeleton;
    let mut without = String::new();
    while let Some((before, after)) = rest.split_once("outbox_") {
        without.push_str(before);
        let digits = after.get(..16).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        rest = if digits.is_some() { &after[16..] } else { after };
    }
    without.push_str(rest);
    without
}

#[test]
fn the_skeleton_tells_statements_apart() {
    let one = skeleton("SELECT \"a\"\"b\", E'it\\'s', 'x''y' -- no\nFROM \"t\"", Dialect::Postgres);
    assert_eq!(one, "SELECT ¤, §, § -- noFROM ¤");
    let two = skeleton("SELECT `a`, 'b\\'c'", Dialect::MySql);
    assert_eq!(two, "SELECT ¤, §");
    assert_ne!(
        skeleton("SELECT \"a\"; DROP", Dialect::Sqlite),
        skeleton("SELECT \"a; DROP\"", Dialect::Sqlite)
    );
}
