//! Asking a live database what it is like.

use std::time::Duration;

use outbox_core::{StoreError, StoreOperation};

use super::{
    ColumnFacts, DESCRIBE_BUSY_TIMEOUT, Facts, FileFacts, IndexFacts, IndexedColumn, TableFacts,
    describe_columns, describe_dangers, describe_indexes, describe_journal, describe_table, findings,
};
use crate::check::Finding;
use crate::deadline::within;
use crate::driver::{Answer, Asking, Question};
use crate::row::Cell;
use crate::sqlite::driver::{Refused, SqliteDriver};
use crate::sqlite::hold::try_lock_file;
use crate::sqlite::store::{Shared, SqliteStore, Through, refusal};
use crate::sqlite::{MemoryDatabase, Place};
use crate::table::OutboxTable;

/// How long a check may take.
const TIMEOUT: Duration = Duration::from_secs(30);
const CHECK: StoreOperation = StoreOperation::Check;

impl<D: SqliteDriver> SqliteStore<D> {
    /// Compares the database with what the store needs.
    ///
    /// # Errors
    /// [`StoreError`], if the database cannot be asked within 30 s.
    pub async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        within(TIMEOUT, CHECK, self.shared.check()).await
    }
}

impl<D: SqliteDriver> Shared<D> {
    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let place = match self.place(CHECK).await {
            Ok(place) => place,
            Err(error) => return Ok(vec![Finding::error(error.message())]),
        };
        if let Err(error) = place.verify() {
            return Ok(vec![Finding::error(error.to_string())]);
        }
        let table = match ask_table(&mut Through(self), &self.table).await {
            Err(refused @ Refused::ReadUncommitted) => {
                return Ok(vec![Finding::error(refusal::<D>(CHECK, refused).message())]);
            }
            table => table.map_err(|refused| refusal::<D>(CHECK, refused))?,
        };
        let mut facts = Facts { table, ..Facts::default() };
        // Without a column no statement fits; its absence is a finding already.
        if facts.table.as_ref().is_some_and(|live| live.has_columns_of(&self.table)) {
            self.writable.set(false);
            if let Err(error) = self.prove_writable(place).await {
                facts.refusals.push(error.message().to_owned());
            }
        }
        match place {
            Place::File(file) => {
                let asked = ask_file(&mut Through(self), &self.table).await;
                facts.file = Some(asked.map_err(|refused| refusal::<D>(CHECK, refused))?);
                facts.refusals.extend(try_lock_file(file.path()));
            }
            Place::Memory(MemoryDatabase::Private { .. }) => {
                facts.ends_with_its_connection = self.driver.closes_connections();
            }
            Place::Memory(MemoryDatabase::Shared { .. }) => {}
        }
        Ok(findings(&self.table, &facts))
    }
}

/// Makes a table, unless there is one of that name: that stays as it is, and is compared with what the store needs.
/// Answers what does not suit.
///
/// # Errors
/// What a statement fails with.
pub async fn compare<A: Asking>(
    connection: &mut A,
    table: &OutboxTable,
) -> Result<Option<Vec<Finding>>, A::Error> {
    let live = ask_table(connection, table).await?;
    Ok(live.map(|live| findings(table, &Facts { table: Some(live), ..Facts::default() })))
}

async fn ask_table<A: Asking>(
    connection: &mut A,
    table: &OutboxTable,
) -> Result<Option<TableFacts>, A::Error> {
    let definition = connection.ask(Question::unnamed(describe_table(table), &[])).await?;
    let Some(definition) = definition.into_iter().next() else { return Ok(None) };
    let columns = connection.ask(Question::unnamed(describe_columns(table), &[])).await?;
    let indexes = connection.ask(Question::unnamed(describe_indexes(table), &[])).await?;
    let mut live = TableFacts::of(definition, columns, indexes).map_err(A::unreadable)?;
    let dangers = connection.ask(Question::unnamed(describe_dangers(table, &live), &[])).await?;
    let danger = |mut answer: Answer| Ok((answer.take(0)?, answer.take(1)?));
    live.dangers = dangers.into_iter().map(danger).collect::<Cell<_>>().map_err(A::unreadable)?;
    Ok(Some(live))
}

async fn ask_file<A: Asking>(connection: &mut A, table: &OutboxTable) -> Result<FileFacts, A::Error> {
    let mut journal = connection.ask_one(Question::unnamed(describe_journal(table), &[])).await?;
    let mut timeout = connection.ask_one(Question::unnamed(DESCRIBE_BUSY_TIMEOUT, &[])).await?;
    Ok(FileFacts {
        journal_mode: journal.take(0).map_err(A::unreadable)?,
        busy_timeout: timeout.take(0).map_err(A::unreadable)?,
    })
}

impl TableFacts {
    fn of(mut definition: Answer, columns: Vec<Answer>, indexes: Vec<Answer>) -> Cell<Self> {
        let column = |mut answer: Answer| {
            Ok(ColumnFacts { name: answer.take(0)?, data_type: answer.take(1)?, key: answer.take(2)? })
        };
        let place = |mut answer: Answer| {
            let column = IndexedColumn {
                name: answer.take::<Option<_>>(2)?.unwrap_or_default(),
                collation: answer.take(3)?,
                descending: answer.take::<i64>(4)? != 0,
            };
            Ok((answer.take(0)?, answer.take(1)?, column))
        };
        Ok(Self {
            definition: definition.take::<Option<_>>(0)?.unwrap_or_default(),
            columns: columns.into_iter().map(column).collect::<Cell<_>>()?,
            indexes: IndexFacts::gather(indexes.into_iter().map(place).collect::<Cell<Vec<_>>>()?),
            dangers: Vec::new(),
        })
    }
}
