//! A process that writes, beside the one with the relay.

use std::process::Stdio;
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use outbox_core::{NewMessage, TenantId};
use outbox_memory::MemoryStore;
use outbox_sqlx::OutboxTable;
use outbox_sqlx::mysql::MySqlTable;
use outbox_sqlx::postgres::{PostgresNotifier, PostgresTable};
use outbox_sqlx::sqlite::SqliteTable;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, MySqlConnection, PgConnection, PgPool, SqliteConnection};
use tokio::process::{Child, Command};

use super::arrivals::{Written, now};

/// The environment variable with the database's address.
const DATABASE: &str = "OUTBOX_BENCH_DATABASE";
/// Its tenant.
pub(super) const TENANT: &str = "tenant-0";
/// The name of the command that this process runs as.
const COMMAND: &str = "writer";

/// What a writer is to do; each of its messages has a transaction of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    /// So many messages, one after the other, with about this pause.
    Steady { count: usize, pause: Duration },
    /// As many messages as can be, by so many connections at once.
    Flood { writers: usize, time: Duration },
}

/// Whether a writer tells the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    /// No, or a trigger does.
    Nothing,
    /// With a notifier, outside of its transactions.
    Notifier,
}

/// The process, at work.
#[derive(Debug)]
pub(super) struct Writer(Child);

impl Writer {
    /// Starts it.
    pub(super) fn start(database: &str, job: Job, hint: Hint) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(COMMAND).arg(to_text(job, hint)).env(DATABASE, database);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        Ok(Self(command.spawn().context("cannot start a writer")?))
    }

    /// Waits for its end and answers what it committed: each message of a steady writer, and the number of all.
    pub(super) async fn finish(self) -> Result<(Vec<Written>, u64)> {
        let output = self.0.wait_with_output().await?;
        ensure!(output.status.success(), "a writer ended with {}", output.status);
        let text = String::from_utf8(output.stdout)?;
        let (mut written, mut all) = (Vec::new(), 0);
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("all", count)) => all = count.parse()?,
                Some((id, nanos)) => {
                    written.push(Written { id: id.parse()?, at: Duration::from_nanos(nanos.parse()?) });
                }
                None => bail!("a writer said {line:?}"),
            }
        }
        Ok((written, all))
    }
}

/// Does what the bench wants of this process.
///
/// # Errors
/// If the database does not take it.
pub fn write(order: &str) -> Result<bool> {
    let database = std::env::var(DATABASE).context("the bench starts its writers by itself")?;
    let (job, hint) = from_text(order)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match job {
            Job::Steady { count, pause } => steady(&database, hint, count, pause).await,
            Job::Flood { writers, time } => flood(&database, hint, writers, time).await,
        }
    })?;
    Ok(true)
}

async fn steady(database: &str, hint: Hint, count: usize, pause: Duration) -> Result<()> {
    let mut outbox = Outbox::open(database).await?;
    let notifier = notifier(database, hint).await?;
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..count {
        // Not in step with the polls.
        tokio::time::sleep(pause.mul_f64(0.5 + random.f64())).await;
        let id = outbox.append().await?;
        println!("{id} {}", now().as_nanos());
        if let Some(notifier) = &notifier {
            notifier.notify();
        }
    }
    // The last hint is on its way.
    tokio::time::sleep(pause).await;
    println!("all {count}");
    Ok(())
}

async fn flood(database: &str, hint: Hint, writers: usize, time: Duration) -> Result<()> {
    let notifier = notifier(database, hint).await?;
    let mut outboxes = Vec::new();
    for _ in 0..writers {
        outboxes.push(Outbox::open(database).await?);
    }
    let end = Instant::now() + time;
    let tasks: Vec<_> = outboxes
        .into_iter()
        .map(|mut outbox| {
            let notifier = notifier.clone();
            tokio::spawn(async move {
                let mut count = 0_u64;
                while Instant::now() < end {
                    outbox.append().await?;
                    count += 1;
                    if let Some(notifier) = &notifier {
                        notifier.notify();
                    }
                }
                anyhow::Ok(count)
            })
        })
        .collect();
    let mut all = 0;
    for task in tasks {
        all += task.await??;
    }
    println!("all {all}");
    Ok(())
}

