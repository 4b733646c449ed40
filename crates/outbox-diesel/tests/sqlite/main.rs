//! The SQLite store: every test of the suite, the laws, and what is Diesel's own.
//!
//! The tests' own looks at the database are sqlx's.

#![cfg(all(feature = "sqlite", feature = "bb8", feature = "deadpool"))]

mod append;
mod driver;
mod laws;
mod memory;
mod migration;
mod on_bb8;
mod on_deadpool;
mod pool;
mod together;
mod turns;

outbox_suite::sqlite_suite!(driver::OnDiesel);
