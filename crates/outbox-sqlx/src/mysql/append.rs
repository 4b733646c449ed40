//! Writing messages, in the application's own transaction.

use std::sync::Arc;

use outbox_core::{MessageId, NewMessage};
use outbox_sql::check::Finding;
use outbox_sql::dialect::Dialect;
use outbox_sql::mysql::check::create_if_missing;
use outbox_sql::mysql::schema;
use outbox_sql::mysql::{self, ID_STEP, MySqlStatements};
use outbox_sql::{InvalidTable, OutboxTable, headers};
use sqlx::mysql::MySqlQueryResult;
use sqlx::{AssertSqlSafe, MySqlConnection};

use super::driver::On;
use super::error::append_error;
use crate::AppendError;

/// An outbox table of a MySQL or MariaDB database, to append to. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct MySqlTable {
    pub(super) description: Arc<OutboxTable>,
    pub(super) statements: Arc<MySqlStatements>,
    /// The statement that appends one message.
    append: Arc<str>,
}

impl MySqlTable {
    /// The table that is described.
    ///
    /// # Errors
    /// [`InvalidTable`] if MySQL cannot hold such a table.
    pub fn new(table: OutboxTable) -> Result<Self, InvalidTable> {
        let statements = Arc::new(MySqlStatements::new(&table)?);
        let append = mysql::append(&table, 1).into();
        Ok(Self { description: Arc::new(table), statements, append })
    }

    /// Its description.
    pub fn description(&self) -> &OutboxTable {
        &self.description
    }

    /// The SQL that makes the table and its index, and the table of claims.
    pub fn ddl(&self) -> String {
        // The description was checked when this was made, so that there is always one.
        schema::create_table(&self.description).unwrap_or_default()
    }

    /// Makes the table and its index, and the table of claims. The database must exist, and the tables must not.
    /// MySQL commits an open transaction at each of its statements.
    ///
    /// # Errors
    /// [`sqlx::Error`], if the server refuses it.
    pub async fn create(&self, connection: &mut MySqlConnection) -> sqlx::Result<()> {
        sqlx::raw_sql(AssertSqlSafe(self.ddl())).execute(connection).await?;
        Ok(())
    }

    /// As [`create`](Self::create), unless there is a table of that name: that stays as it is, and is compared with
    /// what the store needs. Answers what does not suit, as `check()` does; nothing if all is well.
    ///
    /// Several may call it at once. Where one of the two tables is there, or only the empty row is missing, what is missing is made.
    ///
    /// # Errors
    /// [`sqlx::Error`], if the server refuses it.
    ///
    /// # Cancellation
    /// Close the connection with the future.
    pub async fn create_if_missing(&self, connection: &mut MySqlConnection) -> sqlx::Result<Vec<Finding>> {
        create_if_missing(&mut On(connection), &self.statements, &self.description).await
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
    /// Close the connection with the future, and with it the transaction: it is unknown then whether the message
    /// is in it, and sqlx's driver may never bring a pooled connection back whose statement was cancelled.
    pub async fn append(
        &self,
        connection: &mut MySqlConnection,
        message: &NewMessage,
    ) -> Result<MessageId, AppendError> {
        let ids = self.append_all(connection, std::slice::from_ref(message)).await?;
        ids.first().copied().ok_or(AppendError::Skipped { given: 1, appended: 0 })
    }

    /// Appends messages in this order, and answers their ids in the same order. All are checked before any is
    /// sent; many are sent in several statements.
    ///
    /// # Errors
    /// As [`append`](Self::append). Some of them may be in the transaction then, which has to be rolled back: a
    /// refused statement does not end it on MySQL.
    ///
    /// # Cancellation
    /// As [`append`](Self::append).
    pub async fn append_all(
        &self,
        connection: &mut MySqlConnection,
        messages: &[NewMessage],
    ) -> Result<Vec<MessageId>, AppendError> {
        for (index, message) in messages.iter().enumerate() {
            outbox_sql::append::check(message, &self.description, Dialect::MySql)
                .map_err(|reason| AppendError::Invalid { index, reason })?;
        }
        let failed = |error| append_error(error, &self.description.display_name(Dialect::MySql));
        let step = if messages.len() > 1 {
            let step = sqlx::query_scalar(ID_STEP).persistent(false);
            step.fetch_one(&mut *connection).await.map_err(failed)?
        } else {
            1
        };
        let mut ids = Vec::with_capacity(messages.len());
        for chunk in mysql::chunks(messages) {
            let answer = self.insert(connection, chunk).await.map_err(failed)?;
            if usize::try_from(answer.rows_affected()) != Ok(chunk.len()) {
                let appended = ids.len() + usize::try_from(answer.rows_affected()).unwrap_or_default();
                return Err(AppendError::Skipped { given: messages.len(), appended });
            }
            ids.extend(mysql::ids(answer.last_insert_id(), step, chunk.len()));
        }
        Ok(ids)
    }

    async fn insert(
        &self,
        connection: &mut MySqlConnection,
        messages: &[NewMessage],
    ) -> sqlx::Result<MySqlQueryResult> {
        // One row's statement is prepared once per connection; those of more are as many as there are numbers.
        let (sql, named) = match messages.len() {
            1 => (Arc::clone(&self.append), true),
            rows => (mysql::append(&self.description, rows).into(), false),
        };
        let mut query = sqlx::query(AssertSqlSafe(sql)).persistent(named);
        for message in messages {
            query = query
                .bind(message.tenant_id.as_str().as_bytes())
                .bind(message.kind.as_bytes())
                .bind(message.subject_id.as_bytes())
                .bind(message.payload.as_ref().map(AsRef::<[u8]>::as_ref));
            if self.description.columns().headers.is_some() {
                query = query.bind(headers::to_json(&message.headers).map(String::into_bytes));
            }
            query = query.bind(mysql::micros(message, &self.description));
        }
        query.execute(connection).await
    }
}
