//! The shop's database: its orders and their outbox, on SQLite or PostgreSQL.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use outbox_core::{MessageId, NewMessage, Store};
use outbox_sqlx::OutboxTable;
use outbox_sqlx::postgres::{PostgresStore, PostgresTable};
use outbox_sqlx::sqlite::{SqliteStore, SqliteTable};
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Postgres, Sqlite};

/// The environment variable that tells a replica its database.
pub(super) const TARGET: &str = "OUTBOX_DEMO_TARGET";

/// Which database to run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Sqlite(PathBuf),
    Postgres { schema: String, url: String },
}

impl Target {
    /// A server, with a schema of our own on it.
    pub(super) fn postgres(url: String) -> Result<Self> {
        let is_postgres = url.starts_with("postgres://") || url.starts_with("postgresql://");
        ensure!(is_postgres, "--database-url must begin with postgres:// (SQLite is the default)");
        Ok(Self::Postgres { schema: format!("outbox_demo_{}", std::process::id()), url })
    }

    /// As a replica is told it.
    pub(super) fn to_text(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite {}", path.display()),
            Self::Postgres { schema, url } => format!("{schema} {url}"),
        }
    }

    fn table(&self) -> OutboxTable {
        match self {
            Self::Sqlite(_) => OutboxTable::default(),
            Self::Postgres { schema, .. } => OutboxTable::default().with_schema(schema),
        }
    }
}

impl FromStr for Target {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(' ') {
            Some(("sqlite", path)) => Ok(Self::Sqlite(path.into())),
            Some((schema, url)) => Ok(Self::Postgres { schema: schema.into(), url: url.into() }),
            None => anyhow::bail!("{TARGET} is broken"),
        }
    }
}

/// The database, opened by one process.
#[derive(Debug)]
pub(super) enum Database {
    Sqlite { pool: SqlitePool, table: SqliteTable },
    Postgres { pool: PgPool, table: PostgresTable, schema: String },
}

impl Database {
    pub(super) async fn open(target: &Target) -> Result<Self> {
        Ok(match target {
            Target::Sqlite(path) => {
                let options = SqliteConnectOptions::new()
                    .filename(path)
                    .create_if_missing(true)
                    .journal_mode(SqliteJournalMode::Wal)
                    .busy_timeout(Duration::from_secs(5));
                let pool = SqlitePoolOptions::new().max_connections(6).connect_with(options).await?;
                Self::Sqlite { pool, table: SqliteTable::new(target.table())? }
            }
            Target::Postgres { schema, url } => {
                let pool = PgPoolOptions::new().max_connections(6).connect(url).await?;
                Self::Postgres { pool, table: PostgresTable::new(target.table())?, schema: schema.clone() }
            }
        })
    }

    /// Makes the tables.
    pub(super) async fn create(&self) -> Result<()> {
        let orders = "(number bigint PRIMARY KEY, customer text NOT NULL)";
        match self {
            Self::Sqlite { pool, table } => {
                let statements = format!("CREATE TABLE orders {orders}; {}", table.ddl());
                sqlx::raw_sql(AssertSqlSafe(statements)).execute(pool).await?;
            }
            Self::Postgres { pool, table, schema } => {
                let statements =
                    format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.orders {orders}; {}", table.ddl());
                sqlx::raw_sql(AssertSqlSafe(statements)).execute(pool).await?;
            }
        }
        Ok(())
    }

    /// Removes the tables from a server; a file is removed with its folder.
    pub(super) async fn remove(&self) -> Result<()> {
        if let Self::Postgres { pool, schema, .. } = self {
            let statement = format!("DROP SCHEMA {schema} CASCADE");
            sqlx::raw_sql(AssertSqlSafe(statement)).execute(pool).await?;
        }
        Ok(())
    }

    /// What a relay reads from.
    pub(super) fn store(&self) -> Result<Arc<dyn Store>> {
        Ok(match self {
            Self::Sqlite { pool, table } => {
                Arc::new(SqliteStore::new(pool.clone(), table.description().clone())?)
            }
            Self::Postgres { pool, table, .. } => {
                Arc::new(PostgresStore::new(pool.clone(), table.description().clone())?)
            }
        })
    }

    /// Whether two transactions can write at once, so that one can commit later than the other's later row.
    pub(super) fn has_concurrent_writers(&self) -> bool {
        matches!(self, Self::Postgres { .. })
    }

    /// Begins a transaction of the application.
    pub(super) async fn begin(&self) -> Result<Transaction> {
        Ok(match self {
            Self::Sqlite { pool, table } => {
                Transaction::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await?, table.clone())
            }
            Self::Postgres { pool, table, schema } => {
                Transaction::Postgres(pool.begin().await?, table.clone(), schema.clone())
            }
        })
    }
}

/// A transaction of the application: nothing of it is seen before it commits.
#[derive(Debug)]
pub(super) enum Transaction {
    Sqlite(sqlx::Transaction<'static, Sqlite>, SqliteTable),
    Postgres(sqlx::Transaction<'static, Postgres>, PostgresTable, String),
}

impl Transaction {
    /// Writes an order and, beside it, the message that tells of it.
    pub(super) async fn place(&mut self, number: i64, message: &NewMessage) -> Result<MessageId> {
        let customer = message.tenant_id.as_str();
        match self {
            Self::Sqlite(transaction, table) => {
                let insert = "INSERT INTO orders (number, customer) VALUES ($1, $2)";
                sqlx::query(insert).bind(number).bind(customer).execute(&mut **transaction).await?;
                Ok(table.append(&mut *transaction, message).await?)
            }
            Self::Postgres(transaction, table, schema) => {
                let insert = format!("INSERT INTO {schema}.orders (number, customer) VALUES ($1, $2)");
                let insert = sqlx::query(AssertSqlSafe(insert));
                insert.bind(number).bind(customer).execute(&mut **transaction).await?;
                Ok(table.append(&mut *transaction, message).await?)
            }
        }
    }

    pub(super) async fn commit(self) -> Result<()> {
        match self {
            Self::Sqlite(transaction, _) => transaction.commit().await?,
            Self::Postgres(transaction, ..) => transaction.commit().await?,
        }
        Ok(())
    }

    pub(super) async fn roll_back(self) -> Result<()> {
        match self {
            Self::Sqlite(transaction, _) => transaction.rollback().await?,
            Self::Postgres(transaction, ..) => transaction.rollback().await?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A replica understands what it is told.
    #[test]
    fn target_survives_the_way_to_a_replica() {
        let url = "postgres://me:a b@host/db".to_owned();
        for target in [Target::Sqlite("/a folder/shop.db".into()), Target::postgres(url).unwrap()] {
            assert_eq!(target.to_text().parse::<Target>().unwrap(), target);
        }
        assert!(Target::postgres("mysql://x".into()).is_err());
    }
}
