//! What the store asks, by sqlx.

use std::path::Path;
use std::time::Duration;

use outbox_sql::driver::{Answer, Asking, Flat, Question, Sending};
use outbox_sql::row::{RawRow, Unreadable};
use outbox_sql::sqlite::driver::{Reading, Refused, SqliteDriver};
use outbox_sql::sqlite::{Hold, OpenedAs, SqliteStatements, meaning};
use outbox_sql::{Meaning, OutboxTable};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqlitePool, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Sqlite, SqliteConnection};

use super::connection::Lent;
use super::mark::Marking;
use super::{error, row};

/// A pool.
#[derive(Debug, Clone)]
pub(super) struct OnPool(pub(super) SqlitePool);

impl OnPool {
    async fn rows(
        &self,
        reading: Reading,
        asked: Question<'_>,
    ) -> Result<Vec<SqliteRow>, Refused<sqlx::Error>> {
        let mut connection = Lent::from(&self.0).await?;
        if reading == Reading::Committed {
            let asking = sqlx::query_scalar(meaning::ASK_READ_UNCOMMITTED);
            let uncommitted: i64 = asking.fetch_one(connection.get()?).await?;
            if uncommitted != 0 {
                return Err(Refused::ReadUncommitted);
            }
        }
        Ok(query(&asked).fetch_all(connection.get()?).await?)
    }
}

impl SqliteDriver for OnPool {
    type Error = sqlx::Error;

    async fn ask(&self, reading: Reading, asked: Question<'_>) -> Result<Vec<Answer>, Refused<sqlx::Error>> {
        Ok(self.rows(reading, asked).await?.iter().map(row::answer).collect())
    }

    async fn read(&self, reading: Reading, asked: Question<'_>) -> Result<Vec<RawRow>, Refused<sqlx::Error>> {
        Ok(self.rows(reading, asked).await?.into_iter().map(|row| row::message(&row)).collect())
    }

    async fn mark(&self, mark: Question<'_>, hold: Hold) -> sqlx::Result<u64> {
        Marking::new(Lent::from(&self.0).await?, hold).run(&mark).await
    }

    /// On a connection of its own, straight to the file.
    async fn write_nothing(
        &self,
        table: &OutboxTable,
        _: &SqliteStatements,
        file: &Path,
    ) -> sqlx::Result<()> {
        // What the pool's connections may have attached under another name is the main database here.
        let statements = SqliteStatements::new(&table.clone().with_schema("main"))
            .map_err(|error| sqlx::Error::Configuration(Box::new(error)))?;
        let options = self.0.connect_options().as_ref().clone();
        let mut connection = options.filename(file).busy_timeout(Duration::ZERO).connect().await?;
        let outcome = sqlx::query(AssertSqlSafe(statements.prove_writable)).execute(&mut connection).await;
        connection.close().await?;
        outcome.map(drop)
    }

    fn opened_as(&self) -> Result<OpenedAs, &'static str> {
        Ok(opened_as(&self.0.connect_options()))
    }

    /// All clones of a pool have their options in one place, where they stay while one of them lives.
    fn only_connection(&self) -> Option<usize> {
        let options = self.0.options();
        (options.get_max_connections() == 1).then_some(std::ptr::from_ref(options).addr())
    }

    fn closes_connections(&self) -> bool {
        let options = self.0.options();
        options.get_max_lifetime().is_some() || options.get_idle_timeout().is_some()
    }

    fn is_busy(error: &sqlx::Error) -> bool {
        error::is_busy(error)
    }

    fn meaning(error: &sqlx::Error) -> Meaning {
        error::meaning_of(error)
    }

    fn unreadable(why: Unreadable) -> sqlx::Error {
        sqlx::Error::Decode(Box::new(why))
    }
}

/// What the options say about a database in memory. They tell it in their URL only.
fn opened_as(options: &SqliteConnectOptions) -> OpenedAs {
    // Without the name, which sqlx 0.9 panics on if it has a colon, as those that it makes up itself.
    let url = options.clone().filename("database").to_url_lossy();
    OpenedAs::new(&options.get_filename().to_string_lossy(), url.query().unwrap_or_default())
}

/// A connection: a store's own, or the application's.
#[derive(Debug)]
pub(super) struct On<'c>(pub(super) &'c mut SqliteConnection);

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

/// The driver's thread gets what is bound, and owns it.
pub(super) fn query<'q>(question: &Question<'_>) -> Query<'q, Sqlite, SqliteArguments> {
    let query = sqlx::query(AssertSqlSafe(question.text.clone()));
    let query = query.persistent(question.sending == Sending::Named);
    question.binds.iter().fold(query, |query, bind| match bind.flat() {
        Flat::Null => query.bind(None::<String>),
        Flat::Text(text) => query.bind(text.to_owned()),
        Flat::Json(json) => query.bind(json),
        Flat::Bytes(bytes) => query.bind(bytes.to_vec()),
        Flat::Integer(integer) => query.bind(integer),
    })
}
