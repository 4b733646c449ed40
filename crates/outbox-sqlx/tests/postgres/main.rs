//! The PostgreSQL store: every test of the suite, the laws, and what is sqlx's own.
#![cfg(feature = "postgres")]

mod advice;
mod append;
mod create;
mod driver;
mod holder;
mod laws;
mod plans;
mod pooler;
mod wake;
mod watermark_plans;
mod watermark_writers;

outbox_suite::postgres_suite!(driver::OnSqlx);
