//! Writing messages, in the application's own transaction.

use std::sync::Arc;

use diesel::RunQueryDsl as _;
use diesel::connection::LoadConnection;
use diesel::pg::Pg;
use diesel::sql_types::{Array, BigInt, Binary, Nullable, Text};
use outbox_core::{MessageId, NewMessage};
use outbox_sql::dialect::Dialect;
use outbox_sql::postgres::schema;
use outbox_sql::postgres::{AppendArrays, PayloadArray, PostgresStatements};
use outbox_sql::{InvalidTable, OutboxTable, append};

use super::error::append_error;
use crate::AppendError;
use crate::statement::Statement;

/// An outbox table of a PostgreSQL database, to append to. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct PostgresTable {
    pub(super) description: Arc<OutboxTable>,
    pub(super) statements: Arc<PostgresStatements>,
}

impl PostgresTable {
    /// The table that is described.
    ///
    /// # Errors
    /// [`InvalidTable`] if PostgreSQL cannot hold such a table.
    pub fn new(table: OutboxTable) -> Result<Self, InvalidTable> {
        let statements = Arc::new(PostgresStatements::new(&table)?);
        Ok(Self { description: Arc::new(table), statements })
    }

    /// Its description.
    pub fn description(&self) -> &OutboxTable {
        &self.description
    }

    /// The SQL that makes the table and its index, for `batch_execute`. The schema must exist, and the table must
    /// not.
    pub fn ddl(&self) -> String {
        // The description was checked when this was made, so that there is always one.
        schema::create_table(&self.description).unwrap_or_default()
    }

    /// Appends a message, once it is executed. Execute it on a connection of your own, in your transaction: the
    /// message is published if that commits, and never if it does not.
    ///
    /// A message that does not say when it happened gets the server's time of the statement.
    pub fn append<'m>(&'m self, message: &'m NewMessage) -> PostgresAppend<'m> {
        PostgresAppend(self.append_all(std::slice::from_ref(message)))
    }

    /// Appends messages in one statement, in this order, once it is executed. All are checked before any is sent.
    pub fn append_all<'m>(&'m self, messages: &'m [NewMessage]) -> PostgresAppendAll<'m> {
        PostgresAppendAll { table: self, messages }
    }
}

/// A message to append; see [`PostgresTable::append`].
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing is written before it is executed"]
pub struct PostgresAppend<'m>(PostgresAppendAll<'m>);

impl PostgresAppend<'_> {
    /// Writes the message on a synchronous connection, and answers its id.
    ///
    /// # Errors
    /// [`AppendError::Invalid`] if the table cannot hold the message as it is; [`AppendError::Database`] if
    /// the database does not take it.
    pub fn execute<C: LoadConnection<Backend = Pg>>(
        self,
        connection: &mut C,
    ) -> Result<MessageId, AppendError> {
        only(&self.0.execute(connection)?)
    }

    /// Writes the message on a connection of `diesel-async`, and answers its id.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    ///
    /// # Cancellation
    /// Drop the connection with the future: it is unknown then whether the message is in its transaction.
    #[cfg(feature = "async")]
    pub async fn execute_async<C>(self, connection: &mut C) -> Result<MessageId, AppendError>
    where
        C: diesel_async::AsyncConnectionCore<Backend = Pg>,
    {
        only(&self.0.execute_async(connection).await?)
    }
}

/// Messages to append; see [`PostgresTable::append_all`].
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing is written before it is executed"]
pub struct PostgresAppendAll<'m> {
    table: &'m PostgresTable,
    messages: &'m [NewMessage],
}

impl PostgresAppendAll<'_> {
    /// Writes the messages on a synchronous connection, and answers their ids in their order.
    ///
    /// # Errors
    /// As [`PostgresAppend::execute`]; then none of them is appended.
    pub fn execute<C>(self, connection: &mut C) -> Result<Vec<MessageId>, AppendError>
    where
        C: LoadConnection<Backend = Pg>,
    {
        self.check()?;
        if self.messages.is_empty() {
            return Ok(Vec::new());
        }
        self.ids(self.statement().get_results(connection))
    }

    /// Writes the messages on a connection of `diesel-async`, and answers their ids in their order.
    ///
    /// # Errors
    /// As [`PostgresAppend::execute`]; then none of them is appended.
    ///
    /// # Cancellation
    /// As [`PostgresAppend::execute_async`].
    #[cfg(feature = "async")]
    pub async fn execute_async<C>(self, connection: &mut C) -> Result<Vec<MessageId>, AppendError>
    where
        C: diesel_async::AsyncConnectionCore<Backend = Pg>,
    {
        self.check()?;
        if self.messages.is_empty() {
            return Ok(Vec::new());
        }
        self.ids(self.statement().rows(connection).await)
    }

    fn check(self) -> Result<(), AppendError> {
        append::check_all(self.messages, &self.table.description, Dialect::Postgres)
    }

    fn statement(&self) -> Statement<'_, Pg, BigInt> {
        let arrays = AppendArrays::new(self.messages, &self.table.description);
        let statement = Statement::new(&self.table.statements.append)
            .bind::<Array<Text>>(arrays.tenants)
            .bind::<Array<Text>>(arrays.kinds)
            .bind::<Array<Text>>(arrays.subjects);
        let statement = match arrays.payloads {
            PayloadArray::Bytes(payloads) => statement.bind::<Array<Nullable<Binary>>>(payloads),
            PayloadArray::Text(payloads) => statement.bind::<Array<Nullable<Text>>>(payloads),
        };
        let statement = match arrays.headers {
            Some(headers) => statement.bind::<Array<Nullable<Text>>>(headers),
            None => statement,
        };
        statement.bind::<Array<Nullable<BigInt>>>(arrays.micros)
    }

    fn ids(self, answer: diesel::QueryResult<Vec<i64>>) -> Result<Vec<MessageId>, AppendError> {
        let table = &self.table.description;
        let ids = answer.map_err(|error| append_error(error, &table.display_name(Dialect::Postgres)))?;
        append::all_appended(self.messages.len(), ids)
    }
}

fn only(ids: &[MessageId]) -> Result<MessageId, AppendError> {
    ids.first().copied().ok_or(AppendError::Skipped { given: 1, appended: 0 })
}
