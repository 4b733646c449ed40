//! Outbox stores on sqlx: PostgreSQL and SQLite.
