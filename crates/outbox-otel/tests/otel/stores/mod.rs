//! The observers over real databases: the writer's trace through a row, sums against the table, and health
//! over HTTP while the database goes.

mod health;
mod postgres;
mod sqlite;
mod sums;
mod trace;
