//! Every law of the contract, on MySQL or MariaDB.
#![cfg(feature = "mysql")]

#[path = "support/mysql.rs"]
mod support;

use std::sync::Mutex;

use outbox_core::{MessageId, NewMessage, Settling, TenantId};
use outbox_sqlx::OutboxTable;
use outbox_sqlx::mysql::{MySqlStore, MySqlTable};
use outbox_testkit::{Capability, Harness, Leftovers, Unsupported, Write};
use sqlx::{AssertSqlSafe, Connection, MySql, MySqlConnection, MySqlPool, Transaction};

use support::{Database, STORE, WRITER};

/// A table in a database of its own, used by users that may do no more than they have to.
struct OnMySql<const DELETING: bool> {
    database: Database,
    /// Whether the database goes with this table, the first in it.
    first: bool,
    table: MySqlTable,
    writers: MySqlPool,
    pools: Mutex<Vec<MySqlPool>>,
}

struct OpenTransaction {
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

impl<const DELETING: bool> OnMySql<DELETING> {
    /// What the store's user may do with the table, beside reading it and appending to it.
    const RIGHT: &'static str = if DELETING { "DELETE" } else { "UPDATE" };

    async fn on(database: Database, name: &str, first: bool) -> Self {
        let table = database.make(&OutboxTable::new(name)).await;
        let on = format!("ON {}.{name}", database.name);
        let rights =
            format!("REVOKE UPDATE {on} FROM {STORE}@'%'; GRANT {} {on} TO {STORE}@'%'", Self::RIGHT);
        database.run(rights).await;
        // A random story has many writes open at once.
        let writers = database.pool(WRITER, 64);
        Self { database, first, table, writers, pools: Mutex::default() }
    }

    fn name(&self) -> &str {
        self.table.description().name()
    }
}

impl<const DELETING: bool> Harness for OnMySql<DELETING> {
    type Store = MySqlStore;
    type Write = OpenTransaction;

    const CANNOT: &'static [Capability] = &[];

    fn name() -> &'static str {
        if DELETING { "mysql, deleting" } else { "mysql" }
    }

    async fn open() -> Self {
        Self::on(Database::create().await, "outbox_message", true).await
    }

    async fn connect(&self) -> MySqlStore {
        let pool = self.database.pool(STORE, 5);
        self.pools.lock().unwrap().push(pool.clone());
        let store = MySqlStore::new(pool, self.table.description().clone()).unwrap();
        if DELETING { store.with_settling(Settling::Delete) } else { store }
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
        let kept: u32 = self.pools.lock().unwrap().iter().map(MySqlPool::size).sum();
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
            .run(format!("REVOKE INSERT, {} ON {database}.{table} FROM {STORE}@'%'", Self::RIGHT))
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

mod marking {
    outbox_testkit::conformance!(super::OnMySql<false>);
}

mod deleting {
    outbox_testkit::conformance!(super::OnMySql<true>);
}
