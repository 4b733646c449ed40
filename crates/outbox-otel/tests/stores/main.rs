//! The observers over real databases: the writer's trace through a row, sums against the table, and health
//! over HTTP while the database goes.

mod health;
#[path = "../otel/support/points.rs"]
#[allow(dead_code, reason = "shared with another test binary")]
mod points;
mod postgres;
mod sqlite;
mod sums;
mod trace;

#[path = "../otel/support/spans.rs"]
mod spans;
