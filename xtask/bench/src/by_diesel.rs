//! The stores of outbox-diesel, on the databases of the others.

use anyhow::{Context, Result};
use diesel::connection::SimpleConnection as _;
use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::bb8::Pool;
use diesel_async::{AsyncMysqlConnection, AsyncPgConnection};
use outbox_diesel::OutboxTable;
use outbox_diesel::mysql::MySqlStore;
use outbox_diesel::postgres::PostgresStore;
use outbox_diesel::sqlite::{SqliteConnector, SqliteStore};

use super::bed::Bed;
use super::lanes::{CONNECTIONS, Database};
use super::mariadb::{DATABASE, MariaBed};
use super::sqlite::SqliteBed;

/// Through a pool of bb8.
pub(super) async fn on_postgres(bed: &Bed) -> Result<PostgresStore> {
    let manager = AsyncDieselConnectionManager::<AsyncPgConnection>::new(url(bed)?);
    let pool = Pool::builder().max_size(CONNECTIONS).min_idle(CONNECTIONS).build(manager).await?;
    Ok(PostgresStore::new(pool, OutboxTable::default())?)
}

/// On connections of its own.
pub(super) fn on_sqlite(bed: &SqliteBed) -> Result<SqliteStore> {
    let path = bed.path();
    let path = path.to_str().context("Diesel takes a path that is UTF-8: set TMPDIR")?;
    let connector = SqliteConnector::new(path)
        .with_setup(|connection| connection.batch_execute("PRAGMA synchronous = FULL"));
    Ok(SqliteStore::new(connector, OutboxTable::default())?)
}

/// Through a pool of bb8.
pub(super) async fn on_mariadb(bed: &MariaBed) -> Result<MySqlStore> {
    let manager = AsyncDieselConnectionManager::<AsyncMysqlConnection>::new(url(bed)?);
    let pool = Pool::builder().max_size(CONNECTIONS).min_idle(CONNECTIONS).build(manager).await?;
    Ok(MySqlStore::new(pool, OutboxTable::default().with_schema(DATABASE))?)
}

fn url(database: &impl Database) -> Result<String> {
    database.url().context("this database has no address")
}
