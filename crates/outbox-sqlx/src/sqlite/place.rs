//! Where a pool's database lives.

use outbox_core::{StoreError, StoreOperation};
use outbox_sql::sqlite::OpenedAs;
use outbox_sql::sqlite::place::{FIND_FILE, Place};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use sqlx::{ConnectOptions, SqliteConnection};

use super::error::store_error;

/// Asks SQLite where a schema of the pool's connection lives.
pub(super) async fn find(
    pool: &SqlitePool,
    connection: &mut SqliteConnection,
    schema: &str,
    operation: StoreOperation,
) -> Result<Place, StoreError> {
    let file: Option<Option<String>> = sqlx::query_scalar(FIND_FILE)
        .bind(schema.to_owned())
        .fetch_optional(connection)
        .await
        .map_err(|error| store_error(operation, error))?;
    let opened = opened_as(&pool.connect_options());
    // All clones of a pool have their options in one place, where they stay while one of them lives.
    let address = std::ptr::from_ref(pool.options()).addr();
    let only = (pool.options().get_max_connections() == 1).then_some(address);
    Place::of(schema, file, &opened, only).map_err(|error| error.error(operation))
}

/// What the options say about a database in memory. They tell it in their URL only.
fn opened_as(options: &SqliteConnectOptions) -> OpenedAs {
    // Without the name, which sqlx 0.9 panics on if it has a colon, as those that it makes up itself.
    let url = options.clone().filename("database").to_url_lossy();
    OpenedAs::new(&options.get_filename().to_string_lossy(), url.query().unwrap_or_default())
}
