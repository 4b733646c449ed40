//! Real faults on a real PostgreSQL: the whole relay, on the store, while something breaks under it.
//!
//! A test that disturbs a server has one of its own; the others have a database of their own on the server that
//! `OUTBOX_TEST_POSTGRES_URL` names.
#![cfg(feature = "postgres")]

mod cancellation;
#[path = "../support/driver.rs"]
mod driver;
mod durability;
mod locks;
mod network;
mod order;
mod orderings;
mod pooler;
mod pools;
mod processes;
mod read_only;
mod rights;
mod rows;
mod sessions;
mod settings;
mod stage;
mod start;
mod statistics;
#[path = "../support/postgres.rs"]
mod support;
mod wake;
