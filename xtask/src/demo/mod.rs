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
use servers::install::Program;
use servers::{Folder, MariaDb, Postgres};

use self::database::{Orm, Place, Target};
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
    /// Runs on this PostgreSQL, MariaDB or MySQL server, in a schema of its own that is dropped at the end.
    /// Default: SQLite, in a temporary file.
    #[arg(long, value_name = "postgres://… or mysql://…", group = "server")]
    database_url: Option<String>,
    /// Runs on a private PostgreSQL server, started for this and stopped at the end.
    #[arg(long, group = "server")]
    postgres: bool,
    /// Runs on a private MariaDB server, started for this and stopped at the end.
    #[arg(long, group = "server")]
    mariadb: bool,
    /// The ORM of the application and of the relay.
    #[arg(long, value_enum, default_value_t = Orm::Sqlx)]
    orm: Orm,
    /// Another story, on SQLite: an HTTP request's trace through the row to the subscriber, and the metrics, as
    /// an OTLP receiver gets them.
    #[arg(long, conflicts_with_all = ["server", "orm"])]
    otel: bool,
}

impl Options {
    /// The features that these options need, if this `xtask` has not all of them.
    fn missing_features(&self) -> Option<String> {
        let by_url = |scheme: &str| self.database_url.as_ref().is_some_and(|url| url.starts_with(scheme));
        let mysql = self.mariadb || by_url("mysql:") || by_url("mariadb:");
        let needed = [
            (self.otel, cfg!(feature = "otel"), "otel"),
            (mysql, cfg!(feature = "demo-mysql"), "demo-mysql"),
            (self.orm == Orm::Diesel, cfg!(feature = "demo-diesel"), "demo-diesel"),
        ];
        let needed: Vec<_> = needed.into_iter().filter(|(needs, ..)| *needs).collect();
        let all_are_there = needed.iter().all(|(_, has, _)| *has);
        (!all_are_there).then(|| needed.iter().map(|(.., feature)| *feature).collect::<Vec<_>>().join(","))
    }
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
    if let Some(features) = options.missing_features() {
        return run_with(&features);
    }
    #[cfg(feature = "otel")]
    if options.otel {
        return otel::run();
    }
    let folder = Folder::new("demo")?;
    let story = Story::begin();
    let (mut postgres, mut mariadb) = (None, None);
    let place = match options.database_url {
        Some(url) => Place::on_server(url)?,
        None if options.postgres => {
            Program::Postgres.ensure()?;
            let postgres = postgres.insert(Postgres::start(&[("fsync", "on")])?);
            story.tell("demo", &format!("a private PostgreSQL server listens on {}", postgres.address()));
            Place::on_server(postgres.url("postgres"))?
        }
        None if options.mariadb => {
            Program::MariaDb.ensure()?;
            let mariadb = mariadb.insert(MariaDb::start(&[("innodb_flush_method", "fsync")])?);
            story.tell("demo", &format!("a private MariaDB server listens on {}", mariadb.address()));
            Place::on_server(mariadb.url("mysql"))?
        }
        None => Place::Sqlite(folder.path().join("shop.db")),
    };
    let target = Target { orm: options.orm, place };
    runtime()?.block_on(async {
        let database = database::open(&target).await?;
        database.create().await?;
        let outcome = tokio::select! {
            outcome = scenes::play(&story, &target, &*database, folder.path()) => outcome,
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

/// Runs the same command in an `xtask` that can. What few runs need is not built for the others.
fn run_with(features: &str) -> Result<bool> {
    let mut command =
        crate::process::cargo(&["run", "--quiet", "--package", "xtask", "--features", features, "--"]);
    Ok(crate::process::run(command.args(std::env::args_os().skip(1)))?.success())
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
