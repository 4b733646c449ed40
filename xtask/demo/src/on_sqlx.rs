//! The shop by sqlx: a file for each database.

mod mysql;
mod postgres;
mod sqlite;

use anyhow::Result;

use crate::database::Database;
use crate::place::Place;

/// Opens the shop's database.
///
/// # Errors
/// If it cannot be reached.
pub async fn open(place: &Place) -> Result<Box<dyn Database>> {
    Ok(match place {
        Place::Sqlite(path) => Box::new(sqlite::Shop::open(path).await?),
        Place::Postgres { schema, url } => Box::new(postgres::Shop::open(schema, url).await?),
        Place::MySql { database, url } => Box::new(mysql::Shop::open(database, url).await?),
    })
}
