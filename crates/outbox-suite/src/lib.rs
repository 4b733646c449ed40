//! What every SQL store is tested with, whatever its ORM and its pool.
//!
//! A store's crate says in a driver how its stores and pools are made, and puts the whole suite of a database into a
//! test binary in one line, as `outbox_testkit::conformance!` puts the laws:
//!
//! - `outbox_suite::postgres_suite!(MyDriver);`
//! - `outbox_suite::mysql_suite!(MyDriver);`
//! - `outbox_suite::sqlite_suite!(MyDriver);`
//!
//! **A test's name leads to its file.** A test is called after the file it is in: `postgres::faults::locks::a_table…` is
//! in `src/postgres/faults/locks.rs` here, and `server::faults::order::…`, which both servers are tested with, in
//! `src/server/faults/order.rs`. What stands before that, if anything, is the module of the test binary that has the
//! driver: `on_bb8::postgres::faults::locks::a_table…`.
//!
//! **A new test** is a function in such a file, and its name in the list of its database (`src/postgres/list.rs`, …): then
//! it runs for every driver. One that is in no list is a warning of the compiler's, for nobody calls it. The functions
//! are compiled once, here, and know a store by what every store has ([`AnyStore`], `server::StorePool`).
//!
//! A test is `#[tokio::main]`, which makes of it what `#[tokio::test]` makes, less the `#[test]`: that one is in the
//! binary of each driver.
#![allow(
    clippy::missing_panics_doc,
    missing_debug_implementations,
    reason = "for tests: whatever goes wrong is a panic, and nobody prints what a test is made of"
)]

mod append;
mod list;
pub mod mysql;
pub mod postgres;
pub mod server;
pub mod sqlite;
mod store;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outbox_core::{ClaimOutcome, ClaimRequest, Claimed, Store};

pub use crate::append::AppendError;
pub use crate::store::{AnyStore, Check, Setting, of_any_server};

/// Far more than anything here takes; a test that reaches it fails.
pub const BOUND: Duration = Duration::from_secs(50);

/// Long before the deadline that an operation of a store has by default, and longer than a busy machine pauses.
pub const SOON: Duration = Duration::from_secs(15);

/// How long a law may take, however busy the machine is.
pub(crate) const LAW: Duration = Duration::from_mins(5);

/// The name of a test of the same driver, as `--exact` wants it: `sqlite::faults::processes::child`, say. `place` is what
/// `module_path!()` says where another test is.
pub(crate) fn test_named(place: &str, name: &str) -> String {
    // A test's own name is without the crate's. Behind the driver's module come a folder, a subject and a file.
    let mut place: Vec<&str> = place.split("::").skip(1).collect();
    place.truncate(place.len() - 3);
    place.push(name);
    place.join("::")
}

/// A name that no other test of this process has: tests of several drivers may share a server.
pub(crate) fn numbered(name: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{name}_{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// What a claim hands out, as soon as nobody holds its tenant: a claim that was dropped, or whose statement failed,
/// closes its session, and a server takes a moment to free what a closed session held.
pub async fn claim(store: &dyn Store, request: &ClaimRequest) -> Claimed {
    let waiting = async {
        loop {
            match store.claim(request).await.unwrap() {
                ClaimOutcome::Claimed(claimed) => return claimed,
                _ => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    };
    tokio::time::timeout(BOUND, waiting).await.unwrap_or_else(|_| panic!("it stays held: {request:?}"))
}

/// An error with what it came from.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        line = format!("{line}: {error}");
        source = error.source();
    }
    line
}
