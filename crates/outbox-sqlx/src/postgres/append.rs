//! Writing messages, in the application's own transaction.

use std::sync::Arc;

use outbox_core::{MessageId, NewMessage};
use outbox_sql::check::Finding;
use outbox_sql::dialect::Dialect;
use outbox_sql::postgres::check::create_if_missing;
use outbox_sql::postgres::{AppendArrays, PayloadArray, PostgresStatements};
use outbox_sql::postgres::{schema, wake};
use outbox_sql::{InvalidTable, OutboxTable, append};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::driver::On;
use super::error::append_error;
use crate::AppendError;

/// An outbox table of a PostgreSQL database, to append to. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct PostgresTable {
    pub(super) description: Arc<OutboxTable>,
    pub(super) statements: Arc<PostgresStatements>,
    /// Whether statements are prepared once per connection, under a name.
    pub(super) named: bool,
}

impl PostgresTable {
    /// The table that is described.
    ///
    /// # Errors
    /// [`InvalidTable`] if PostgreSQL cannot hold such a table.
    pub fn new(table: OutboxTable) -> Result<Self, InvalidTable> {
        let statements = Arc::new(PostgresStatements::new(&table)?);
        Ok(Self { description: Arc::new(table), statements, named: true })
    }

    /// Prepares no statement under a name, for connections through a transaction pooler, which may bring the
    /// next transaction to another server session. Appends must then be in a transaction, as they should be
    /// anyway.
    pub fn without_named_statements(mut self) -> Self {
        self.named = false;
        self
    }

    /// Its description.
    pub fn description(&self) -> &OutboxTable {
        &self.description
    }

    /// The SQL that makes the table and its index.
    pub fn ddl(&self) -> String {
        // The description was checked when this was made, so that there is always one.
        schema::create_table(&self.description).unwrap_or_default()
    }

    /// The SQL of an optional trigger that wakes relays in other processes at each commit that appended something,
    /// whoever wrote it; `docs/wake-ups.md` has what it costs. [`drop_notify_trigger_ddl`](Self::drop_notify_trigger_ddl)
    /// takes it away.
    pub fn notify_trigger_ddl(&self) -> String {
        wake::notify_trigger_ddl(&self.description).unwrap_or_default()
    }

    /// The SQL that takes the trigger away.
    pub fn drop_notify_trigger_ddl(&self) -> String {
        wake::drop_notify_trigger_ddl(&self.description).unwrap_or_default()
    }

    /// Makes the table and its index. The schema must exist, and the table must not.
    ///
    /// # Errors
    /// [`sqlx::Error`], if PostgreSQL refuses it.
    pub async fn create(&self, connection: &mut PgConnection) -> sqlx::Result<()> {
        sqlx::raw_sql(AssertSqlSafe(self.ddl())).execute(connection).await?;
        Ok(())
    }

    /// As [`create`](Self::create), unless there is a table of that name: that stays as it is, and is compared with
    /// what the store needs. Answers what does not suit, as `check()` does; nothing if all is well.
    ///
    /// Several may call it at once: the others wait for whoever makes the table, to the end of their transaction.
    ///
    /// # Errors
    /// [`sqlx::Error`], if the server refuses it.
    ///
    /// # Cancellation
    /// Close the connection with the future.
    pub async fn create_if_missing(&self, connection: &mut PgConnection) -> sqlx::Result<Vec<Finding>> {
        let mut transaction = connection.begin().await?;
        let found = create_if_missing(&mut On(&mut transaction), &self.description).await?;
        transaction.commit().await?;
        Ok(found)
    }

    /// Appends a message and answers its id. Pass a connection of your own, with your transaction open on it
    /// (`&mut *transaction`): the message is published if that commits, and never if it does not.
    ///
    /// A message that does not say when it happened gets the server's time of this statement.
    ///
    /// # Errors
    /// [`AppendError::Invalid`] if the table cannot hold the message as it is; [`AppendError::Database`] if
    /// the database does not take it.
    ///
    /// # Cancellation
    /// Drop the transaction with the future: it is unknown then whether the message is in it.
    pub async fn append(
        &self,
        connection: &mut PgConnection,
        message: &NewMessage,
    ) -> Result<MessageId, AppendError> {
        let ids = self.append_all(connection, std::slice::from_ref(message)).await?;
        ids.first().copied().ok_or(AppendError::Skipped { given: 1, appended: 0 })
    }

    /// Appends messages in one statement, in this order, and answers their ids in the same order. All are
    /// checked before any is sent.
    ///
    /// # Errors
    /// As [`append`](Self::append); then none of them is appended.
    ///
    /// # Cancellation
    /// As [`append`](Self::append).
    pub async fn append_all(
        &self,
        connection: &mut PgConnection,
        messages: &[NewMessage],
    ) -> Result<Vec<MessageId>, AppendError> {
        append::check_all(messages, &self.description, Dialect::Postgres)?;
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let append = AssertSqlSafe(Arc::clone(&self.statements.append));
        let arrays = AppendArrays::new(messages, &self.description);
        let query = sqlx::query_scalar::<_, i64>(append)
            .persistent(self.named)
            .bind(arrays.tenants)
            .bind(arrays.kinds)
            .bind(arrays.subjects);
        let query = match arrays.payloads {
            PayloadArray::Bytes(payloads) => query.bind(payloads),
            PayloadArray::Text(payloads) => query.bind(payloads),
        };
        let query = match arrays.headers {
            Some(headers) => query.bind(headers),
            None => query,
        };
        let ids = query.bind(arrays.micros).fetch_all(connection).await;
        let ids = ids.map_err(|error| {
            append_error(error, &self.description.display_name(Dialect::Postgres), self.named)
        })?;
        append::all_appended(messages.len(), ids)
    }
}
