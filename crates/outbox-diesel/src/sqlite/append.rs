//! Writing messages, in the application's own transaction.

use std::sync::Arc;

use diesel::RunQueryDsl as _;
use diesel::connection::LoadConnection;
use diesel::sql_types::{BigInt, Binary, Nullable, Text};
use diesel::sqlite::Sqlite;
use outbox_core::{MessageId, NewMessage, Payload, Timestamp};
use outbox_sql::dialect::Dialect;
use outbox_sql::sqlite;
use outbox_sql::sqlite::schema;
use outbox_sql::{InvalidTable, OutboxTable, PayloadType, append, headers};

use super::error::append_error;
use crate::AppendError;
use crate::statement::Statement;

/// An outbox table of a SQLite database, to append to. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct SqliteTable {
    description: Arc<OutboxTable>,
    append_one: Arc<str>,
}

impl SqliteTable {
    /// The table that is described.
    ///
    /// # Errors
    /// [`InvalidTable`] if SQLite cannot hold such a table.
    pub fn new(table: OutboxTable) -> Result<Self, InvalidTable> {
        table.check(Dialect::Sqlite)?;
        let append_one = sqlite::append(&table, 1).into();
        Ok(Self { description: Arc::new(table), append_one })
    }

    /// Its description.
    pub fn description(&self) -> &OutboxTable {
        &self.description
    }

    /// The SQL that makes the table and its index, for `batch_execute`. The table must not exist.
    pub fn ddl(&self) -> String {
        // The description was checked when this was made, so that there is always one.
        schema::create_table(&self.description).unwrap_or_default()
    }

    /// Appends a message, once it is executed. Execute it on a connection of your own, in your transaction: the
    /// message is published if that commits, and never if it does not.
    ///
    /// A message that does not say when it happened gets the time of the statement, to the millisecond.
    pub fn append<'m>(&'m self, message: &'m NewMessage) -> SqliteAppend<'m> {
        SqliteAppend(self.append_all(std::slice::from_ref(message)))
    }

    /// Appends messages, in this order, once it is executed. All are checked before any is written; one
    /// statement writes up to [`ROWS_PER_INSERT`](sqlite::ROWS_PER_INSERT) of them.
    pub fn append_all<'m>(&'m self, messages: &'m [NewMessage]) -> SqliteAppendAll<'m> {
        SqliteAppendAll { table: self, messages }
    }
}

/// A message to append; see [`SqliteTable::append`].
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing is written before it is executed"]
pub struct SqliteAppend<'m>(SqliteAppendAll<'m>);

impl SqliteAppend<'_> {
    /// Writes the message on a synchronous connection, and answers its id.
    ///
    /// # Errors
    /// [`AppendError::Invalid`] if the table cannot hold the message as it is; [`AppendError::Database`] if
    /// the database does not take it.
    pub fn execute<C>(self, connection: &mut C) -> Result<MessageId, AppendError>
    where
        C: LoadConnection<Backend = Sqlite>,
    {
        only(&self.0.execute(connection)?)
    }

    /// Writes the message on a connection of `diesel-async`, and answers its id.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    ///
    /// # Cancellation
    /// Do not drop the future: what `diesel-async` does then to a SQLite connection is to block the thread until
    /// the statement has ended, or to panic on a current-thread runtime.
    #[cfg(feature = "async")]
    pub async fn execute_async<C>(self, connection: &mut C) -> Result<MessageId, AppendError>
    where
        C: diesel_async::AsyncConnectionCore<Backend = Sqlite>,
    {
        only(&self.0.execute_async(connection).await?)
    }
}

/// Messages to append; see [`SqliteTable::append_all`].
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing is written before it is executed"]
pub struct SqliteAppendAll<'m> {
    table: &'m SqliteTable,
    messages: &'m [NewMessage],
}

impl SqliteAppendAll<'_> {
    /// Writes the messages on a synchronous connection, and answers their ids in their order.
    ///
    /// # Errors
    /// As [`SqliteAppend::execute`]. After [`AppendError::Database`] some of them may have been written: roll
    /// the transaction back.
    pub fn execute<C>(self, connection: &mut C) -> Result<Vec<MessageId>, AppendError>
    where
        C: LoadConnection<Backend = Sqlite>,
    {
        self.check()?;
        let mut ids = Vec::with_capacity(self.messages.len());
        for chunk in self.messages.chunks(sqlite::ROWS_PER_INSERT) {
            let text = self.table.text(chunk.len());
            in_order(self.table.statement(&text, chunk).get_results(connection), &mut ids)?;
        }
        append::all_appended(self.messages.len(), ids)
    }

    /// Writes the messages on a connection of `diesel-async`, and answers their ids in their order.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    ///
    /// # Cancellation
    /// As [`SqliteAppend::execute_async`].
    #[cfg(feature = "async")]
    pub async fn execute_async<C>(self, connection: &mut C) -> Result<Vec<MessageId>, AppendError>
    where
        C: diesel_async::AsyncConnectionCore<Backend = Sqlite>,
    {
        self.check()?;
        let mut ids = Vec::with_capacity(self.messages.len());
        for chunk in self.messages.chunks(sqlite::ROWS_PER_INSERT) {
            let text = self.table.text(chunk.len());
            let statement = self.table.statement(&text, chunk);
            in_order(diesel_async::RunQueryDsl::get_results(statement, connection).await, &mut ids)?;
        }
        append::all_appended(self.messages.len(), ids)
    }

    fn check(self) -> Result<(), AppendError> {
        append::check_all(self.messages, &self.table.description, Dialect::Sqlite)
    }
}

impl SqliteTable {
    fn text(&self, rows: usize) -> Arc<str> {
        if rows == 1 { Arc::clone(&self.append_one) } else { sqlite::append(&self.description, rows).into() }
    }

    fn statement<'q>(&self, text: &'q str, messages: &'q [NewMessage]) -> Statement<'q, Sqlite, BigInt> {
        messages.iter().fold(Statement::new(text), |statement, message| self.bind(statement, message))
    }

    fn bind<'q>(
        &self,
        statement: Statement<'q, Sqlite, BigInt>,
        message: &'q NewMessage,
    ) -> Statement<'q, Sqlite, BigInt> {
        let statement = statement
            .bind::<Text>(message.tenant_id.as_str())
            .bind::<Text>(message.kind.as_str())
            .bind::<Text>(message.subject_id.as_str());
        let payload = message.payload.as_ref();
        let statement = match self.description.payload_type() {
            PayloadType::Bytes => statement.bind::<Nullable<Binary>>(payload.map(Payload::as_bytes)),
            // Checked to be UTF-8; a column of text converts no blob.
            _ => statement.bind::<Nullable<Text>>(payload.map(Payload::as_str).and_then(Result::ok)),
        };
        let statement = match self.description.columns().headers {
            Some(_) => statement.bind::<Nullable<Text>>(headers::to_json(&message.headers)),
            None => statement,
        };
        statement.bind::<Nullable<BigInt>>(message.occurred_at.map(Timestamp::as_micros))
    }
}

/// The table gives out its ids in the order of the rows, and may answer them in another.
fn in_order(answer: diesel::QueryResult<Vec<i64>>, ids: &mut Vec<i64>) -> Result<(), AppendError> {
    let mut appended = answer.map_err(append_error)?;
    appended.sort_unstable();
    ids.append(&mut appended);
    Ok(())
}

fn only(ids: &[MessageId]) -> Result<MessageId, AppendError> {
    ids.first().copied().ok_or(AppendError::Skipped { given: 1, appended: 0 })
}
