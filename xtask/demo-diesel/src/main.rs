//! The demo by Diesel: the same story, another shop. A file for each database.

mod mysql;
mod postgres;
mod sqlite;

use std::process::ExitCode;

use anyhow::Result;
use demo::Place;
use demo::database::Database;

#[tokio::main]
async fn main() -> ExitCode {
    demo::main(open).await
}

async fn open(place: &Place) -> Result<Box<dyn Database>> {
    Ok(match place {
        Place::Sqlite(path) => Box::new(sqlite::Shop::open(path)?),
        Place::Postgres { schema, url } => Box::new(postgres::Shop::open(schema, url).await?),
        Place::MySql { database, url } => Box::new(mysql::Shop::open(database, url).await?),
    })
}
