//! Marking under the lock, and who unlocks when nobody waits for it any more.

use std::thread;
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection};

use super::connection::Lent;
use super::error::is_busy;
use super::hold::Hold;

/// The first pause before a busy database is asked again; it doubles up to the last one.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LAST_PAUSE: Duration = Duration::from_millis(50);

/// A mark that may be running, with the tenant that it runs under.
///
/// Dropped while the driver's thread may still be marking, it hands tenant and connection to a thread that
/// waits for the driver: a tenant freed earlier could be claimed, and its rows marked behind the new holder's
/// back. A thread, since the runtime may be what ends.
pub(super) struct Marking {
    connection: Lent,
    hold: Option<Hold>,
    running: bool,
}

impl Marking {
    /// Nothing runs yet.
    pub(super) fn new(connection: Lent, hold: Hold) -> Self {
        Self { connection, hold: Some(hold), running: false }
    }

    /// Runs the statement until it is done or fails for another reason than that the database is busy with a
    /// longer write; answers how many rows it marked.
    ///
    /// # Cancellation safety
    /// The statement in flight may still mark its rows; no further one starts.
    pub(super) async fn run(&mut self, statement: &str, ids: &str) -> sqlx::Result<u64> {
        let mut pause = FIRST_PAUSE;
        loop {
            let query = sqlx::query(AssertSqlSafe(statement)).bind(ids.to_owned());
            self.running = true;
            let outcome = query.execute(self.connection.get()?).await;
            self.running = false;
            match outcome {
                Err(error) if is_busy(&error) => tokio::time::sleep(pause).await,
                outcome => return outcome.map(|done| done.rows_affected()),
            }
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }
}

impl Drop for Marking {
    fn drop(&mut self) {
        if !self.running {
            return;
        }
        let (mut connection, hold) = (self.connection.take(), self.hold.take());
        let runtime = connection.runtime();
        // The driver takes its commands one after the other: it answers a ping once the statement has ended.
        // Waiting for that needs no timer and no socket, so it works on a runtime that was shut down, too.
        let wait = move || {
            if let Ok(driver) = connection.get() {
                // An error means that the driver's thread is gone, and the statement with it.
                let _ = runtime.block_on(driver.ping());
            }
            drop(hold);
        };
        // Without a thread nobody can wait: the tenant is freed here, with what was moved into the closure.
        let _ = thread::Builder::new().name("outbox-sqlite-mark".to_owned()).spawn(wait);
    }
}
