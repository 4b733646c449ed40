//! On deadpool.

#[path = "deadpool.rs"]
pub(crate) mod driver;

#[path = "../../../outbox-sqlx/tests/mysql_conformance/harness.rs"]
mod harness;

#[path = "../../../outbox-sqlx/tests/support/mysql.rs"]
pub(crate) mod support;

#[path = "../../../outbox-sqlx/tests/mysql_store/cancel.rs"]
mod cancel;
#[path = "../../../outbox-sqlx/tests/mysql_store/check.rs"]
mod check;
#[path = "../../../outbox-sqlx/tests/mysql_store/faults.rs"]
mod faults;
#[path = "../../../outbox-sqlx/tests/mysql_store/guards.rs"]
mod guards;
#[path = "../../../outbox-sqlx/tests/mysql_store/names.rs"]
mod names;
#[path = "../../../outbox-sqlx/tests/mysql_store/plans.rs"]
mod plans;
#[path = "../../../outbox-sqlx/tests/mysql_store/rows.rs"]
mod rows;
#[path = "../../../outbox-sqlx/tests/mysql_store/turns.rs"]
mod turns;

use driver::MySqlStore;
use harness::{OnMySql, Setting, at};

at!(marking, "mysql on diesel and deadpool", store => store);
