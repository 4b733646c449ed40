//! Writing messages, in the application's own transaction.

use std::sync::Arc;

use outbox_core::{MessageId, NewMessage, Payload};
use outbox_sql::check::Finding;
use outbox_sql::dialect::Dialect;
use outbox_sql::sqlite;
use outbox_sql::sqlite::check::compare;
use outbox_sql::sqlite::schema;
use outbox_sql::{InvalidTable, OutboxTable, PayloadType, headers};
use sqlx::query::QueryScalar;
use sqlx::sqlite::SqliteArguments;
use sqlx::{AssertSqlSafe, Sqlite, SqliteConnection};

use super::driver::On;
use super::error::append_error;
use crate::AppendError;

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

    /// The SQL that makes the table and its index.
    pub fn ddl(&self) -> String {
        // The description was checked when this was made, so that there is always one.
        schema::create_table(&self.description).unwrap_or_default()
    }

    /// Makes the table and its index. The table must not exist.
    ///
    /// # Errors
    /// [`sqlx::Error`], if SQLite refuses it.
    pub async fn create(&self, connection: &mut SqliteConnection) -> sqlx::Result<()> {
        sqlx::raw_sql(AssertSqlSafe(self.ddl())).execute(connection).await?;
        Ok(())
    }

    /// As [`create`](Self::create), unless there is a table of that name: that stays as it is, and is compared with
    /// what the store needs. Answers what does not suit, as `check()` does; nothing if all is well.
    ///
    /// Several may call it at once.
    ///
    /// # Errors
    /// [`sqlx::Error`], if SQLite refuses it.
    ///
    /// # Cancellation
    /// Close the connection with the future.
    pub async fn create_if_missing(&self, connection: &mut SqliteConnection) -> sqlx::Result<Vec<Finding>> {
        if let Some(found) = compare(&mut On(connection), &self.description).await? {
            return Ok(found);
        }
        let ddl = schema::create_table_if_missing(&self.description).unwrap_or_default();
        sqlx::raw_sql(AssertSqlSafe(ddl)).execute(connection).await?;
        Ok(Vec::new())
    }

    /// Appends a message and answers its id. Pass a connection of your own, with your transaction open on it
    /// (`&mut *transaction`): the message is published if that commits, and never if it does not.
    ///
    /// A message that does not say when it happened gets the time of this statement, to the millisecond.
    ///
    /// # Errors
    /// [`AppendError::Invalid`] if the table cannot hold the message as it is; [`AppendError::Database`] if
    /// the database does not take it.
    ///
    /// # Cancellation
    /// Drop the transaction with the future: it is unknown then whether the message is in it.
    pub async fn append(
        &self,
        connection: &mut SqliteConnection,
        message: &NewMessage,
    ) -> Result<MessageId, AppendError> {
        self.check(0, message)?;
        let query = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&self.append_one)));
        let id = self.bind(query, message).fetch_optional(connection).await.map_err(append_error)?;
        id.map(MessageId::new).ok_or(AppendError::Skipped { given: 1, appended: 0 })
    }

    /// Appends messages, in this order, and answers their ids in the same order. All are checked before any is
    /// written; one statement writes up to [`ROWS_PER_INSERT`](sqlite::ROWS_PER_INSERT) of them.
    ///
    /// # Errors
    /// As [`append`](Self::append). After [`AppendError::Database`] some of them may have been written: roll
    /// the transaction back.
    ///
    /// # Cancellation
    /// As [`append`](Self::append).
    pub async fn append_all(
        &self,
        connection: &mut SqliteConnection,
        messages: &[NewMessage],
    ) -> Result<Vec<MessageId>, AppendError> {
        for (index, message) in messages.iter().enumerate() {
            self.check(index, message)?;
        }
        let mut ids = Vec::with_capacity(messages.len());
        for chunk in messages.chunks(sqlite::ROWS_PER_INSERT) {
            let statement = sqlite::append(&self.description, chunk.len());
            let query = sqlx::query_scalar(AssertSqlSafe(statement));
            let query = chunk.iter().fold(query, |query, message| self.bind(query, message));
            // The table gives out its ids in the order of the rows, and may answer them in another.
            let mut appended: Vec<i64> = query.fetch_all(&mut *connection).await.map_err(append_error)?;
            appended.sort_unstable();
            ids.extend(appended.into_iter().map(MessageId::new));
        }
        if ids.len() == messages.len() {
            Ok(ids)
        } else {
            Err(AppendError::Skipped { given: messages.len(), appended: ids.len() })
        }
    }

    fn check(&self, index: usize, message: &NewMessage) -> Result<(), AppendError> {
        outbox_sql::append::check(message, &self.description, Dialect::Sqlite)
            .map_err(|reason| AppendError::Invalid { index, reason })
    }

    fn bind<'q>(
        &self,
        query: QueryScalar<'q, Sqlite, i64, SqliteArguments>,
        message: &NewMessage,
    ) -> QueryScalar<'q, Sqlite, i64, SqliteArguments> {
        let query = query
            .bind(message.tenant_id.as_str().to_owned())
            .bind(message.kind.clone())
            .bind(message.subject_id.clone());
        let payload = message.payload.as_ref();
        let query = match self.description.payload_type() {
            PayloadType::Bytes => query.bind(payload.map(|payload| payload.as_bytes().to_vec())),
            // Checked to be UTF-8; a column of text converts no blob.
            _ => query.bind(payload.map(Payload::as_str).and_then(Result::ok).map(str::to_owned)),
        };
        let query = match self.description.columns().headers {
            Some(_) => query.bind(headers::to_json(&message.headers)),
            None => query,
        };
        query.bind(message.occurred_at.map(outbox_core::Timestamp::as_micros))
    }
}
