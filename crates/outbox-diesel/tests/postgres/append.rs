//! Writing on PostgreSQL, from a synchronous connection and from one of `diesel-async`.

use std::error::Error;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use outbox_core::{Headers, MessageId, NewMessage, OutboxMessage, Timestamp};
use outbox_diesel::postgres::PostgresTable;
use outbox_diesel::{AppendError, InvalidMessage, OutboxTable, PayloadType};
use outbox_suite::postgres::{Database, ROLE, STORE};
use outbox_suite::server::{claim, message, tenant};

use crate::on_deadpool::driver;

type Failure = Box<dyn Error + Send + Sync>;

use self::schema::orders;

/// The application's own.
mod schema {
    diesel::table! {
        orders (id) {
            id -> Int8,
            item -> Text,
        }
    }
}

fn url(database: &Database) -> String {
    let server = std::env::var("OUTBOX_TEST_POSTGRES_URL").unwrap();
    let (address, options) = server.split_once('?').unwrap_or((&server, ""));
    let (host, _) = address.rsplit_once('/').unwrap();
    format!("{host}/{}?{options}", database.name)
}

fn story() -> Vec<NewMessage> {
    let mut tombstone = NewMessage::new(tenant("acme"), "order.deleted", "order-2", "");
    tombstone.payload = None;
    vec![
        NewMessage::new(tenant("acme"), "order.placed", "order-1", b"a\0\xff")
            .with_header("traceparent", "00-1")
            .with_occurred_at(Timestamp::from_micros(1_700_000_000_123_456)),
        tombstone,
        NewMessage::new(tenant("ACME"), "ordre.passé", "é", "{}"),
    ]
}

/// What is pending, as a relay on sqlx reads it.
async fn pending(database: &Database) -> Vec<OutboxMessage> {
    database.run(format!("GRANT SELECT, UPDATE ON outbox_message TO {ROLE}")).await;
    let pool = database.pool(STORE, 4);
    let store = outbox_sqlx::postgres::PostgresStore::new(pool, OutboxTable::default()).unwrap();
    let mut messages = claim(&store, "acme").await.messages;
    messages.extend(claim(&store, "ACME").await.messages);
    messages
}

fn assert_is_story(messages: &[OutboxMessage], ids: &[MessageId]) {
    assert_eq!(messages.iter().map(|message| message.id).collect::<Vec<_>>(), ids);
    for (message, written) in messages.iter().zip(story()) {
        assert_eq!(message.kind, written.kind);
        assert_eq!(message.subject_id, written.subject_id);
        assert_eq!(message.payload, written.payload);
        assert_eq!(message.headers, written.headers);
        if let Some(time) = written.occurred_at {
            assert_eq!(message.occurred_at, time);
        }
    }
    assert_eq!(messages.last().unwrap().headers, Headers::new());
}

/// Beside the application's own table, in its transaction: what commits is there as written, what rolls back is not.
#[tokio::test]
async fn a_synchronous_connection_appends_in_its_own_transaction() {
    let database = Database::create(driver()).await;
    let table = PostgresTable::new(OutboxTable::default()).unwrap();
    let (url, shared) = (url(&database), table.clone());
    let ids = tokio::task::spawn_blocking(move || {
        let mut connection = PgConnection::establish(&url).unwrap();
        connection.batch_execute(&shared.ddl()).unwrap();
        connection.batch_execute("CREATE TABLE orders (id bigserial PRIMARY KEY, item text)").unwrap();
        let gone = connection.transaction(|connection| {
            shared.append(&message("acme", "never")).execute(connection).unwrap();
            Err::<(), _>(diesel::result::Error::RollbackTransaction)
        });
        gone.unwrap_err();
        let ids = connection.transaction::<_, Failure, _>(|connection| {
            diesel::insert_into(orders::table).values(orders::item.eq("book")).execute(connection)?;
            let story = story();
            let mut ids = vec![shared.append(&story[0]).execute(connection)?];
            ids.extend(shared.append_all(&story[1..]).execute(connection)?);
            assert_eq!(shared.append_all(&[]).execute(connection)?, []);
            Ok(ids)
        });
        assert_eq!(orders::table.count().get_result(&mut connection), Ok(1));
        ids.unwrap()
    });
    let ids = ids.await.unwrap();
    assert_is_story(&pending(&database).await, &ids);
    database.drop().await;
}

