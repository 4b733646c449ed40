//! What a session's `search_path` finds first is not what our statements mean.

use outbox_core::{MessageId, ProbeRequest, Settlement, Settling, Store, Tenants, Timestamp};
use outbox_sql::Dialect;
use outbox_sql::OutboxTable;
use outbox_sqlx::postgres::PostgresTable;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

use crate::AnyStore;
use crate::postgres::{Database, Driver, ROLE, STORE, eager};
use crate::server::{StorePool, claim, ids, is_held, message, request, tenant};

/// How a store connects that finds what is in this schema before the server's own.
fn options(database: &Database, schema: &str) -> PgConnectOptions {
    let path = format!("{schema},pg_catalog,public");
    database.options.clone().application_name(STORE).options([("role", ROLE), ("search_path", &path)])
}

/// An application's own `hashtext` gave one of two relays another key, and both held the tenant.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_function_of_the_application_s_does_not_change_a_tenant_s_key(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    database
        .run(
            "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO PUBLIC;
             CREATE FUNCTION app.hashtext(text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 7';
             CREATE FUNCTION app.pg_try_advisory_xact_lock(int, int) RETURNS bool LANGUAGE sql AS 'SELECT true'",
        )
        .await;
    let written = database.append(&table, &[message("acme", "1")]).await;
    let plain = database.store(table.description());
    let other = driver.pool(options(&database, "app"), 2).store(table.description());
    for (first, second) in [(&plain, &other), (&other, &plain)] {
        let claimed = claim(first, "acme").await;
        assert_eq!(ids(&claimed), written);
        assert!(is_held(second, "acme").await, "two relays hold one tenant");
        claimed.claim.settle(Settlement::release()).await.unwrap();
    }
    other.close().await;
    plain.close().await;
    database.drop().await;
}

/// The session's `search_path` is left to the application: its trigger finds what it always finds.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_trigger_of_the_application_s_runs_with_the_session_s_own_search_path(driver: Driver) {
    let database = Database::create(driver).await;
    let table = database.make(&OutboxTable::default()).await;
    let trigger = format!(
        "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO PUBLIC;
         CREATE TABLE app.seen (id bigint); GRANT INSERT ON app.seen TO {ROLE};
         CREATE FUNCTION app.see() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN INSERT INTO seen VALUES (NEW.id); RETURN NEW; END';
         CREATE TRIGGER see AFTER UPDATE ON public.outbox_message FOR EACH ROW EXECUTE FUNCTION app.see()"
    );
    database.run(trigger).await;
    let written = database.append(&table, &[message("acme", "1")]).await;
    let store = driver.pool(options(&database, "app"), 2).store(table.description());
    let settlement = Settlement::published([MessageId::new(written[0])]);
    claim(&store, "acme").await.claim.settle(settlement).await.unwrap();
    assert_eq!(database.number("SELECT id FROM app.seen").await, written[0]);
    store.close().await;
    database.drop().await;
}

/// Everything of the server's own that can have a namesake has one, which fails when it is used.
const NAMESAKES: &str = r#"
    CREATE SCHEMA hostile;
    GRANT USAGE ON SCHEMA hostile TO PUBLIC;
    CREATE PROCEDURE hostile.try(command text) LANGUAGE plpgsql AS $$
    BEGIN EXECUTE command; EXCEPTION WHEN OTHERS THEN NULL; END $$;
    DO $do$
    DECLARE
        each record;
        body text := 'LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION ''''a namesake was used''''; END''';
    BEGIN
        FOR each IN SELECT p.oid, proname FROM pg_proc AS p WHERE pronamespace = 'pg_catalog'::regnamespace
            AND (proname ~ '^(pg_|has_|convert|octet|clock|isfinite|unnest|version|strpos|position|row_sec)'
                 OR proname IN ('hashtext', 'min', 'max', 'sum', 'count', 'lead', 'set_config', 'current_setting',
                                'obj_description', 'format', 'format_type', 'replace', 'array_agg', 'timezone',
                                'current_database', 'jsonb_typeof', 'date_part', 'extract', 'text', 'int8'))
        LOOP
            CALL hostile.try(format('CREATE FUNCTION hostile.%I(%s) RETURNS %s %s', each.proname,
                pg_get_function_identity_arguments(each.oid), pg_get_function_result(each.oid), body));
        END LOOP;
        FOR each IN SELECT oid, oprname, oprkind, format_type(oprresult, NULL) AS result,
                format_type(oprleft, NULL) AS l, format_type(oprright, NULL) AS r
            FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprkind = 'b'
              AND oprname IN ('=', '<>', '<', '<=', '>', '>=', '+', '-', '*', '/', '%', '||')
        LOOP
            CALL hostile.try(format('CREATE FUNCTION hostile.o%s(%s, %s) RETURNS %s %s',
                each.oid, each.l, each.r, each.result, body));
            CALL hostile.try(format('CREATE OPERATOR hostile.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = hostile.o%s)',
                each.oprname, each.l, each.r, each.oid));
        END LOOP;
        FOR each IN SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')
        LOOP
            EXECUTE format('CREATE TABLE hostile.%I ()', each.relname);
        END LOOP;
        FOR each IN SELECT typname FROM pg_type
            WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b' AND typelem = 0 AND typname !~ '^pg_'
        LOOP
            CALL hostile.try(format('CREATE DOMAIN hostile.%I AS pg_catalog.%I CHECK (pg_catalog.random() IS NULL)',
                each.typname, each.typname));
        END LOOP;
    END $do$;
    CREATE COLLATION hostile."C" (provider = libc, locale = 'POSIX')"#;

