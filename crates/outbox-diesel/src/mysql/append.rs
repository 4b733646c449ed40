//! Writing messages, in the application's own transaction.

use std::sync::Arc;

use diesel::RunQueryDsl as _;
use diesel::connection::LoadConnection;
use diesel::mysql::Mysql;
use diesel::sql_types::{BigInt, Binary, Nullable, Untyped};
use outbox_core::{MessageId, NewMessage};
use outbox_sql::dialect::Dialect;
use outbox_sql::mysql::{self, APPENDED, schema};
use outbox_sql::{InvalidTable, OutboxTable, append, headers};

use super::error::append_error;
use crate::AppendError;
use crate::statement::Statement;

/// An outbox table of a MySQL or MariaDB database, to append to. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct MySqlTable {
    description: Arc<OutboxTable>,
    /// The statement that appends one message.
    append_one: Arc<str>,
}

impl MySqlTable {
    /// The table that is described.
    ///
    /// # Errors
    /// [`InvalidTable`] if MySQL cannot hold such a table.
    pub fn new(table: OutboxTable) -> Result<Self, InvalidTable> {
        table.check(Dialect::MySql)?;
        let append_one = mysql::append(&table, 1).into();
        Ok(Self { description: Arc::new(table), append_one })
    }

    /// Its description.
    pub fn description(&self) -> &OutboxTable {
        &self.description
    }

    /// The SQL that makes the table and its index, and the table of claims, for `batch_execute`. The database must
    /// exist, and the tables must not. MySQL commits an open transaction at each of its statements.
    pub fn ddl(&self) -> String {
        // The description was checked when this was made, so that there is always one.
        schema::create_table(&self.description).unwrap_or_default()
    }

    /// Appends a message, once it is executed. Execute it on a connection of your own, in your transaction: the
    /// message is published if that commits, and never if it does not.
    ///
    /// A message that does not say when it happened gets the server's time of the statement.
    pub fn append<'m>(&'m self, message: &'m NewMessage) -> MySqlAppend<'m> {
        MySqlAppend(self.append_all(std::slice::from_ref(message)))
    }

    /// Appends messages, in this order, once it is executed. All are checked before any is sent; many are sent in
    /// several statements, each followed by a question about its ids.
    pub fn append_all<'m>(&'m self, messages: &'m [NewMessage]) -> MySqlAppendAll<'m> {
        MySqlAppendAll { table: self, messages }
    }

    fn text(&self, rows: usize) -> Arc<str> {
        if rows == 1 { Arc::clone(&self.append_one) } else { mysql::append(&self.description, rows).into() }
    }

    fn statement<'q>(&self, text: &'q str, messages: &'q [NewMessage]) -> Statement<'q, Mysql, Untyped> {
        // One row's statement is prepared once per connection; those of more are as many as there are numbers.
        let statement = if messages.len() == 1 { Statement::new(text) } else { Statement::unnamed(text) };
        messages.iter().fold(statement, |statement, message| {
            let statement = statement
                .bind::<Binary>(message.tenant_id.as_str().as_bytes())
                .bind::<Binary>(message.kind.as_bytes())
                .bind::<Binary>(message.subject_id.as_bytes())
                .bind::<Nullable<Binary>>(message.payload.as_ref().map(AsRef::<[u8]>::as_ref));
            let statement = match self.description.columns().headers {
                Some(_) => {
                    let headers = headers::to_json(&message.headers).map(String::into_bytes);
                    statement.bind::<Nullable<Binary>>(headers)
                }
                None => statement,
            };
            statement.bind::<Nullable<BigInt>>(mysql::micros(message, &self.description))
        })
    }
}

/// A message to append; see [`MySqlTable::append`].
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing is written before it is executed"]
pub struct MySqlAppend<'m>(MySqlAppendAll<'m>);