/// The same through a pool of r2d2, whose connections are not Diesel's own type.
#[tokio::test]
async fn a_pooled_synchronous_connection_appends() {
    use diesel::r2d2::{ConnectionManager, Pool};
    let database = Database::create(driver()).await;
    let table = PostgresTable::new(OutboxTable::default()).unwrap();
    database.run(table.ddl()).await;
    let (url, shared) = (url(&database), table.clone());
    let ids = tokio::task::spawn_blocking(move || {
        let pool = Pool::builder().max_size(1).build(ConnectionManager::<PgConnection>::new(url)).unwrap();
        shared.append_all(&story()).execute(&mut pool.get().unwrap()).unwrap()
    });
    let ids = ids.await.unwrap();
    assert_is_story(&pending(&database).await, &ids);
    database.drop().await;
}

/// What cannot be held is refused with its place, before anything is sent: the transaction goes on.
#[tokio::test]
async fn an_invalid_message_leaves_the_transaction_usable() {
    let database = Database::create(driver()).await;
    let table = PostgresTable::new(OutboxTable::default()).unwrap();
    let json = OutboxTable::new("json").with_payload_type(PayloadType::Jsonb);
    let json = PostgresTable::new(json).unwrap();
    database.run(table.ddl() + &json.ddl()).await;
    let url = url(&database);
    let check = tokio::task::spawn_blocking(move || {
        let mut connection = PgConnection::establish(&url).unwrap();
        connection.transaction::<_, Failure, _>(|connection| {
            let bad = message("acme", "2").with_header("trace\0", "x");
            let error = table.append_all(&[message("acme", "1"), bad]).execute(connection).unwrap_err();
            let AppendError::Invalid { index: 1, reason: InvalidMessage::Nul { part: "header" } } = error
            else {
                panic!("{error:?}");
            };
            table.append(&message("acme", "1")).execute(connection)?;
            json.append(&message("acme", "{\"a\": 1}")).execute(connection)?;
            Ok(())
        })
    });
    check.await.unwrap().unwrap();
    assert_eq!(database.number("SELECT count(*) FROM outbox_message").await, 1);
    assert_eq!(database.text("SELECT payload::text FROM json").await, "{\"a\": 1}");
    database.drop().await;
}

/// What the database refuses is said with what to do about it, and with Diesel's own error.
#[tokio::test]
async fn a_refusal_says_what_to_do() {
    let database = Database::create(driver()).await;
    let table = PostgresTable::new(OutboxTable::default()).unwrap();
    let url = url(&database);
    let errors = tokio::task::spawn_blocking(move || {
        let mut connection = PgConnection::establish(&url).unwrap();
        let mut errors = vec![table.append(&message("acme", "1")).execute(&mut connection).unwrap_err()];
        let ddl = table.ddl()
            + "CREATE RULE nothing AS ON INSERT TO outbox_message DO INSTEAD NOTHING;
             CREATE ROLE nobody_at_all;";
        connection.batch_execute(&ddl).unwrap();
        connection
            .batch_execute("ALTER TABLE outbox_message DISABLE RULE nothing; SET ROLE nobody_at_all")
            .unwrap();
        errors.push(table.append(&message("acme", "1")).execute(&mut connection).unwrap_err());
        connection.batch_execute("RESET ROLE; DROP ROLE nobody_at_all; BEGIN READ ONLY").unwrap();
        errors.push(table.append(&message("acme", "1")).execute(&mut connection).unwrap_err());
        errors
    });
    let expected = [
        "public.outbox_message does not exist: create it (its DDL, its migration), or correct schema, name or \
         database",
        "permission denied for table outbox_message: grant INSERT, and SELECT of the id, on public.outbox_message",
        "the server is read-only",
    ];
    for (error, expected) in errors.await.unwrap().into_iter().zip(expected) {
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.source().unwrap().is::<diesel::result::Error>());
    }
    database.drop().await;
}

