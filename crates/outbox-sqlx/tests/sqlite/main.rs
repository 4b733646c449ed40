//! The SQLite store: the laws, the faults, and what is pinned.
//!
//! The other ORM's store is put through the same tests: they know it by what `driver` says.

#![cfg(feature = "sqlite")]

#[cfg(unix)]
mod access;
mod bad_input;
mod check;
mod conformance;
mod ddl;
mod driver;
mod harness;
#[cfg(unix)]
mod links;
mod lock_file;
mod memory;
mod migration;
mod namesakes;
mod plans;
mod pool;
mod processes;
mod replaced;
mod row_identity;
mod runtime;
mod settle;
mod support;