async fn notifier(database: &str, hint: Hint) -> Result<Option<PostgresNotifier>> {
    if hint == Hint::Nothing {
        return Ok(None);
    }
    let pool = PgPool::connect(database).await?;
    Ok(Some(PostgresNotifier::start(pool, &PostgresTable::new(OutboxTable::default())?)?))
}

/// What to append with: a connection, but for the store in memory.
pub(super) enum Outbox {
    Postgres(PgConnection, PostgresTable),
    Sqlite(SqliteConnection, SqliteTable),
    MySql(MySqlConnection, MySqlTable),
    Memory(MemoryStore),
}

impl Outbox {
    pub(super) async fn open(database: &str) -> Result<Self> {
        let table = OutboxTable::default();
        if database.starts_with("sqlite:") {
            let options = SqliteConnectOptions::from_str(database)?.busy_timeout(Duration::from_secs(5));
            return Ok(Self::Sqlite(options.connect().await?, SqliteTable::new(table)?));
        }
        if database.starts_with("mysql:") {
            let options = sqlx::mysql::MySqlConnectOptions::from_str(database)?;
            return Ok(Self::MySql(
                options.connect().await?,
                MySqlTable::new(table.with_schema(super::mariadb::DATABASE))?,
            ));
        }
        let options = sqlx::postgres::PgConnectOptions::from_str(database)?;
        Ok(Self::Postgres(options.connect().await?, PostgresTable::new(table)?))
    }

    /// Appends a message in a transaction of its own, and answers its id.
    pub(super) async fn append(&mut self) -> Result<i64> {
        let message = NewMessage::new(
            TenantId::new(TENANT)?,
            "order.placed",
            "order-1",
            vec![b' '; super::bed::PAYLOAD],
        );
        let id = match self {
            Self::Postgres(connection, table) => table.append(connection, &message).await?,
            Self::Sqlite(connection, table) => table.append(connection, &message).await?,
            Self::MySql(connection, table) => table.append(connection, &message).await?,
            Self::Memory(store) => store.append(message),
        };
        Ok(id.get())
    }
}

fn to_text(job: Job, hint: Hint) -> String {
    let hint = if hint == Hint::Nothing { "nothing" } else { "notifier" };
    match job {
        Job::Steady { count, pause } => format!("steady {count} {} {hint}", pause.as_millis()),
        Job::Flood { writers, time } => format!("flood {writers} {} {hint}", time.as_millis()),
    }
}

fn from_text(text: &str) -> Result<(Job, Hint)> {
    let words: Vec<&str> = text.split(' ').collect();
    let [kind, count, millis, hint] = words[..] else { bail!("{text:?} is no order for a writer") };
    let (count, time) = (count.parse()?, Duration::from_millis(millis.parse()?));
    let job = match kind {
        "steady" => Job::Steady { count, pause: time },
        "flood" => Job::Flood { writers: count, time },
        _ => bail!("{text:?} is no order for a writer"),
    };
    Ok((job, if hint == "notifier" { Hint::Notifier } else { Hint::Nothing }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer understands what it is told.
    #[test]
    fn an_order_survives_the_way_to_the_writer() {
        let pause = Duration::from_millis(100);
        let jobs = [Job::Steady { count: 3, pause }, Job::Flood { writers: 8, time: pause }];
        for (job, hint) in jobs.into_iter().zip([Hint::Nothing, Hint::Notifier]) {
            assert_eq!(from_text(&to_text(job, hint)).unwrap(), (job, hint));
        }
        assert!(from_text("steady 1").is_err());
        assert!(from_text("rest 1 1 nothing").is_err());
    }
}
