//! Every law of the contract, on MySQL or MariaDB.
#![cfg(feature = "mysql")]

#[path = "../support/mysql_driver.rs"]
mod driver;
mod harness;
#[path = "../support/mysql.rs"]
mod support;

use outbox_core::Settling;

use driver::MySqlStore;
use harness::{OnMySql, Setting, at};

at!(marking, "mysql", store => store);
at!(deleting, "mysql, deleting", store => store.with_settling(Settling::Delete), "DELETE");
