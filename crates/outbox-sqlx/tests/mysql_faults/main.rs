//! Real faults on a real MariaDB or MySQL: the whole relay, on the store, while something breaks under it.
//!
//! The tests are those of PostgreSQL, where they promise the same. One that disturbs a server has a MariaDB of its
//! own; the others have a database of their own on the server that `OUTBOX_TEST_MYSQL_URL` names.
#![cfg(feature = "mysql")]

#[path = "../support/mysql_driver.rs"]
mod driver;
#[path = "../support/mysql.rs"]
mod support;

#[path = "../postgres_faults/cancellation.rs"]
mod cancellation;
mod isolation;
#[path = "../postgres_faults/network.rs"]
mod network;
#[path = "../postgres_faults/order.rs"]
mod order;
#[path = "../postgres_faults/orderings.rs"]
mod orderings;
#[path = "../postgres_faults/pools.rs"]
mod pools;
#[path = "../postgres_faults/processes.rs"]
mod processes;
#[path = "../postgres_faults/sessions.rs"]
mod sessions;
#[path = "../postgres_faults/stage.rs"]
mod stage;
mod start;
