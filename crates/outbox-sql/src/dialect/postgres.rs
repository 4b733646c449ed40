//! PostgreSQL: every statement of the store, named for what it does.
