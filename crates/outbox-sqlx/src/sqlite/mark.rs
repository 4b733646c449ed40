//! Marking under the lock, and who unlocks when nobody waits for it any more.

use outbox_sql::driver::Question;
use outbox_sql::sqlite::{Hold, Pauses};
use sqlx::Connection;

use super::connection::Lent;
use super::driver::query;
use super::error::is_busy;

/// A mark that may be running, with the tenant that it runs under.
///
/// Dropped while the driver's thread may still be marking, it has the tenant freed when that is through.
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
    pub(super) async fn run(&mut self, mark: &Question<'_>) -> sqlx::Result<u64> {
        let mut pauses = Pauses::default();
        loop {
            let query = query(mark);
            self.running = true;
            let outcome = query.execute(self.connection.get()?).await;
            self.running = false;
            match outcome {
                Err(error) if is_busy(&error) => tokio::time::sleep(pauses.next_pause()).await,
                outcome => return outcome.map(|done| done.rows_affected()),
            }
        }
    }
}

impl Drop for Marking {
    fn drop(&mut self) {
        let (true, Some(hold)) = (self.running, self.hold.take()) else { return };
        let mut connection = self.connection.take();
        let runtime = connection.runtime();
        // The driver takes its commands one after the other: it answers a ping once the statement has ended.
        // Waiting for that needs no timer and no socket, so it works on a runtime that was shut down, too.
        hold.free_after(move || {
            if let Ok(driver) = connection.get() {
                // An error means that the driver's thread is gone, and the statement with it.
                let _ = runtime.block_on(driver.ping());
            }
        });
    }
}
