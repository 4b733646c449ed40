//! The main job, to look at: orders in transactions, two relays that take turns, a refusal, a SIGKILL, a check.
//!
//! Read it like an example: the application (`writer`) places orders, each `relay` in a process of its own hands them to
//! a `publisher`, and the `check` compares what was committed with what was published. [`on_sqlx`] is the shop by
//! sqlx; the package beside this one has it by Diesel. What stages the story is in the other files.

mod check;
mod control;
mod crew;
pub mod database;
mod interrupt;
mod journal;
pub mod on_sqlx;
mod place;
mod publisher;
mod relay;
mod scenes;
mod story;
mod summary;
mod writer;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser as _;
use servers::install::Program;
use servers::{Folder, MariaDb, Postgres};

use self::database::Database;

pub use self::interrupt::unless_interrupted;
pub use self::place::Place;
pub use self::story::Story;
pub use self::writer::{TENANTS, subject};

/// What `cargo xtask demo` asks for.
#[derive(Debug, clap::Parser)]
enum Command {
    /// Plays the story.
    Play {
        /// `sqlite`, a private server of `postgres` or `mariadb`, or the address of yours.
        #[arg(default_value = "sqlite")]
        place: String,
    },
    /// Is one of the replicas; its database comes in an environment variable, since it may have a password.
    #[command(hide = true)]
    Replica { name: String, folder: PathBuf },
}

/// The program of a shop, which `open` opens.
pub async fn main(open: impl AsyncFn(&Place) -> Result<Box<dyn Database>>) -> ExitCode {
    let outcome = match Command::parse() {
        Command::Play { place } => play(&place, open).await,
        Command::Replica { name, folder } => be_a_replica(&name, &folder, open).await,
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Plays the story; answers whether the check is well.
async fn play(place: &str, open: impl AsyncFn(&Place) -> Result<Box<dyn Database>>) -> Result<bool> {
    let folder = Folder::new("demo")?;
    let story = Story::begin();
    let (mut postgres, mut mariadb) = (None, None);
    let place = match place {
        "sqlite" => Place::Sqlite(folder.path().join("shop.db")),
        "postgres" => {
            Program::Postgres.ensure()?;
            let postgres = postgres.insert(Postgres::start(&[("fsync", "on")])?);
            story.tell("demo", &format!("a private PostgreSQL server listens on {}", postgres.address()));
            Place::on_server(postgres.url("postgres"))?
        }
        "mariadb" => {
            Program::MariaDb.ensure()?;
            let mariadb = mariadb.insert(MariaDb::start(&[("innodb_flush_method", "fsync")])?);
            story.tell("demo", &format!("a private MariaDB server listens on {}", mariadb.address()));
            Place::on_server(mariadb.url("mysql"))?
        }
        url => Place::on_server(url.to_owned())?,
    };
    let database = open(&place).await?;
    database.create().await?;
    let outcome = unless_interrupted(scenes::play(&story, &place, &*database, folder.path())).await;
    let cleaned = database.remove().await;
    let well = outcome?;
    cleaned.context("cannot drop the demo's schema")?;
    Ok(well)
}

/// Relays, until the standard input ends.
async fn be_a_replica(
    name: &str,
    folder: &std::path::Path,
    open: impl AsyncFn(&Place) -> Result<Box<dyn Database>>,
) -> Result<bool> {
    let Ok(place) = std::env::var(place::PLACE) else { bail!("the demo starts its replicas by itself") };
    relay::run(name, folder, open(&place.parse()?).await?.store()?).await?;
    Ok(true)
}
