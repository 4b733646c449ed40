//! The SQLite store: the laws, the faults, and what is pinned.
//!
//! Most of it is what outbox-sqlx's store is put through, with another `driver`: the tests' own looks at the
//! database are sqlx's in both.

#![cfg(all(feature = "sqlite", feature = "bb8", feature = "deadpool"))]
#![expect(clippy::duplicate_mod, reason = "once for each pool")]

mod append;
mod driver;
mod memory;
mod migration;
mod on_bb8;
mod on_deadpool;
mod pool;
mod together;
mod turns;

#[cfg(unix)]
#[path = "../../../outbox-sqlx/tests/sqlite/access.rs"]
mod access;
#[path = "../../../outbox-sqlx/tests/sqlite/bad_input.rs"]
mod bad_input;
#[path = "../../../outbox-sqlx/tests/sqlite/check.rs"]
mod check;
#[path = "../../../outbox-sqlx/tests/sqlite/conformance.rs"]
mod conformance;
#[path = "../../../outbox-sqlx/tests/sqlite/harness.rs"]
mod harness;
#[cfg(unix)]
#[path = "../../../outbox-sqlx/tests/sqlite/links.rs"]
mod links;
#[path = "../../../outbox-sqlx/tests/sqlite/lock_file.rs"]
mod lock_file;
#[path = "../../../outbox-sqlx/tests/sqlite/namesakes.rs"]
mod namesakes;
#[path = "../../../outbox-sqlx/tests/sqlite/plans.rs"]
mod plans;
#[path = "../../../outbox-sqlx/tests/sqlite/processes.rs"]
mod processes;
#[path = "../../../outbox-sqlx/tests/sqlite/replaced.rs"]
mod replaced;
#[path = "../../../outbox-sqlx/tests/sqlite/row_identity.rs"]
mod row_identity;
#[path = "../../../outbox-sqlx/tests/sqlite/runtime.rs"]
mod runtime;
#[path = "../../../outbox-sqlx/tests/sqlite/settle.rs"]
mod settle;
#[path = "../../../outbox-sqlx/tests/sqlite/support.rs"]
mod support;
