//! What the store asks, by sqlx.

use std::num::NonZeroU32;

use outbox_core::{OutboxMessage, StoreError};
use outbox_sql::Meaning;
use outbox_sql::driver::{Answer, Asking, Driver, Flat, Question, Sending, Session};
use outbox_sql::mysql::driver::MySqlSession;
use outbox_sql::row::{Decoding, Unreadable};
use sqlx::mysql::{MySqlArguments, MySqlRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, MySql, MySqlConnection, MySqlPool};

use super::error::{meaning_of, number};
use super::row;

/// A pool.
#[derive(Debug, Clone)]
pub(super) struct OnPool(pub(super) MySqlPool);

/// A connection of the pool.
#[derive(Debug)]
pub(super) struct OnConnection(ArmedConnection);

type ArmedConnection = crate::connection::ArmedConnection<MySql>;

impl Driver for OnPool {
    type Session = OnConnection;

    async fn acquire(&self) -> sqlx::Result<OnConnection> {
        Ok(OnConnection(ArmedConnection::acquire(&self.0).await?))
    }

    fn max_sessions(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.0.options().get_max_connections())
    }

    fn meaning(&self, error: &sqlx::Error, table: &str, rights: &str) -> Meaning {
        meaning_of(error, table, rights)
    }
}

impl Asking for OnConnection {
    type Error = sqlx::Error;

    async fn run(&mut self, text: &str) -> sqlx::Result<()> {
        On(self.0.get()?).run(text).await
    }

    async fn ask(&mut self, question: Question<'_>) -> sqlx::Result<Vec<Answer>> {
        On(self.0.get()?).ask(question).await
    }

    fn unreadable(why: Unreadable) -> sqlx::Error {
        On::unreadable(why)
    }
}

impl Session for OnConnection {
    type Row = MySqlRow;

    async fn read(&mut self, question: Question<'_>) -> sqlx::Result<Vec<MySqlRow>> {
        query(&question).fetch_all(self.0.get()?).await
    }

    fn messages(rows: Vec<MySqlRow>, decoding: Decoding<'_>) -> Result<Vec<OutboxMessage>, StoreError> {
        decoding.decode(rows.into_iter().map(|row| row::message(&row)))
    }

    fn release(self) {
        self.0.give_back();
    }
}

impl MySqlSession for OnConnection {
    async fn change(&mut self, change: Question<'_>) -> sqlx::Result<u64> {
        Ok(query(&change).execute(self.0.get()?).await?.rows_affected())
    }

    fn number(error: &sqlx::Error) -> Option<u16> {
        number(error)
    }
}

/// A connection: a store's own, or the application's.
#[derive(Debug)]
pub(super) struct On<'c>(pub(super) &'c mut MySqlConnection);

impl Asking for On<'_> {
    type Error = sqlx::Error;

    async fn run(&mut self, text: &str) -> sqlx::Result<()> {
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut *self.0).await?;
        Ok(())
    }

    async fn ask(&mut self, question: Question<'_>) -> sqlx::Result<Vec<Answer>> {
        let rows = query(&question).fetch_all(&mut *self.0).await?;
        Ok(rows.iter().map(row::answer).collect())
    }

    fn unreadable(why: Unreadable) -> sqlx::Error {
        sqlx::Error::Decode(Box::new(why))
    }
}

/// Texts are bound as bytes, so that no connection's character set changes them.
fn query<'q>(question: &Question<'q>) -> Query<'q, MySql, MySqlArguments> {
    let query = sqlx::query(AssertSqlSafe(question.text.clone()));
    let query = query.persistent(question.sending == Sending::Named);
    question.binds.iter().fold(query, |query, bind| match bind.flat() {
        Flat::Null => query.bind(None::<&[u8]>),
        Flat::Text(text) => query.bind(text.as_bytes()),
        Flat::Json(json) => query.bind(json.into_bytes()),
        Flat::Bytes(bytes) => query.bind(bytes),
        Flat::Integer(integer) => query.bind(integer),
    })
}
