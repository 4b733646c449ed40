//! The command `demo`: its options; what is shown is a package of its own for each ORM.

use anyhow::Result;

use crate::process;

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

/// Which of our crates the stores and the transactions are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Orm {
    /// outbox-sqlx.
    Sqlx,
    /// outbox-diesel.
    Diesel,
}

/// Builds the demo and runs it; answers whether the check is well.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let package = match (options.otel, options.orm) {
        (true, _) => "demo-otel",
        (false, Orm::Sqlx) => "demo",
        (false, Orm::Diesel) => "demo-diesel",
    };
    let mut command = process::cargo(&["run", "--quiet", "--package", package, "--"]);
    if !options.otel {
        command.args(["play", options.place()]);
    }
    Ok(process::run(&mut command)?.success())
}

impl Options {
    fn place(&self) -> &str {
        match &self.database_url {
            Some(url) => url,
            None if self.postgres => "postgres",
            None if self.mariadb => "mariadb",
            None => "sqlite",
        }
    }
}
