//! Asking a live database what it is like.

use std::sync::Arc;
use std::time::Duration;

use diesel::sql_types::{BigInt, Bool, Nullable, Text};
use diesel::{OptionalExtension, RunQueryDsl, SqliteConnection};
use outbox_core::{StoreError, StoreOperation};
use outbox_sql::check::Finding;
use outbox_sql::deadline::within;
use outbox_sql::sqlite::Place;
use outbox_sql::sqlite::check::{
    ColumnFacts, DESCRIBE_BUSY_TIMEOUT, Facts, FileFacts, IndexFacts, IndexedColumn, TableFacts,
    describe_columns, describe_dangers, describe_indexes, describe_journal, describe_table, findings,
};
use outbox_sql::sqlite::hold::try_lock_file;
use outbox_sql::table::OutboxTable;

use super::error::{Failure, store_error};
use super::store::{Shared, SqliteStore};
use super::writable;
use crate::statement::Statement;

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

async fn check(shared: &Arc<Shared>) -> Result<Vec<Finding>, StoreError> {
    let place = match shared.place(CHECK).await {
        Ok(place) => place,
        Err(error) => return Ok(vec![Finding::error(error.message())]),
    };
    if let Err(error) = place.verify() {
        return Ok(vec![Finding::error(error.to_string())]);
    }
    if let Err(failure @ Failure::ReadUncommitted) = shared.read(|_, _| Ok(())).await {
        return Ok(vec![Finding::error(store_error(CHECK, failure).message())]);
    }
    let table = shared.read(|shared, connection| ask_table(&shared.table, connection));
    let mut facts = Facts { table: table.await.map_err(failed)?, ..Facts::default() };
    // Without a column no statement fits; its absence is a finding already.
    if facts.table.as_ref().is_some_and(|live| live.has_columns_of(&shared.table)) {
        shared.writable.set(false);
        if let Err(error) = writable::prove(shared, place).await {
            facts.refusals.push(error.message().to_owned());
        }
    }
    if let Place::File(file) = place {
        let asked = shared.read(|shared, connection| ask_file(&shared.table, connection));
        facts.file = Some(asked.await.map_err(failed)?);
        facts.refusals.extend(try_lock_file(file.path()));
    }
    Ok(findings(&shared.table, &facts))
}

fn failed(failure: Failure) -> StoreError {
    store_error(CHECK, failure)
}

fn ask_table(table: &OutboxTable, connection: &mut SqliteConnection) -> Result<Option<TableFacts>, Failure> {
    let describe = describe_table(table);
    let definition = Statement::<_, Nullable<Text>>::new(&describe).get_result::<Option<String>>(connection);
    let Some(definition) = definition.optional()? else { return Ok(None) };
    let columns = Statement::<_, (Text, Text, BigInt)>::new(&describe_columns(table)).load(connection)?;
    let indexes =
        Statement::<_, (Text, Nullable<Text>, Nullable<Text>, Text, Bool)>::new(&describe_indexes(table))
            .load(connection)?;
    let mut live = TableFacts {
        definition: definition.unwrap_or_default(),
        columns: columns.into_iter().map(column).collect(),
        indexes: IndexFacts::gather(indexes.into_iter().map(indexed)),
        ..TableFacts::default()
    };
    let dangers = describe_dangers(table, &live);
    live.dangers = Statement::<_, (Text, Text)>::new(&dangers).load(connection)?;
    Ok(Some(live))
}

fn column((name, data_type, key): (String, String, i64)) -> ColumnFacts {
    ColumnFacts { name, data_type, key }
}

type Indexed = (String, Option<String>, Option<String>, String, bool);

fn indexed(
    (index, definition, column, collation, descending): Indexed,
) -> (String, Option<String>, IndexedColumn) {
    (index, definition, IndexedColumn { name: column.unwrap_or_default(), collation, descending })
}

fn ask_file(table: &OutboxTable, connection: &mut SqliteConnection) -> Result<FileFacts, Failure> {
    Ok(FileFacts {
        journal_mode: Statement::<_, Text>::new(&describe_journal(table)).get_result(connection)?,
        busy_timeout: Statement::<_, BigInt>::new(DESCRIBE_BUSY_TIMEOUT).get_result(connection)?,
    })
}
