//! Names that need quotes, names that cannot be, and sessions that read texts in their own way.

use outbox_core::{MessageId, ProbeRequest, Settlement, Store, Tenants, Timestamp};
use outbox_sql::{Columns, InvalidTable, OutboxTable};
use outbox_sqlx::mysql::MySqlTable;
use sqlx::mysql::MySqlPoolOptions;

use crate::mysql::{Database, Driver, STORE, WRITER};
use crate::server::{claim, ids, message, refused, tenant};

/// Appends, reads, probes, claims and settles on a table of these names.
async fn works(database: &Database, table: &OutboxTable) {
    let live = database.make(table).await;
    let written = database.append(&live, &[message("acme", "1"), message("acme", "2")]).await;
    let store = database.store(table);
    let claimed = claim(&store, "acme").await;
    assert_eq!(ids(&claimed), written, "{table:?}");
    claimed.claim.settle(Settlement::published([MessageId::new(written[0])])).await.unwrap();
    let pending = store.pending(&tenant("acme"), 10.try_into().unwrap()).await.unwrap();
    assert_eq!(pending.len(), 1);
    for tenants in [Tenants::Discovered, Tenants::Named([tenant("acme")].into())] {
        let oldest = store.probe(&ProbeRequest::new(tenants)).await.unwrap().oldest;
        assert_eq!(oldest[0].id.get(), written[1]);
    }
    assert_eq!(store.check().await.unwrap(), []);
    store.close().await;
}

/// Quotes, capitals, spaces, keywords, backslashes, dots, placeholders and names of 64 characters (less those of the
/// table of claims) are names like others; so is that of another database.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn names_that_need_quotes_work(driver: Driver) {
    let database = Database::create(driver).await;
    let longest = "é".repeat(57);
    for name in ["My Table", "select", "a\"b", "it's", "back\\slash", "a`b", "?", "oldest", "-- x", &longest]
    {
        works(&database, &OutboxTable::new(name)).await;
    }
    works(&database, &OutboxTable::new("elsewhere").with_schema(&database.name)).await;
    database.drop().await;
}

/// So are the columns' names, even those of other columns and of the statements' own words.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn columns_that_need_quotes_work(driver: Driver) {
    let database = Database::create(driver).await;
    let mut odd = Columns::default();
    odd.id = "tenant".into();
    odd.tenant_id = "id".into();
    odd.kind = "a`b\"".into();
    odd.subject_id = "order".into();
    odd.payload = "entries".into();
    odd.headers = Some("o.p".into());
    odd.occurred_at = "My Time".into();
    odd.published_at = "é".repeat(64);
    works(&database, &OutboxTable::new("t").with_columns(odd)).await;
    database.drop().await;
}

/// A name that MySQL cannot hold is refused before anything is sent.
pub(crate) fn names_that_cannot_be_are_refused(_: Driver) {
    let (longest, too_long) = ("x".repeat(57), "x".repeat(58));
    assert!(MySqlTable::new(OutboxTable::new(longest)).is_ok());
    for name in [too_long.as_str(), "", "a\0b", "crab \u{1f980}", "space "] {
        let refused = MySqlTable::new(OutboxTable::new(name)).unwrap_err();
        assert!(matches!(refused, InvalidTable::Name { .. }), "{refused}");
    }
}

/// A stored function of a built-in one's name is not called: neither by an append nor by a store.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn stored_functions_of_built_in_names_change_nothing(driver: Driver) {
    let database = Database::create(driver).await;
    for (name, parameters, returns) in [
        ("octet_length", "a longtext", "bigint"),
        ("coalesce", "a bigint, b bigint", "bigint"),
        ("unhex", "a text", "text"),
        ("concat_ws", "a text, b text, c text", "text"),
        ("version", "", "text"),
    ] {
        database
            .run(format!(
                "CREATE FUNCTION {name}({parameters}) RETURNS {returns} DETERMINISTIC
                 BEGIN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a namesake was called'; RETURN NULL; END"
            ))
            .await;
    }
    works(&database, &OutboxTable::default()).await;
    database.drop().await;
}

