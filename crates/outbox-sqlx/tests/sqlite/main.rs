//! The SQLite store: every test of the suite, the laws, and what is sqlx's own.
#![cfg(feature = "sqlite")]

mod create;
mod ddl;
mod driver;
mod laws;
mod memory;
mod migration;
mod pool;

outbox_suite::sqlite_suite!(driver::OnSqlx);