/// The same on `diesel-async`, on its connection and on what stands for one.
#[tokio::test]
async fn an_asynchronous_connection_appends_in_its_own_transaction() {
    use diesel_async::{AsyncConnection, AsyncPgConnection};
    let database = Database::create(driver()).await;
    let table = PostgresTable::new(OutboxTable::default()).unwrap();
    database.run(table.ddl() + "CREATE TABLE orders (id bigserial PRIMARY KEY, item text)").await;
    let mut connection = AsyncPgConnection::establish(&url(&database)).await.unwrap();
    let gone = connection.transaction::<(), diesel::result::Error, _>(async |connection| {
        table.append(&message("acme", "never")).execute_async(connection).await.unwrap();
        Err(diesel::result::Error::RollbackTransaction)
    });
    gone.await.unwrap_err();
    let ids = connection.transaction::<_, Failure, _>(async |connection| {
        let order = diesel::insert_into(orders::table).values(orders::item.eq("book"));
        diesel_async::RunQueryDsl::execute(order, connection).await?;
        let story = story();
        let mut ids = vec![table.append(&story[0]).execute_async(connection).await?];
        ids.extend(table.append_all(&story[1..]).execute_async(connection).await?);
        assert_eq!(table.append_all(&[]).execute_async(connection).await?, []);
        Ok(ids)
    });
    let ids = ids.await.unwrap();
    assert_is_story(&pending(&database).await, &ids);
    database.drop().await;
}

/// The drop-in migration makes the table of the default description, as the DDL does, and takes it away; `table!` is
/// that table, column by column.
#[tokio::test]
async fn the_migration_is_the_ddl_and_the_schema_is_its_table() {
    use outbox_diesel::postgres::schema::outbox_message as messages;
    const UP: &str = include_str!("../../migrations/postgres/2026-01-01-000000_outbox_message/up.sql");
    const DOWN: &str = include_str!("../../migrations/postgres/2026-01-01-000000_outbox_message/down.sql");
    let table = PostgresTable::new(OutboxTable::default()).unwrap();
    assert_eq!(UP, table.ddl());
    let database = Database::create(driver()).await;
    let url = url(&database);
    let check = tokio::task::spawn_blocking(move || {
        let mut connection = PgConnection::establish(&url).unwrap();
        connection.batch_execute(UP).unwrap();
        let written = table.append(&message("acme", "1")).execute(&mut connection).unwrap();
        let pending = messages::published_at.is_null().and(messages::headers.is_null());
        let read = messages::table
            .filter(pending.and(messages::occurred_at.le(diesel::dsl::now)))
            .select((
                messages::id,
                messages::tenant_id,
                messages::kind,
                messages::subject_id,
                messages::payload,
            ))
            .load::<(i64, String, String, String, Option<Vec<u8>>)>(&mut connection);
        let row = (written.get(), "acme".into(), "kind".into(), "subject".into(), Some(b"1".to_vec()));
        assert_eq!(read.unwrap(), [row]);
        // Each column's type, as the server calls what Diesel says it is.
        let types = "SELECT string_agg(attname || ' ' || format_type(atttypid, -1), ', ' ORDER BY attnum)
                     FROM pg_attribute WHERE attrelid = 'outbox_message'::regclass AND attnum > 0";
        let types = diesel::dsl::sql::<diesel::sql_types::Text>(types).get_result::<String>(&mut connection);
        assert_eq!(
            types.unwrap(),
            "id bigint, tenant_id text, kind text, subject_id text, payload bytea, headers jsonb, \
             occurred_at timestamp with time zone, published_at timestamp with time zone"
        );
        connection.batch_execute(DOWN).unwrap();
        messages::table.count().get_result::<i64>(&mut connection).unwrap_err();
    });
    check.await.unwrap();
    database.drop().await;
}
