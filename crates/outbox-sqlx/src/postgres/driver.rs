//! What the store asks, by sqlx.

use std::num::NonZeroU32;

use outbox_core::{OutboxMessage, StoreError, TenantId};
use outbox_sql::Meaning;
use outbox_sql::check::Finding;
use outbox_sql::driver::{Answer, Asking, Bind, Driver, Question, Sending, Session};
use outbox_sql::postgres::driver::{PostgresDriver, PostgresSession};
use outbox_sql::postgres::{ClaimNumber, PostgresStatements};
use outbox_sql::row::{Decoding, Unreadable};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, PgConnection, PgPool, Postgres, Row};

use super::error::meaning_of;
use super::{ArmedConnection, row};

/// A pool, and whether statements are prepared once per connection, under a name.
#[derive(Debug, Clone)]
pub(super) struct OnPool {
    pub(super) pool: PgPool,
    pub(super) named: bool,
}

/// A connection of the pool.
#[derive(Debug)]
pub(super) struct OnConnection {
    connection: ArmedConnection,
    named: bool,
    number: ClaimNumber,
}

impl Driver for OnPool {
    type Session = OnConnection;

    async fn acquire(&self) -> sqlx::Result<OnConnection> {
        let connection = ArmedConnection::acquire(&self.pool).await?;
        Ok(OnConnection { connection, named: self.named, number: ClaimNumber::draw() })
    }

    fn max_sessions(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.pool.options().get_max_connections())
    }

    fn meaning(&self, error: &sqlx::Error, table: &str, rights: &str) -> Meaning {
        meaning_of(error, table, rights, self.named)
    }
}

impl PostgresDriver for OnPool {
    fn names_statements(&self) -> bool {
        self.named
    }

    fn pooled() -> Finding {
        Finding::error(
            "a transaction pooler is between here and the server, where named statements get lost: make the \
             store without_named_statements()",
        )
    }
}

impl Asking for OnConnection {
    type Error = sqlx::Error;

    async fn run(&mut self, text: &str) -> sqlx::Result<()> {
        On(self.connection.get()?).run(text).await
    }

    async fn ask(&mut self, mut question: Question<'_>) -> sqlx::Result<Vec<Answer>> {
        if question.sending == Sending::Named && !self.named {
            question.sending = Sending::Unnamed;
        }
        On(self.connection.get()?).ask(question).await
    }

    fn unreadable(why: Unreadable) -> sqlx::Error {
        On::unreadable(why)
    }
}

impl Session for OnConnection {
    type Row = PgRow;

    async fn read(&mut self, question: Question<'_>) -> sqlx::Result<Vec<PgRow>> {
        query(&question).persistent(self.named).fetch_all(self.connection.get()?).await
    }

    fn messages(rows: Vec<PgRow>, decoding: Decoding<'_>) -> Result<Vec<OutboxMessage>, StoreError> {
        let types = row::Types::of(&rows);
        decoding.decode_each(rows, |row| types.message(row))
    }

    fn release(self) {
        self.connection.give_back();
    }
}

impl PostgresSession for OnConnection {
    fn id(row: &PgRow) -> Option<i64> {
        row.try_get(0).ok()
    }

    /// One round trip: each statement of the text is one by itself, and the lock is the last of them.
    async fn lock(
        &mut self,
        begin: String,
        statements: &PostgresStatements,
        tenant: &TenantId,
    ) -> sqlx::Result<Answer> {
        let text = format!("{begin}; {}; {}", self.number.announce(), statements.lock_of(tenant));
        self.last_of(text).await
    }

    async fn mark(&mut self, mark: Question<'_>) -> sqlx::Result<u64> {
        let marked = query(&mark).persistent(self.named).execute(self.connection.get()?).await?;
        Ok(marked.rows_affected())
    }

    async fn commit(&mut self) -> sqlx::Result<bool> {
        let mut committed = self.last_of(self.number.commit_and_confirm()).await?;
        committed.take(0).map_err(Self::unreadable)
    }
}

impl OnConnection {
    /// The last row that the statements of a text answer.
    async fn last_of(&mut self, text: String) -> sqlx::Result<Answer> {
        let rows = sqlx::raw_sql(AssertSqlSafe(text)).fetch_all(self.connection.get()?).await?;
        rows.last().map(row::answer).ok_or(sqlx::Error::RowNotFound)
    }
}

/// A connection: a store's own, or the application's.
#[derive(Debug)]
pub(super) struct On<'c>(pub(super) &'c mut PgConnection);

impl Asking for On<'_> {
    type Error = sqlx::Error;

    async fn run(&mut self, text: &str) -> sqlx::Result<()> {
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut *self.0).await?;
        Ok(())
    }

    async fn ask(&mut self, question: Question<'_>) -> sqlx::Result<Vec<Answer>> {
        let rows = match question.sending {
            Sending::Plain => sqlx::raw_sql(AssertSqlSafe(question.text)).fetch_all(&mut *self.0).await,
            sending => query(&question).persistent(sending == Sending::Named).fetch_all(&mut *self.0).await,
        };
        Ok(rows?.iter().map(row::answer).collect())
    }

    fn unreadable(why: Unreadable) -> sqlx::Error {
        sqlx::Error::Decode(Box::new(why))
    }
}

fn query<'q>(question: &Question<'q>) -> Query<'q, Postgres, PgArguments> {
    let query = sqlx::query(AssertSqlSafe(question.text.clone()));
    question.binds.iter().fold(query, |query, bind| match *bind {
        Bind::Null => query.bind(None::<&str>),
        Bind::Text(text) => query.bind(text),
        Bind::Bytes(bytes) => query.bind(bytes),
        Bind::Integer(integer) => query.bind(integer),
        Bind::Texts(texts) => query.bind(texts),
        Bind::Integers(integers) => query.bind(integers),
    })
}
