//! What the store asks, by `diesel-async`.

use std::num::NonZeroU32;

use diesel::pg::Pg;
use diesel::sql_types::{Array, BigInt, Binary, Nullable, Text, Untyped};
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use futures_util::future::join;
use outbox_core::{OutboxMessage, StoreError, TenantId};
use outbox_sql::Meaning;
use outbox_sql::check::Finding;
use outbox_sql::driver::{Answer, Asking, Bind, Driver, Question, Session};
use outbox_sql::postgres::driver::{PostgresDriver, PostgresSession};
use outbox_sql::postgres::error::NO_CONNECTION;
use outbox_sql::postgres::{CONFIRM, PostgresStatements, TRANSACTION};
use outbox_sql::row::{Decoding, Unreadable};

use super::error::meaning_of;
use super::row::{MessageColumns, MessageRow, SmallRow};
use crate::connection::{ArmedConnection, Failure};
use crate::pool::Pool;
use crate::statement::Statement;

/// A pool.
#[derive(Debug, Clone)]
pub(super) struct OnPool(pub(super) Pool<AsyncPgConnection>);

/// A connection of the pool.
#[derive(Debug)]
pub(super) struct OnConnection {
    connection: ArmedConnection<AsyncPgConnection>,
    /// The number of the transaction that marked.
    transaction: String,
}

impl Driver for OnPool {
    type Session = OnConnection;

    async fn acquire(&self) -> Result<OnConnection, Failure> {
        let connection = ArmedConnection::acquire(&self.0).await?;
        Ok(OnConnection { connection, transaction: String::new() })
    }

    fn max_sessions(&self) -> Option<NonZeroU32> {
        self.0.adapter().max_size()
    }

    fn meaning(&self, failure: &Failure, table: &str, rights: &str) -> Meaning {
        failure.meaning(|error| meaning_of(error, table, rights), NO_CONNECTION)
    }
}

impl PostgresDriver for OnPool {
    fn names_statements(&self) -> bool {
        true
    }

    /// Whether it serves cannot be asked.
    fn pooled() -> Finding {
        Finding::warning(
            "a transaction pooler is between here and the server: diesel-async gives every statement a name, which \
             the pooler has to keep track of (PgBouncer from 1.21 on, with max_prepared_statements above 0); else \
             connect directly",
        )
    }
}

impl Asking for OnConnection {
    type Error = Failure;

    async fn run(&mut self, text: &str) -> Result<(), Failure> {
        Ok(self.connection.get()?.batch_execute(text).await?)
    }

    async fn ask(&mut self, question: Question<'_>) -> Result<Vec<Answer>, Failure> {
        let rows = statement::<Untyped>(&question).rows::<SmallRow, _>(self.connection.get()?).await?;
        Ok(rows.into_iter().map(|row| row.0).collect())
    }

    fn unreadable(why: Unreadable) -> Failure {
        diesel::result::Error::DeserializationError(Box::new(why)).into()
    }
}

impl Session for OnConnection {
    type Row = MessageRow;

    async fn read(&mut self, question: Question<'_>) -> Result<Vec<MessageRow>, Failure> {
        Ok(statement::<MessageColumns>(&question).rows(self.connection.get()?).await?)
    }

    fn messages(rows: Vec<MessageRow>, decoding: Decoding<'_>) -> Result<Vec<OutboxMessage>, StoreError> {
        decoding.decode(rows.into_iter().map(|row| row.0))
    }

    fn release(self) {
        self.connection.give_back();
    }
}

impl PostgresSession for OnConnection {
    fn id(row: &MessageRow) -> Option<i64> {
        row.0.id.as_ref().ok().copied()
    }

    /// Two round trips: only a statement by itself can be asked.
    async fn lock(
        &mut self,
        begin: String,
        statements: &PostgresStatements,
        tenant: &TenantId,
    ) -> Result<Answer, Failure> {
        self.run(&begin).await?;
        self.ask_one(Question::named(&statements.lock, &[Bind::Text(tenant.as_str())])).await
    }

    /// Asks for the transaction's number as well. Both are sent at once, in this order.
    async fn mark(&mut self, mark: Question<'_>) -> Result<u64, Failure> {
        let session: &AsyncPgConnection = self.connection.get()?;
        let (mut marking, mut asking) = (session, session);
        let (mark, number) = (statement::<Untyped>(&mark), Statement::<Pg, Text>::new(TRANSACTION));
        let (marked, number) = join(mark.changes(&mut marking), number.one_row(&mut asking)).await;
        let marked = marked?;
        self.transaction = number?;
        Ok(u64::try_from(marked).unwrap_or_default())
    }

    /// Asks what became of the transaction. Both are sent at once, in this order.
    async fn commit(&mut self) -> Result<bool, Failure> {
        let session: &AsyncPgConnection = self.connection.get()?;
        let (mut committing, mut confirming) = (session, session);
        let confirm = Statement::<Pg, Nullable<Text>>::new(CONFIRM).bind::<Text>(&*self.transaction);
        let (committed, fate) =
            join(committing.batch_execute("COMMIT"), confirm.one_row(&mut confirming)).await;
        committed?;
        let fate: Option<String> = fate?;
        Ok(fate.as_deref() == Some("committed"))
    }
}

fn statement<'q, ST>(question: &'q Question<'_>) -> Statement<'q, Pg, ST> {
    let statement = Statement::new(&question.text);
    question.binds.iter().fold(statement, |statement, bind| match *bind {
        Bind::Null => statement.bind::<Nullable<Text>>(None::<&str>),
        Bind::Text(text) => statement.bind::<Text>(text),
        Bind::Bytes(bytes) => statement.bind::<Binary>(bytes),
        Bind::Integer(integer) => statement.bind::<BigInt>(integer),
        Bind::Texts(texts) => statement.bind::<Array<Text>>(texts),
        Bind::Integers(integers) => statement.bind::<Array<BigInt>>(integers),
    })
}
