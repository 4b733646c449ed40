//! Asking a live database what it is like.

use std::time::Duration;

use outbox_core::{StoreError, StoreOperation};
use outbox_sql::OutboxTable;
use outbox_sql::check::Finding;
use outbox_sql::deadline::within;
use outbox_sql::sqlite::check::{
    ColumnFacts, DESCRIBE_BUSY_TIMEOUT, Facts, FileFacts, IndexFacts, IndexedColumn, TableFacts,
    describe_columns, describe_dangers, describe_indexes, describe_journal, describe_table, findings,
};
use outbox_sql::sqlite::hold::try_lock_file;
use outbox_sql::sqlite::{MemoryDatabase, Place};
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row, SqliteConnection};

use super::connection::Lent;
use super::error::store_error;
use super::store::{Shared, SqliteStore};
use super::writable;

/// How long a check may take.
const TIMEOUT: Duration = Duration::from_secs(30);
const CHECK: StoreOperation = StoreOperation::Check;

impl SqliteStore {
    /// Compares the database with what the store needs: the table, its columns and types, the index, whether it
    /// takes writes and lock files, the journal mode and the busy timeout. Nothing is found if all is well.
    /// Changes nothing, but may leave an empty lock file.
    ///
    /// # Errors
    /// [`StoreError`], if the database cannot be asked within 30 s.
    pub async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        within(TIMEOUT, CHECK, check(&self.shared)).await
    }
}

async fn check(shared: &Shared) -> Result<Vec<Finding>, StoreError> {
    let failed = |error| store_error(CHECK, error);
    let mut connection = shared.connection(CHECK).await?;
    let place = match shared.place(connection.get().map_err(failed)?, CHECK).await {
        Ok(place) => place,
        Err(error) => return Ok(vec![Finding::error(error.message())]),
    };
    if let Err(error) = place.verify() {
        return Ok(vec![Finding::error(error.to_string())]);
    }
    if let Err(error) = shared.refuse_uncommitted(&mut connection, CHECK).await {
        return Ok(vec![Finding::error(error.message())]);
    }
    let mut facts = Facts {
        table: ask_table(&shared.table, connection.get().map_err(failed)?).await.map_err(failed)?,
        ..Facts::default()
    };
    // Without a column no statement fits; its absence is a finding already.
    if facts.table.as_ref().is_some_and(|live| live.has_columns_of(&shared.table)) {
        shared.writable.set(false);
        if let Err(error) = writable::prove(shared, place, &mut connection).await {
            facts.refusals.push(error.message().to_owned());
        }
    }
    match place {
        Place::File(file) => {
            facts.file = Some(ask_file(shared, &mut connection).await.map_err(failed)?);
            facts.refusals.extend(try_lock_file(file.path()));
        }
        Place::Memory(MemoryDatabase::Private { .. }) => {
            let options = shared.pool.options();
            facts.ends_with_its_connection =
                options.get_max_lifetime().is_some() || options.get_idle_timeout().is_some();
        }
        Place::Memory(MemoryDatabase::Shared { .. }) => {}
    }
    Ok(findings(&shared.table, &facts))
}

/// Compares a live table with its description; `None` if there is none of its name.
pub(super) async fn compare(
    table: &OutboxTable,
    connection: &mut SqliteConnection,
) -> sqlx::Result<Option<Vec<Finding>>> {
    let live = ask_table(table, connection).await?;
    Ok(live.map(|live| findings(table, &Facts { table: Some(live), ..Facts::default() })))
}

async fn ask_table(
    table: &OutboxTable,
    connection: &mut SqliteConnection,
) -> sqlx::Result<Option<TableFacts>> {
    let definition: Option<Option<String>> =
        sqlx::query_scalar(AssertSqlSafe(describe_table(table))).fetch_optional(&mut *connection).await?;
    let Some(definition) = definition else { return Ok(None) };
    let columns = sqlx::query(AssertSqlSafe(describe_columns(table))).fetch_all(&mut *connection).await?;
    let indexes = sqlx::query(AssertSqlSafe(describe_indexes(table))).fetch_all(&mut *connection).await?;
    let mut live = TableFacts {
        definition: definition.unwrap_or_default(),
        columns: columns.iter().map(column).collect::<sqlx::Result<_>>()?,
        indexes: IndexFacts::gather(indexes.iter().map(indexed).collect::<sqlx::Result<Vec<_>>>()?),
        ..TableFacts::default()
    };
    let dangers = describe_dangers(table, &live);
    live.dangers = sqlx::query_as(AssertSqlSafe(dangers)).fetch_all(connection).await?;
    Ok(Some(live))
}

fn column(row: &SqliteRow) -> sqlx::Result<ColumnFacts> {
    Ok(ColumnFacts { name: row.try_get(0)?, data_type: row.try_get(1)?, key: row.try_get(2)? })
}

fn indexed(row: &SqliteRow) -> sqlx::Result<(String, Option<String>, IndexedColumn)> {
    let column = IndexedColumn {
        name: row.try_get::<Option<String>, _>(2)?.unwrap_or_default(),
        collation: row.try_get(3)?,
        descending: row.try_get(4)?,
    };
    Ok((row.try_get(0)?, row.try_get(1)?, column))
}

async fn ask_file(shared: &Shared, connection: &mut Lent) -> sqlx::Result<FileFacts> {
    let journal = AssertSqlSafe(describe_journal(&shared.table));
    Ok(FileFacts {
        journal_mode: sqlx::query_scalar(journal).fetch_one(connection.get()?).await?,
        busy_timeout: sqlx::query_scalar(DESCRIBE_BUSY_TIMEOUT).fetch_one(connection.get()?).await?,
    })
}
