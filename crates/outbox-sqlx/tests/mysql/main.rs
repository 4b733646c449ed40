//! The MySQL store: every test of the suite, the laws, and what is sqlx's own.
#![cfg(feature = "mysql")]

mod append;
mod create;
mod driver;
mod laws;

outbox_suite::mysql_suite!(driver::OnSqlx);
