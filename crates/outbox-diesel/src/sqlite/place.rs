//! Where the connections' database lives.

use diesel::sql_types::{Nullable, Text};
use diesel::{RunQueryDsl, SqliteConnection};
use outbox_core::{StoreError, StoreOperation};
use outbox_sql::sqlite::place::FIND_FILE;
use outbox_sql::sqlite::{NoPlace, OpenedAs, Place};

use super::connection::SqliteConnections;
use super::error::{Failure, store_error};
use crate::statement::Statement;

/// Asks SQLite where a schema of the connections lives.
pub(super) async fn find(
    connections: &SqliteConnections,
    schema: &str,
    operation: StoreOperation,
) -> Result<Place, StoreError> {
    let asked = schema.to_owned();
    let file = connections.run(move |connection| find_file(connection, &asked)).await;
    let file = file.map_err(|failure| store_error(operation, failure))?.into_iter().next();
    let url = connections
        .url()
        .map(|url| url.replacen("sqlite://", "file:", usize::from(url.starts_with("sqlite://"))));
    let opened = url.as_deref().map_or_else(OpenedAs::unknown, |url| OpenedAs::new(url, ""));
    Place::of(schema, file, &opened, connections.only_connection()).map_err(|error| match error {
        // Its connections may share one by a name that only the pool knows, and another pool may, too.
        NoPlace::PrivateMemory if url.is_none() => StoreError::permanent(
            operation,
            "a pool of diesel-async does not tell which database in memory it has: open it with \
             SqliteConnector::new(\"file:NAME?mode=memory&cache=shared\"), or use a file",
        ),
        error => error.error(operation),
    })
}

/// No row if there is no such schema, and no name if it is in memory.
fn find_file(connection: &mut SqliteConnection, schema: &str) -> Result<Vec<Option<String>>, Failure> {
    let statement = Statement::<_, Nullable<Text>>::new(FIND_FILE).bind::<Text>(schema);
    Ok(statement.get_results(connection)?)
}
