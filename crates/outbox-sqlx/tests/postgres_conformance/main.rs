//! Every law of the contract, on PostgreSQL.
#![cfg(feature = "postgres")]

#[path = "../support/driver.rs"]
mod driver;
mod harness;
#[path = "../support/postgres.rs"]
mod support;

use outbox_core::Settling;
use outbox_sqlx::postgres::Durability;

use driver::PostgresStore;
use harness::{OnPostgres, Setting, at};
use support::eager;

at!(named, "postgres", store => store);
at!(unnamed_relaxed, "postgres without named statements, relaxed", store =>
    store.without_named_statements().with_durability(Durability::Relaxed));
at!(deleting, "postgres, deleting", store => store.with_settling(Settling::Delete), "DELETE");
at!(watermark, "postgres with a watermark", store => store.with_watermark(eager()));
at!(watermark_deleting, "postgres with a watermark, deleting", store =>
    store.without_named_statements().with_settling(Settling::Delete).with_watermark(eager()), "DELETE");
