//! On bb8.

#[path = "bb8.rs"]
pub(crate) mod driver;

#[path = "../../../outbox-sqlx/tests/mysql_conformance/harness.rs"]
mod harness;

#[path = "../../../outbox-sqlx/tests/support/mysql.rs"]
pub(crate) mod support;

#[path = "../../../outbox-sqlx/tests/mysql_faults/isolation.rs"]
mod isolation;
#[path = "../../../outbox-sqlx/tests/mysql_faults/start.rs"]
mod start;

#[path = "../../../outbox-sqlx/tests/postgres_faults/cancellation.rs"]
mod cancellation;
#[path = "../../../outbox-sqlx/tests/postgres_faults/network.rs"]
mod network;
#[path = "../../../outbox-sqlx/tests/postgres_faults/order.rs"]
mod order;
#[path = "../../../outbox-sqlx/tests/postgres_faults/orderings.rs"]
mod orderings;
#[path = "../../../outbox-sqlx/tests/postgres_faults/pools.rs"]
mod pools;
#[path = "../../../outbox-sqlx/tests/postgres_faults/processes.rs"]
mod processes;
#[path = "../../../outbox-sqlx/tests/postgres_faults/sessions.rs"]
mod sessions;
#[path = "../../../outbox-sqlx/tests/postgres_faults/stage.rs"]
mod stage;

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
#[path = "../../../outbox-sqlx/tests/mysql_store/replaced.rs"]
mod replaced;
#[path = "../../../outbox-sqlx/tests/mysql_store/rows.rs"]
mod rows;
#[path = "../../../outbox-sqlx/tests/mysql_store/turns.rs"]
mod turns;

use outbox_core::Settling;

use driver::MySqlStore;
use harness::{OnMySql, Setting, at};

at!(marking, "mysql on diesel and bb8", store => store);
at!(deleting, "mysql on diesel and bb8, deleting", store => store.with_settling(Settling::Delete), "DELETE");
