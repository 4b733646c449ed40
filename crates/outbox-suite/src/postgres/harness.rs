//! A table, stores on it, and what the laws ask of them.

use std::marker::PhantomData;
use std::sync::Mutex;
use std::time::Duration;

use outbox_core::{MessageId, NewMessage, TenantId};
use outbox_sql::OutboxTable;
use outbox_sqlx::postgres::PostgresTable;
use outbox_testkit::{Capability, Harness, Leftovers, Unsupported, Write};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, PgPool, Postgres, Transaction};

use super::Driver;
use super::database::{Database, ROLE, STORE};
use crate::server::{ServerDriver, StorePool};
use crate::{AnyStore, BOUND, LAW, SOON};

/// How the stores are set.
pub trait Settings: Send + Sync + 'static {
    /// How they are made.
    type Driver: ServerDriver<PgConnectOptions> + Default;
    /// What they are called in reports.
    const NAME: &'static str;
    /// What the role may do with the table, beside reading it and appending to it.
    const RIGHT: &'static str = "UPDATE";

    /// Sets one.
    fn set(store: AnyStore) -> AnyStore;
}

/// A table in a database of its own, used by a role that is no superuser.
pub struct OnPostgres<S> {
    database: Database,
    /// Whether the database goes with this table, the first in it.
    first: bool,
    table: PostgresTable,
    writers: PgPool,
    pools: Mutex<Vec<StorePool>>,
    setting: PhantomData<S>,
}

/// A writer's transaction.
pub struct OpenTransaction {
    ids: Vec<MessageId>,
    transaction: Transaction<'static, Postgres>,
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

impl<S: Settings> OnPostgres<S> {
    async fn on(database: Database, name: &str, first: bool) -> Self {
        let table = database.make(&OutboxTable::new(name)).await;
        let rights = format!(
            "REVOKE UPDATE ON {name} FROM {ROLE}; GRANT {} ON {name} TO {ROLE}; \
             GRANT SELECT ON SEQUENCE {name}_id_seq TO {ROLE}",
            S::RIGHT
        );
        database.run(rights).await;
        // A random story has many writes open at once.
        let writers = database.pool("outbox_writer", 64);
        Self { database, first, table, writers, pools: Mutex::default(), setting: PhantomData }
    }

    fn name(&self) -> &str {
        self.table.description().name()
    }

    /// The advisory locks of this table's claims, as a condition on `pg_locks`.
    fn locks(&self) -> String {
        format!(
            "locktype = 'advisory' AND objsubid = 2 AND database = (SELECT oid FROM pg_database WHERE datname = \
             current_database()) AND classid::bigint = hashtext('public.{}')::bigint & 4294967295",
            self.name()
        )
    }

    async fn count(&self, what: &str) -> usize {
        let count = format!("SELECT count(*) FROM {what}");
        usize::try_from(self.database.number(count).await).unwrap()
    }
}

impl<S: Settings> Harness for OnPostgres<S> {
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
        let pool = self.database.store_pool(5);
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
        let kill =
            format!("SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_locks WHERE {}", self.locks());
        self.database.number(kill).await;
        Ok(())
    }

    async fn leftovers(&self) -> Result<Leftovers, Unsupported> {
        let kept: u32 = self.pools.lock().unwrap().iter().map(StorePool::size).sum();
        let sessions =
            format!("pg_stat_activity WHERE datname = current_database() AND application_name = '{STORE}'");
        let transactions = self.count(&format!("{sessions} AND xact_start IS NOT NULL")).await;
        let locks = self.count(&format!("pg_locks WHERE {}", self.locks())).await;
        let connections = self.count(&sessions).await.saturating_sub(usize::try_from(kept).unwrap());
        Ok(Leftovers::new(transactions, locks, connections))
    }

    async fn write_hostile(&self, tenant: &TenantId) -> Result<MessageId, Unsupported> {
        let insert = format!(
            "INSERT INTO {} (tenant_id, kind, subject_id, occurred_at) VALUES ($1, 'k', 's', 'infinity') RETURNING id",
            self.name()
        );
        let query = sqlx::query_scalar(AssertSqlSafe(insert)).bind(tenant.as_str());
        Ok(MessageId::new(query.fetch_one(&self.writers).await.unwrap()))
    }

    async fn set_read_only(&self) -> Result<(), Unsupported> {
        self.database.run(format!("REVOKE INSERT, UPDATE, DELETE ON {} FROM {ROLE}", self.name())).await;
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
        let skip = format!(
            "SELECT setval(pg_get_serial_sequence('{0}', 'id'), greatest({next}, nextval(pg_get_serial_sequence('{0}', 'id'))), false)",
            self.name()
        );
        self.database.number(skip).await;
        Ok(())
    }
}

/// A module of laws for stores on PostgreSQL: its name, their driver, what they are called, how they are set, and the
/// right that their role needs to settle, if it is not `UPDATE`.
#[macro_export]
macro_rules! postgres_laws {
    ($module:ident, $driver:ty, $name:literal, $store:ident => $set:expr $(, $right:literal)?) => {
        mod $module {
            use super::*;

            struct Set;

            impl $crate::postgres::Settings for Set {
                type Driver = $driver;
                const NAME: &'static str = $name;
                $(const RIGHT: &'static str = $right;)?

                fn set($store: $crate::AnyStore) -> $crate::AnyStore {
                    $set
                }
            }

            outbox_testkit::conformance!($crate::postgres::OnPostgres<Set>);
        }
    };
}
