//! One connection that listens.

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::time::Duration;

use outbox_sql::postgres::wake::IS_LISTENING;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::runtime::{Builder, Handle};
use tokio::time::{sleep, timeout};

use crate::connection::refusal;
use crate::runtime::runtime;

/// How long a connection may take to be made and to listen.
const CONNECT: Duration = Duration::from_secs(10);
/// How long hints are gathered after one that was passed on.
const REST: Duration = Duration::from_millis(5);

/// A connection that listens. Dropped, its socket is closed at once, whether or not the other side answers.
pub(super) struct Session {
    listener: Option<PgListener>,
    runtime: Handle,
}

impl Session {
    /// Connects and listens.
    ///
    /// # Cancellation
    /// Nothing is left over.
    pub(super) async fn open(options: &PgConnectOptions, channel: &str) -> sqlx::Result<Self> {
        let runtime = runtime()?;
        // sqlx listens on pooled connections only; this one stays out for good.
        let pool = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
        let pool = pool.connect_lazy_with(options.clone());
        let opening = async {
            let mut listener = tokio::select! {
                biased;
                listener = PgListener::connect_with(&pool) => listener?,
                refusal = refusal(&pool) => return Err(refusal),
            };
            // Made anew here, where it is known how often.
            listener.eager_reconnect(false);
            let mut session = Self { listener: Some(listener), runtime };
            session.listener()?.listen(channel).await?;
            Ok(session)
        };
        timeout(CONNECT, opening).await.unwrap_or_else(|_| Err(silent()))
    }

    fn listener(&mut self) -> sqlx::Result<&mut PgListener> {
        self.listener.as_mut().ok_or(sqlx::Error::WorkerCrashed)
    }

    /// Calls `hint` for what is heard, until the connection is lost.
    pub(super) async fn hear(
        &mut self,
        channel: &str,
        heartbeat: Duration,
        hint: impl Fn(),
    ) -> sqlx::Result<Infallible> {
        loop {
            match timeout(heartbeat, self.next()).await {
                Ok(heard) => {
                    heard?;
                    while let Some(another) = self.next_at_once().await {
                        another?;
                    }
                    hint();
                    sleep(REST).await;
                }
                Err(_) => timeout(heartbeat, self.ask(channel)).await.unwrap_or_else(|_| Err(silent()))?,
            }
        }
    }

    /// Waits for a notification.
    async fn next(&mut self) -> sqlx::Result<()> {
        let heard = self.listener()?.try_recv().await?;
        heard.map(drop).ok_or_else(|| sqlx::Error::Io(io::ErrorKind::ConnectionAborted.into()))
    }

    /// A notification that is there already. Without a timer, whose shortest wait is a millisecond.
    async fn next_at_once(&mut self) -> Option<sqlx::Result<()>> {
        tokio::select! {
            biased;
            heard = self.next() => Some(heard),
            () = ready(()) => None,
        }
    }

    /// Asks whether the connection is there and still listens.
    async fn ask(&mut self, channel: &str) -> sqlx::Result<()> {
        let asked = sqlx::query_scalar(IS_LISTENING).persistent(false).bind(channel);
        let listens: i64 = asked.fetch_one(self.listener()?).await?;
        if listens > 0 {
            return Ok(());
        }
        let pooled =
            "the session does not listen any more: a transaction pooler is in between, connect directly";
        Err(sqlx::Error::Protocol(pooled.to_owned()))
    }
}

fn silent() -> sqlx::Error {
    sqlx::Error::Io(io::ErrorKind::TimedOut.into())
}

impl Drop for Session {
    /// The listener's own drop leaves a task behind that takes leave of the server and waits for its answer: for
    /// very long, if the network is gone. So it is left to a runtime that ends at once, and the socket with it.
    fn drop(&mut self) {
        let Some(listener) = self.listener.take() else { return };
        let Ok(short_lived) = Builder::new_current_thread().build() else {
            let _entered = self.runtime.enter();
            return drop(listener);
        };
        let handle = short_lived.handle().clone();
        let _entered = handle.enter();
        drop(listener);
        short_lived.shutdown_background();
    }
}
