//! A table, stores on it, and what the laws ask of them.

use std::marker::PhantomData;
use std::sync::Mutex;
use std::time::Duration;

use outbox_core::{MessageId, NewMessage, TenantId};
use outbox_sql::OutboxTable;
use outbox_sqlx::mysql::MySqlTable;
use outbox_testkit::{Capability, Harness, Leftovers, Unsupported, Write};
use sqlx::mysql::MySqlConnectOptions;
use sqlx::{AssertSqlSafe, Connection, MySql, MySqlConnection, MySqlPool, Transaction};

use super::Driver;
use super::database::{Database, STORE, WRITER};
use crate::server::{ServerDriver, StorePool};
use crate::{AnyStore, BOUND, LAW, SOON};

/// How the stores are set.
pub trait Settings: Send + Sync + 'static {
    /// How they are made.
    type Driver: ServerDriver<MySqlConnectOptions> + Default;
    /// What they are called in reports.
    const NAME: &'static str;
    /// What the store's user may do with the table, beside reading it and appending to it.
    const RIGHT: &'static str = "UPDATE";

    /// Sets one.
    fn set(store: AnyStore) -> AnyStore;
}

/// A table in a database of its own, used by users that may do no more than they have to.
pub struct OnMySql<S> {
    database: Database,
    /// Whether the database goes with this table, the first in it.
    first: bool,
    table: MySqlTable,
    writers: MySqlPool,
    pools: Mutex<Vec<StorePool>>,
    setting: PhantomData<S>,
}

/// A writer's transaction.
pub struct OpenTransaction {
    ids: Vec<MessageId>,
    transaction: Transaction<'static, MySql>,
}

impl Write for OpenTransaction {
    fn ids(&self) -> &[MessageId] {
        &self.ids
    }

    async fn commit(self) {
        self.transaction.commit().await.unwrap();
    }

    async fn rollback(self) {
        self.transaction.rollback().await.unwrap();
    }
}

impl<S: Settings> OnMySql<S> {
    async fn on(database: Database, name: &str, first: bool) -> Self {
        let table = database.make(&OutboxTable::new(name)).await;
        let on = format!("ON {}.{name}", database.name);
        let rights = format!("REVOKE UPDATE {on} FROM {STORE}@'%'; GRANT {} {on} TO {STORE}@'%'", S::RIGHT);
        database.run(rights).await;
        // A random story has many writes open at once.
        let writers = database.pool(WRITER, 64);
        Self { database, first, table, writers, pools: Mutex::default(), setting: PhantomData }
    }

    fn name(&self) -> &str {
        self.table.description().name()
    }
}

impl<S: Settings> Harness for OnMySql<S> {
    type Store = AnyStore;
    type Write = OpenTransaction;

    const CANNOT: &'static [Capability] = &[];
    const DEADLINE: Duration = LAW;
    const AT_ONCE: Duration = SOON;
    const FREE_WITHIN: Duration = BOUND;

    fn name() -> &'static str {
        S::NAME
    }

    async fn open() -> Self {
        Self::on(Database::create(Driver::of::<S::Driver>("")).await, "outbox_message", true).await
    }

    async fn connect(&self) -> AnyStore {
        let pool = self.database.driver().pool(self.database.options_of(STORE), 5);
        self.pools.lock().unwrap().push(pool.clone());
        S::set(pool.store(self.table.description()))
    }

    async fn write(&self, rows: &[NewMessage]) -> OpenTransaction {
        let mut transaction = self.writers.begin().await.unwrap();
        let ids = self.table.append_all(&mut transaction, rows).await.unwrap();
        OpenTransaction { ids, transaction }
    }

    async fn close(self) {
        let pools = self.pools.into_inner().unwrap();
        self.writers.close().await;
        for pool in pools {
            pool.close().await;
        }
        if self.first {
            self.database.drop().await;
        }
    }

    async fn write_beside(&self, rows: &[NewMessage]) -> Result<OpenTransaction, Unsupported> {
        Ok(self.write(rows).await)
    }

    async fn kill_sessions(&self) -> Result<(), Unsupported> {
        self.database.kill_sessions(STORE).await;
        Ok(())
    }

    async fn leftovers(&self) -> Result<Leftovers, Unsupported> {
        let kept: u32 = self.pools.lock().unwrap().iter().map(StorePool::size).sum();
        let transactions = self.database.transactions(STORE).await;
        let locks = self.database.locked_claims(&self.table).await;
        let connections = self.database.sessions(STORE).await.saturating_sub(usize::try_from(kept).unwrap());
        Ok(Leftovers::new(transactions, locks, connections))
    }

    async fn write_hostile(&self, tenant: &TenantId) -> Result<MessageId, Unsupported> {
        let mut session = MySqlConnection::connect_with(&self.database.options).await.unwrap();
        sqlx::raw_sql("SET SESSION sql_mode = ''").execute(&mut session).await.unwrap();
        let insert = format!(
            "INSERT INTO {} (tenant_id, kind, subject_id, occurred_at) VALUES (?, 'k', 's', '0000-00-00')",
            self.name()
        );
        let query = sqlx::query(AssertSqlSafe(insert)).bind(tenant.as_str().as_bytes());
        let id = query.execute(&mut session).await.unwrap().last_insert_id();
        session.close().await.unwrap();
        Ok(MessageId::new(i64::try_from(id).unwrap()))
    }

    async fn set_read_only(&self) -> Result<(), Unsupported> {
        let (database, table) = (&self.database.name, self.name());
        self.database
            .run(format!("REVOKE INSERT, {} ON {database}.{table} FROM {STORE}@'%'", S::RIGHT))
            .await;
        Ok(())
    }

    async fn delete_published(&self) -> Result<(), Unsupported> {
        self.database.run(format!("DELETE FROM {} WHERE published_at IS NOT NULL", self.name())).await;
        Ok(())
    }

    async fn another_table(&self) -> Result<Self, Unsupported> {
        Ok(Self::on(self.database.clone(), "other_outbox", false).await)
    }

    async fn skip_ids(&self, next: MessageId) -> Result<(), Unsupported> {
        self.database.run(format!("ALTER TABLE {} AUTO_INCREMENT = {next}", self.name())).await;
        Ok(())
    }
}

/// A module of laws for stores on MySQL or MariaDB: its name, their driver, what they are called, how they are set, and
/// the right that their user needs to settle, if it is not `UPDATE`.
#[macro_export]
macro_rules! mysql_laws {
    ($module:ident, $driver:ty, $name:literal, $store:ident => $set:expr $(, $right:literal)?) => {
        mod $module {
            use super::*;

            struct Set;

            impl $crate::mysql::Settings for Set {
                type Driver = $driver;
                const NAME: &'static str = $name;
                $(const RIGHT: &'static str = $right;)?

                fn set($store: $crate::AnyStore) -> $crate::AnyStore {
                    $set
                }
            }

            outbox_testkit::conformance!($crate::mysql::OnMySql<Set>);
        }
    };
}
