//! The migration that the crate ships.

use outbox_sqlx::OutboxTable;
use outbox_sqlx::sqlite::{SqliteStore, SqliteTable};
use outbox_suite::sqlite::errors;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

#[tokio::test]
async fn the_migration_is_the_table_and_runs_with_sqlx() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let options =
        SqliteConnectOptions::new().filename(directory.path().join("app.db")).create_if_missing(true);
    let pool = SqlitePoolOptions::new().connect_lazy_with(options);
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite");
    let migrator = sqlx::migrate::Migrator::new(path).await.expect("migrations");
    migrator.run(&pool).await.expect("migrated");
    migrator.run(&pool).await.expect("nothing to do");
    let ddl = SqliteTable::new(OutboxTable::default()).expect("a table").ddl();
    assert!(migrator.iter().any(|migration| migration.sql.as_str() == ddl), "the file is the DDL");
    let store = SqliteStore::new(pool, OutboxTable::default()).expect("a table");
    assert_eq!(errors(&store.check().await.expect("a check")), "");
}
