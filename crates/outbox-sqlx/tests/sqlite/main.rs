//! The SQLite store: the laws, the faults, and what is pinned.
//!
//! The other ORM's store is put through the same tests: they know it by what `driver` says.

#![cfg(feature = "sqlite")]

mod bad_input;
mod check;
mod conformance;
mod driver;
mod harness;
mod lock_file;
mod memory;
mod migration;
mod plans;
mod pool;
mod processes;
mod runtime;
mod settle;
mod support;