/// No function, operator, type or catalog is found through the `search_path`: not by the DDL, not by an append, a
/// probe, a claim, a mark or a check, whatever the table's types.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn nothing_of_the_server_s_own_is_found_through_the_search_path(driver: Driver) {
    let database = Database::create(driver).await;
    database.run(NAMESAKES).await;
    for shadowed in ["hashtext('a')", "1 = 1", "'1'::int8", "(SELECT oid FROM pg_class)"] {
        let mut session = PgConnection::connect_with(&options(&database, "hostile")).await.unwrap();
        let statement = sqlx::AssertSqlSafe(format!("SELECT {shadowed}"));
        assert!(sqlx::raw_sql(statement).execute(&mut session).await.is_err(), "{shadowed} has no namesake");
        session.close().await.unwrap();
    }
    database.run(format!("GRANT CREATE ON SCHEMA public TO {ROLE}")).await;
    let jsonb = OutboxTable::new("jsonb").with_payload_type(outbox_sql::PayloadType::Jsonb);
    for table in [OutboxTable::default(), OutboxTable::prisma("OutboxMessage"), jsonb] {
        for settling in [Settling::Mark, Settling::Delete] {
            lives(driver, &database, &table, settling).await;
        }
    }
    database.drop().await;
}

/// Makes the table, and has a message go all its ways.
async fn lives(driver: Driver, database: &Database, table: &OutboxTable, settling: Settling) {
    let options = options(database, "hostile");
    let mut application = PgConnection::connect_with(&options).await.unwrap();
    let live = PostgresTable::new(table.clone()).unwrap();
    live.create(&mut application).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(live.notify_trigger_ddl())).execute(&mut application).await.unwrap();
    let pool = driver.pool(options, 3);
    for variant in driver.variants() {
        for watermark in [false, true] {
            let store =
                variant.clone().into_iter().fold(pool.store(table), AnyStore::with).with_settling(settling);
            let store = if watermark { store.with_watermark(eager()) } else { store };
            goes_all_its_ways(&store, &pool, table).await;
        }
    }
    pool.close().await;
    sqlx::raw_sql(sqlx::AssertSqlSafe(live.drop_notify_trigger_ddl()))
        .execute(&mut application)
        .await
        .unwrap();
    application.close().await.unwrap();
    database.run(format!("DROP TABLE {}", table.quoted(Dialect::Postgres))).await;
}

async fn goes_all_its_ways(store: &AnyStore, pool: &StorePool, table: &OutboxTable) {
    assert_eq!(store.check().await.unwrap(), []);
    // Twice, for a watermark.
    for _ in 0..2 {
        let written = [
            pool.append(table, &message("acme", "1")).await,
            pool.append(table, &message("acme", "2").with_occurred_at(Timestamp::from_micros(1))).await,
        ];
        for tenants in [Tenants::Discovered, Tenants::Named([tenant("acme")].into())] {
            let oldest = store.probe(&ProbeRequest::new(tenants)).await.unwrap().oldest;
            assert_eq!(oldest.iter().map(|oldest| oldest.id.get()).collect::<Vec<_>>(), written[..1]);
        }
        let pending = store.pending(&tenant("acme"), 10.try_into().unwrap()).await.unwrap();
        assert_eq!(pending.len(), 2);
        let others = request("acme").with_excluded_subjects(vec!["nobody".to_owned()]);
        let claimed = crate::claim(store, &others).await;
        assert_eq!(ids(&claimed), written);
        claimed.claim.settle(Settlement::release()).await.unwrap();
        let mut claimed = claim(store, "acme").await;
        claimed.claim.verify().await.unwrap();
        let published: Vec<_> = written.map(MessageId::new).into();
        claimed.claim.settle(Settlement::published(published)).await.unwrap();
        assert!(claim(store, "acme").await.messages.is_empty());
    }
}