impl MySqlAppend<'_> {
    /// Writes the message on a synchronous connection, and answers its id.
    ///
    /// # Errors
    /// [`AppendError::Invalid`] if the table cannot hold the message as it is; [`AppendError::Database`] if
    /// the database does not take it.
    pub fn execute<C>(self, connection: &mut C) -> Result<MessageId, AppendError>
    where
        C: LoadConnection<Backend = Mysql>,
    {
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
        C: diesel_async::AsyncConnectionCore<Backend = Mysql>,
    {
        only(&self.0.execute_async(connection).await?)
    }
}

/// Messages to append; see [`MySqlTable::append_all`].
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing is written before it is executed"]
pub struct MySqlAppendAll<'m> {
    table: &'m MySqlTable,
    messages: &'m [NewMessage],
}

impl MySqlAppendAll<'_> {
    /// Writes the messages on a synchronous connection, and answers their ids in their order.
    ///
    /// # Errors
    /// As [`MySqlAppend::execute`]. Some of them may be in the transaction then, which has to be rolled back: a
    /// refused statement does not end it on MySQL.
    pub fn execute<C>(self, connection: &mut C) -> Result<Vec<MessageId>, AppendError>
    where
        C: LoadConnection<Backend = Mysql>,
    {
        self.check()?;
        let mut ids = Vec::with_capacity(self.messages.len());
        for chunk in mysql::chunks(self.messages) {
            let text = self.table.text(chunk.len());
            let rows = self.table.statement(&text, chunk).execute(connection);
            self.all_of(chunk, rows, &ids)?;
            let appended = Statement::<Mysql, (BigInt, BigInt)>::new(APPENDED).get_result(connection);
            self.extend(&mut ids, chunk, appended)?;
        }
        Ok(ids)
    }

    /// Writes the messages on a connection of `diesel-async`, and answers their ids in their order.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    ///
    /// # Cancellation
    /// As [`MySqlAppend::execute_async`].
    #[cfg(feature = "async")]
    pub async fn execute_async<C>(self, connection: &mut C) -> Result<Vec<MessageId>, AppendError>
    where
        C: diesel_async::AsyncConnectionCore<Backend = Mysql>,
    {
        self.check()?;
        let mut ids = Vec::with_capacity(self.messages.len());
        for chunk in mysql::chunks(self.messages) {
            let text = self.table.text(chunk.len());
            let rows = self.table.statement(&text, chunk).changes(connection).await;
            self.all_of(chunk, rows, &ids)?;
            let appended = Statement::<Mysql, (BigInt, BigInt)>::new(APPENDED).one_row(connection).await;
            self.extend(&mut ids, chunk, appended)?;
        }
        Ok(ids)
    }

    fn check(self) -> Result<(), AppendError> {
        append::check_all(self.messages, &self.table.description, Dialect::MySql)
    }

    fn failed(self, error: diesel::result::Error) -> AppendError {
        append_error(error, &self.table.description.display_name(Dialect::MySql))
    }

    /// Whether a statement wrote all of its rows, after those of `ids`.
    fn all_of(
        self,
        chunk: &[NewMessage],
        rows: diesel::QueryResult<usize>,
        ids: &[MessageId],
    ) -> Result<(), AppendError> {
        let rows = rows.map_err(|error| self.failed(error))?;
        if rows == chunk.len() {
            return Ok(());
        }
        Err(AppendError::Skipped { given: self.messages.len(), appended: ids.len() + rows })
    }

    /// Adds the ids of a statement's rows: the last insert id, and how far they are apart.
    fn extend(
        self,
        ids: &mut Vec<MessageId>,
        chunk: &[NewMessage],
        appended: diesel::QueryResult<(i64, i64)>,
    ) -> Result<(), AppendError> {
        let (first, step) = appended.map_err(|error| self.failed(error))?;
        ids.extend(mysql::ids(u64::try_from(first).unwrap_or_default(), step, chunk.len()));
        Ok(())
    }
}

fn only(ids: &[MessageId]) -> Result<MessageId, AppendError> {
    ids.first().copied().ok_or(AppendError::Skipped { given: 1, appended: 0 })
}
