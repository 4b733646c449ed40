//! What is MySQL's and MariaDB's own: the guards of the claim, its row, plans, names, sessions and faults.
//!
//! A test that disturbs a server has one of its own; the others have a database of their own on the server that
//! `OUTBOX_TEST_MYSQL_URL` names.
#![cfg(feature = "mysql")]

mod append;
mod cancel;
mod check;
#[path = "../support/mysql_driver.rs"]
mod driver;
mod faults;
mod guards;
mod names;
mod plans;
mod replaced;
mod rows;
#[path = "../support/mysql.rs"]
mod support;
mod turns;
