//! Being woken by other processes: a connection of its own that listens.

mod session;

use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use outbox_core::RelayWaker;
use outbox_core::text::with_causes;
use outbox_sql::postgres::wake;
use outbox_sql::{InvalidTable, OutboxTable};
use sqlx::postgres::PgConnectOptions;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use self::session::Session;
use crate::runtime::runtime;

/// How often a connection is asked whether it is still there, by default; and how long it has to answer.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// The pause after a connection was lost; it doubles up to the last one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);

/// Wakes a relay when another process says that it committed something: `LISTEN`, on a connection of its own.
///
/// It is a hint and no more. The relay goes on polling, and whatever is lost while the connection is away is found
/// by the poll, or as soon as the connection is back: after each `LISTEN` the relay is woken once. At most about 200
/// times a second it is woken, however many hints there are.
///
/// A transaction pooler loses what a session listens to: give it an address that leads to the server itself.
///
/// Who gives the hint: [`PostgresNotifier`](super::PostgresNotifier), or the optional trigger of
/// [`notify_trigger_ddl`](super::PostgresTable::notify_trigger_ddl).
#[derive(Clone)]
pub struct PostgresListener {
    options: PgConnectOptions,
    channel: String,
    heartbeat: Duration,
}

impl PostgresListener {
    /// Listens for hints about this table, on a connection with these options.
    ///
    /// # Errors
    /// [`InvalidTable`] if PostgreSQL cannot hold such a table.
    pub fn new(options: PgConnectOptions, table: &OutboxTable) -> Result<Self, InvalidTable> {
        table.check(outbox_sql::Dialect::Postgres)?;
        Ok(Self { options, channel: wake::channel(table), heartbeat: HEARTBEAT })
    }

    /// Sets how long the connection may be silent before it is asked whether it is still there, and how long it then
    /// has to answer. Default 5 s; at least 1 ms. A connection that a firewall forgot is noticed within the double.
    pub fn with_heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = heartbeat.max(Duration::from_millis(1));
        self
    }

    /// Starts to listen, in a task of its own, until the answer is dropped. An unreachable server is no error: it is
    /// tried again, ever less often, up to every 5 s. The log has one line for each change.
    ///
    /// # Errors
    /// [`sqlx::Error::Configuration`] outside of a tokio runtime.
    pub fn start(self, waker: RelayWaker) -> sqlx::Result<PostgresListening> {
        let task = runtime()?.spawn(self.keep_listening(waker));
        Ok(PostgresListening { task })
    }

    async fn keep_listening(self, waker: RelayWaker) -> Infallible {
        let mut pause = FIRST_PAUSE;
        let mut told = false;
        loop {
            let begun = Instant::now();
            let error = match self.listen(&waker, &mut told).await {
                Ok(never) => return never,
                Err(error) => error,
            };
            if !told {
                told = true;
                let error = with_causes(&error);
                tracing::warn!(
                    channel = self.channel,
                    error,
                    "no hints reach the outbox relay; it polls meanwhile"
                );
            }
            if begun.elapsed() > LAST_PAUSE {
                pause = FIRST_PAUSE;
            }
            sleep(pause.mul_f64(1.0 - fastrand::f64() / 2.0)).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Listens on one connection until that is lost.
    async fn listen(&self, waker: &RelayWaker, told: &mut bool) -> sqlx::Result<Infallible> {
        let mut session = Session::open(&self.options, &self.channel).await?;
        *told = false;
        tracing::info!(channel = self.channel, "hints reach the outbox relay");
        // What was committed before the LISTEN gave no hint that could be heard.
        waker.wake();
        session.hear(&self.channel, self.heartbeat, || waker.wake()).await
    }
}

/// Without the options, which have the password.
impl fmt::Debug for PostgresListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { options: _, channel, heartbeat } = self;
        f.debug_struct("PostgresListener")
            .field("channel", channel)
            .field("heartbeat", heartbeat)
            .finish_non_exhaustive()
    }
}

/// A listener at work. Dropping it ends it, and closes its connection.
#[derive(Debug)]
#[must_use = "it stops listening when it is dropped"]
pub struct PostgresListening {
    task: JoinHandle<Infallible>,
}

impl PostgresListening {
    /// Stops, and waits until the connection is closed.
    ///
    /// # Cancellation
    /// The stop goes on by itself.
    pub async fn stop(mut self) {
        self.task.abort();
        // It ends by being aborted, and has nothing to say.
        let _ = (&mut self.task).await;
    }

    /// Whether it has ended by itself, which it does only if the runtime shuts down or has no timer.
    pub fn is_ended(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for PostgresListening {
    fn drop(&mut self) {
        self.task.abort();
    }
}
