//! What the store asks, by `diesel-async`.

use std::num::NonZeroU32;

use diesel::mysql::Mysql;
use diesel::result::Error;
use diesel::sql_types::{BigInt, Binary, Nullable, Untyped};
use diesel_async::{AsyncMysqlConnection, SimpleAsyncConnection};
use outbox_core::{OutboxMessage, StoreError};
use outbox_sql::Meaning;
use outbox_sql::driver::{Answer, Asking, Driver, Flat, Question, Session};
use outbox_sql::mysql::driver::MySqlSession;
use outbox_sql::mysql::error::NO_CONNECTION;
use outbox_sql::row::{Decoding, Unreadable};

use super::error::{meaning_of, number};
use super::row::{SmallRow, message};
use crate::connection::{ArmedConnection, Failure};
use crate::pool::Pool;
use crate::statement::Statement;

/// A pool.
#[derive(Debug, Clone)]
pub(super) struct OnPool(pub(super) Pool<AsyncMysqlConnection>);

/// A connection of the pool.
#[derive(Debug)]
pub(super) struct OnConnection(ArmedConnection<AsyncMysqlConnection>);

impl Driver for OnPool {
    type Session = OnConnection;

    async fn acquire(&self) -> Result<OnConnection, Failure> {
        Ok(OnConnection(ArmedConnection::acquire(&self.0).await?))
    }

    fn max_sessions(&self) -> Option<NonZeroU32> {
        self.0.adapter().max_size()
    }

    fn meaning(&self, failure: &Failure, table: &str, rights: &str) -> Meaning {
        failure.meaning(|error| meaning_of(error, table, rights), NO_CONNECTION)
    }
}

impl Asking for OnConnection {
    type Error = Failure;

    async fn run(&mut self, text: &str) -> Result<(), Failure> {
        Ok(self.0.get()?.batch_execute(text).await?)
    }

    async fn ask(&mut self, question: Question<'_>) -> Result<Vec<Answer>, Failure> {
        let rows = statement(&question).rows::<SmallRow, _>(self.0.get()?).await?;
        Ok(rows.into_iter().map(|row| row.0).collect())
    }

    fn unreadable(why: Unreadable) -> Failure {
        Error::DeserializationError(Box::new(why)).into()
    }
}

impl Session for OnConnection {
    type Row = Answer;

    async fn read(&mut self, question: Question<'_>) -> Result<Vec<Answer>, Failure> {
        self.ask(question).await
    }

    fn messages(rows: Vec<Answer>, decoding: Decoding<'_>) -> Result<Vec<OutboxMessage>, StoreError> {
        decoding.decode(rows.into_iter().map(message))
    }

    fn release(self) {
        self.0.give_back();
    }
}

impl MySqlSession for OnConnection {
    async fn change(&mut self, change: Question<'_>) -> Result<u64, Failure> {
        let changed = statement(&change).changes(self.0.get()?).await?;
        Ok(u64::try_from(changed).unwrap_or_default())
    }

    fn number(failure: &Failure) -> Option<u16> {
        let Failure::Database(Error::DatabaseError(kind, said)) = failure else { return None };
        number(*kind, said.message())
    }
}

/// Texts are bound as bytes, so that no connection's character set changes them.
fn statement<'q>(question: &'q Question<'_>) -> Statement<'q, Mysql, Untyped> {
    let statement = Statement::new(&question.text);
    question.binds.iter().fold(statement, |statement, bind| match bind.flat() {
        Flat::Null => statement.bind::<Nullable<Binary>>(None::<&[u8]>),
        Flat::Text(text) => statement.bind::<Binary>(text.as_bytes()),
        Flat::Json(json) => statement.bind::<Binary>(json.into_bytes()),
        Flat::Bytes(bytes) => statement.bind::<Binary>(bytes),
        Flat::Integer(integer) => statement.bind::<BigInt>(integer),
    })
}