/// MariaDB has a mode in which an empty text that is bound is null: a probe would find no tenant, and say nothing.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_session_in_which_an_empty_text_is_none_is_refused(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    database.append(&table, &[message("acme", "1")]).await;
    let begin = "/*M! SET SESSION sql_mode = 'EMPTY_STRING_IS_NULL' */";
    let store = driver.pool_that_begins(database.options_of(STORE), 1, begin).store(table.description());
    let probed = store.probe(&ProbeRequest::new(Tenants::Discovered)).await;
    if database.text("SELECT version()").await.contains("MariaDB") {
        let (probe, claim) = (probed.unwrap_err(), refused(&store, "acme").await);
        for error in [probe, claim] {
            assert!(error.message().contains("EMPTY_STRING_IS_NULL"), "{error}");
        }
    } else {
        assert_eq!(probed.unwrap().oldest.len(), 1, "MySQL has no such mode");
    }
    store.close().await;
    database.drop().await;
}

/// Whatever a session says of quotes, backslashes, strictness, time zones and character sets, on the writer's side
/// and on the relay's: what was written comes back.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn no_setting_of_a_session_changes_what_comes_back(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    for (round, begin) in [
        "SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE,HIGH_NOT_PRECEDENCE'",
        "SET SESSION sql_mode = ''",
        "SET SESSION sql_mode = 'TRADITIONAL,NO_UNSIGNED_SUBTRACTION,NO_AUTO_VALUE_ON_ZERO'",
        "SET SESSION time_zone = '+05:45'",
        "SET NAMES latin1",
        "SET SESSION sql_safe_updates = 1",
    ]
    .into_iter()
    .enumerate()
    {
        let writer = MySqlPoolOptions::new()
            .max_connections(1)
            .after_connect(move |session, _| {
                Box::pin(async move { sqlx::raw_sql(begin).execute(session).await.map(drop) })
            })
            .connect_lazy_with(database.options_of(WRITER));
        let acme = format!("acme é \u{1f980} {round}");
        let mut row = message(&acme, "é\\ \" ' \u{1f980}").with_header("é\\\"'", "\u{1f980}\\n");
        row.kind = "é\\\"' \u{1f980}".into();
        row.subject_id = "é\\\"' \u{1f980} ".into();
        row.occurred_at = Some(Timestamp::from_micros(1_711_848_600_000_001));
        let now = message(&acme, "");
        let mut transaction = writer.begin().await.unwrap();
        let written = table.append_all(&mut transaction, &[row.clone(), now]).await.unwrap();
        transaction.commit().await.unwrap();
        writer.close().await;

        let pool = driver.pool_that_begins(database.options_of(STORE), 1, begin);
        let store = pool.store(table.description());
        let claimed = claim(&store, &acme).await;
        let [read, now] = &claimed.messages[..] else { panic!("{begin}: {claimed:?}") };
        assert_eq!((&read.kind, &read.subject_id), (&row.kind, &row.subject_id), "{begin}");
        assert_eq!((&read.payload, &read.headers), (&row.payload, &row.headers), "{begin}");
        assert_eq!(Some(read.occurred_at), row.occurred_at, "{begin}");
        let (age, server) = (now.occurred_at.as_micros(), "SELECT unix_timestamp() * 1000000");
        assert!(age.abs_diff(database.number(server).await) < 60_000_000, "{begin}: {age}");
        claimed.claim.settle(Settlement::published([written[0]])).await.unwrap();
        let oldest = store.probe(&ProbeRequest::new(Tenants::Named([tenant(&acme)].into()))).await.unwrap().oldest;
        assert_eq!(oldest[0].id, written[1], "{begin}");
        assert!(oldest[0].time.unwrap().age.as_secs() < 60, "{begin}");
        store.close().await;
    }
    database.drop().await;
}
