//! On bb8.

#[path = "bb8.rs"]
pub(crate) mod driver;

#[path = "../../../outbox-sqlx/tests/postgres_conformance/harness.rs"]
mod harness;

#[path = "../../../outbox-sqlx/tests/support/postgres.rs"]
pub(crate) mod support;

#[path = "../../../outbox-sqlx/tests/postgres_faults/cancellation.rs"]
mod cancellation;
#[path = "../../../outbox-sqlx/tests/postgres_faults/durability.rs"]
mod durability;
#[path = "../../../outbox-sqlx/tests/postgres_faults/locks.rs"]
mod locks;
#[path = "../../../outbox-sqlx/tests/postgres_faults/network.rs"]
mod network;
#[path = "../../../outbox-sqlx/tests/postgres_faults/order.rs"]
mod order;
#[path = "../../../outbox-sqlx/tests/postgres_faults/pools.rs"]
mod pools;
#[path = "../../../outbox-sqlx/tests/postgres_faults/processes.rs"]
mod processes;
#[path = "../../../outbox-sqlx/tests/postgres_faults/read_only.rs"]
mod read_only;
#[path = "../../../outbox-sqlx/tests/postgres_faults/rights.rs"]
mod rights;
#[path = "../../../outbox-sqlx/tests/postgres_faults/rows.rs"]
mod rows;
#[path = "../../../outbox-sqlx/tests/postgres_faults/sessions.rs"]
mod sessions;
#[path = "../../../outbox-sqlx/tests/postgres_faults/settings.rs"]
mod settings;
#[path = "../../../outbox-sqlx/tests/postgres_faults/stage.rs"]
mod stage;
#[path = "../../../outbox-sqlx/tests/postgres_faults/start.rs"]
mod start;

#[path = "../../../outbox-sqlx/tests/postgres_store/bad_input.rs"]
mod bad_input;
#[path = "../../../outbox-sqlx/tests/postgres_store/cancel.rs"]
mod cancel;
#[path = "../../../outbox-sqlx/tests/postgres_store/check.rs"]
mod check;
#[path = "../../../outbox-sqlx/tests/postgres_store/guards.rs"]
mod guards;
#[path = "../../../outbox-sqlx/tests/postgres_store/names.rs"]
mod names;
#[path = "../../../outbox-sqlx/tests/postgres_store/proxy.rs"]
mod proxy;
#[path = "../../../outbox-sqlx/tests/postgres_store/reading.rs"]
mod reading;
#[path = "../../../outbox-sqlx/tests/postgres_store/replaced.rs"]
mod replaced;
#[path = "../../../outbox-sqlx/tests/postgres_store/search_path.rs"]
mod search_path;
#[path = "../../../outbox-sqlx/tests/postgres_store/settling.rs"]
mod settling;
#[path = "../../../outbox-sqlx/tests/postgres_store/turns.rs"]
mod turns;
#[path = "../../../outbox-sqlx/tests/postgres_store/watermark.rs"]
mod watermark;

use outbox_core::Settling;

use driver::PostgresStore;
use harness::{OnPostgres, Setting, at};
use support::eager;

at!(conformance, "postgres on diesel and bb8", store => store);
at!(deleting, "postgres on diesel and bb8, deleting", store => store.with_settling(Settling::Delete), "DELETE");
at!(with_watermark, "postgres on diesel and bb8, with a watermark", store => store.with_watermark(eager()));
