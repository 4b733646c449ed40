//! What the store asks, by Diesel.

use std::path::Path;
use std::sync::Arc;

use diesel::connection::SimpleConnection;
use diesel::sql_types::{BigInt, Binary, Nullable, Text, Untyped};
use diesel::sqlite::Sqlite;
use diesel::{RunQueryDsl, SqliteConnection};
use outbox_sql::driver::{Answer, Flat, Question};
use outbox_sql::row::{RawRow, Unreadable};
use outbox_sql::sqlite::driver::{Reading, Refused, SqliteDriver};
use outbox_sql::sqlite::{Hold, OpenedAs, Pauses, SqliteStatements, meaning};
use outbox_sql::{Meaning, OutboxTable};

use super::connection::SqliteConnections;
use super::error::Failure;
use super::row::{self, Values};
use crate::statement::Statement;

/// Connections, and the jobs that run on them.
#[derive(Debug, Clone)]
pub(super) struct OnConnections(pub(super) SqliteConnections);

impl OnConnections {
    /// Runs a job that reads, again and again while a connection of the same shared cache writes.
    async fn repeat<T, J>(&self, job: J) -> Result<T, Failure>
    where
        T: Send + 'static,
        J: Fn(&mut SqliteConnection) -> Result<T, Failure> + Clone + Send + 'static,
    {
        let mut pauses = Pauses::default();
        loop {
            match self.0.run(job.clone()).await {
                Err(failure) if failure.is_locked() => tokio::time::sleep(pauses.next_pause()).await,
                outcome => return outcome,
            }
        }
    }

    async fn rows<T: Send + 'static>(
        &self,
        reading: Reading,
        question: Question<'_>,
        row: fn(&Values) -> T,
    ) -> Result<Vec<T>, Refused<Failure>> {
        let asked = Asked::of(&question);
        let rows = self.repeat(move |connection| {
            if reading == Reading::Committed && number(connection, meaning::ASK_READ_UNCOMMITTED)? != 0 {
                return Ok(None);
            }
            row::read(connection, asked.statement(), row).map(Some)
        });
        rows.await?.ok_or(Refused::ReadUncommitted)
    }
}

impl SqliteDriver for OnConnections {
    type Error = Failure;

    async fn ask(&self, reading: Reading, asked: Question<'_>) -> Result<Vec<Answer>, Refused<Failure>> {
        self.rows(reading, asked, Values::answer).await
    }

    async fn read(&self, reading: Reading, asked: Question<'_>) -> Result<Vec<RawRow>, Refused<Failure>> {
        self.rows(reading, asked, Values::message).await
    }

    /// The job that marks owns the lock, so that it unlocks when it is through, whether somebody still waits for it or
    /// not.
    async fn mark(&self, mark: Question<'_>, mut hold: Hold) -> Result<u64, Failure> {
        let mut pauses = Pauses::default();
        let mark = Asked::of(&mark);
        loop {
            let mark = mark.clone();
            let attempt = self.0.run(move |connection| {
                let outcome = RunQueryDsl::execute(mark.statement(), connection);
                // Back with the answer, or dropped with it.
                Ok((outcome, hold))
            });
            let (outcome, back) = attempt.await?;
            match outcome.map_err(Failure::Query) {
                Err(failure) if failure.is_busy() => tokio::time::sleep(pauses.next_pause()).await,
                outcome => return outcome.map(|marked| u64::try_from(marked).unwrap_or(u64::MAX)),
            }
            hold = back;
        }
    }

    async fn write_nothing(
        &self,
        _: &OutboxTable,
        statements: &SqliteStatements,
        _: &Path,
    ) -> Result<(), Failure> {
        let prove_writable = Arc::clone(&statements.prove_writable);
        let job = move |connection: &mut SqliteConnection| {
            let busy_timeout = number(connection, "PRAGMA busy_timeout")?;
            connection.batch_execute("PRAGMA busy_timeout = 0")?;
            let outcome = RunQueryDsl::execute(Statement::<_, Untyped>::new(&prove_writable), connection);
            connection.batch_execute(&format!("PRAGMA busy_timeout = {busy_timeout}"))?;
            outcome?;
            Ok(())
        };
        self.0.run(job).await
    }

    fn opened_as(&self) -> Result<OpenedAs, &'static str> {
        // The connections of a pool may share one by a name that only the pool knows, and another pool may, too.
        let url = self.0.url().ok_or(
            "a pool of diesel-async does not tell which database in memory it has: open it with \
             SqliteConnector::new(\"file:NAME?mode=memory&cache=shared\"), or use a file",
        )?;
        let is_url = usize::from(url.starts_with("sqlite://"));
        Ok(OpenedAs::new(&url.replacen("sqlite://", "file:", is_url), ""))
    }

    fn only_connection(&self) -> Option<usize> {
        self.0.only_connection()
    }

    fn closes_connections(&self) -> bool {
        false
    }

    fn is_busy(failure: &Failure) -> bool {
        failure.is_busy()
    }

    fn meaning(failure: &Failure) -> Meaning {
        failure.meaning()
    }

    fn unreadable(why: Unreadable) -> Failure {
        diesel::result::Error::DeserializationError(Box::new(why)).into()
    }
}

fn number(connection: &mut SqliteConnection, statement: &str) -> Result<i64, Failure> {
    Ok(Statement::<_, BigInt>::new(statement).get_result(connection)?)
}

/// A question that a job owns.
#[derive(Clone)]
struct Asked {
    text: Arc<str>,
    binds: Vec<Bound>,
}

#[derive(Clone)]
enum Bound {
    Text(Option<String>),
    Bytes(Vec<u8>),
    Integer(i64),
}

impl Asked {
    fn of(question: &Question<'_>) -> Self {
        let bound = |flat| match flat {
            Flat::Null => Bound::Text(None),
            Flat::Text(text) => Bound::Text(Some(text.to_owned())),
            Flat::Json(json) => Bound::Text(Some(json)),
            Flat::Bytes(bytes) => Bound::Bytes(bytes.to_vec()),
            Flat::Integer(integer) => Bound::Integer(integer),
        };
        let binds = question.binds.iter().map(|bind| bound(bind.flat())).collect();
        Self { text: Arc::clone(&question.text), binds }
    }

    fn statement(&self) -> Statement<'_, Sqlite, Untyped> {
        self.binds.iter().fold(Statement::new(&self.text), |statement, bind| match bind {
            Bound::Text(text) => statement.bind::<Nullable<Text>>(text.as_deref()),
            Bound::Bytes(bytes) => statement.bind::<Binary>(bytes.as_slice()),
            Bound::Integer(integer) => statement.bind::<BigInt>(*integer),
        })
    }
}
