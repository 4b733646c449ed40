//! The main job, to look at: orders in transactions, two relays that take turns, a refusal, a SIGKILL, a check.

mod control;
mod crew;
mod database;
mod journal;
#[cfg(feature = "otel")]
mod otel;
mod replica;
mod scenes;
mod story;
mod summary;
mod verify;
mod writer;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use xtask::servers::install::Program;
use xtask::servers::{Folder, Postgres};

use self::database::{Database, Target};
use self::story::Story;
use crate::interrupt;

/// Shows the main job and checks it at the end; exit code 1 if the check fails. Takes about 15 seconds.
///
/// A writer places orders in transactions. Two replica processes relay them and take turns. The publisher
/// refuses one order for a while. One replica is killed with SIGKILL in the middle of a batch; the other takes
/// over. At the end: every committed order was published, none that was rolled back, in order per tenant,
/// twice only what the killed replica had published and not yet marked.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Runs on this PostgreSQL server, in a schema of its own that is dropped at the end. Default: SQLite, in
    /// a temporary file.
    #[arg(long, value_name = "postgres://…", conflicts_with = "postgres")]
    database_url: Option<String>,
    /// Runs on a private PostgreSQL server, started for this and stopped at the end.
    #[arg(long)]
    postgres: bool,
    /// Another story, on SQLite: an HTTP request's trace through the row to the subscriber, and the metrics, as
    /// an OTLP receiver gets them.
    #[arg(long, conflicts_with_all = ["database_url", "postgres"])]
    otel: bool,
}

/// What a replica process is told; the database comes in an environment variable, since it may have a
/// password.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplicaOptions {
    #[arg(long)]
    name: String,
    #[arg(long)]
    folder: PathBuf,
}

/// Runs the demo; answers whether the check is well.
pub(crate) fn run(options: Options) -> Result<bool> {
    if options.otel {
        return run_otel();
    }
    let folder = Folder::new("demo")?;
    let story = Story::begin();
    let mut server = None;
    let target = match options.database_url {
        Some(url) => Target::postgres(url)?,
        None if options.postgres => {
            Program::Postgres.ensure()?;
            let postgres = server.insert(Postgres::start(&[("fsync", "on")])?);
            story.tell("demo", &format!("a private PostgreSQL server listens on {}", postgres.address()));
            Target::postgres(postgres.url("postgres"))?
        }
        None => Target::Sqlite(folder.path().join("shop.db")),
    };
    runtime()?.block_on(async {
        let database = Database::open(&target).await?;
        database.create().await?;
        let outcome = tokio::select! {
            outcome = scenes::play(&story, &target, &database, folder.path()) => outcome,
            interrupted = interrupt::requested() => {
                interrupted?;
                Err(anyhow::anyhow!("interrupted"))
            }
        };
        let cleaned = database.remove().await;
        let well = outcome?;
        cleaned.context("cannot drop the demo's schema")?;
        Ok(well)
    })
}

#[cfg(feature = "otel")]
fn run_otel() -> Result<bool> {
    otel::run()
}

/// Runs the demo in an `xtask` that can.
#[cfg(not(feature = "otel"))]
fn run_otel() -> Result<bool> {
    let arguments = ["run", "--quiet", "--package", "xtask", "--features", "otel", "--", "demo", "--otel"];
    Ok(crate::process::run(&mut crate::process::cargo(&arguments))?.success())
}

/// Runs a replica, until its standard input ends.
pub(crate) fn run_replica(options: &ReplicaOptions) -> Result<bool> {
    let Ok(target) = std::env::var(database::TARGET) else { bail!("the demo starts its replicas by itself") };
    runtime()?.block_on(replica::run(&options.name, &options.folder, &target.parse()?))?;
    Ok(true)
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}
