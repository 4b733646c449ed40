//! Every law of the contract, on PostgreSQL.

use outbox_core::Settling;
use outbox_sqlx::postgres::Durability;
use outbox_suite::postgres::eager;
use outbox_suite::postgres_laws;

use super::driver::OnSqlx;

postgres_laws!(named, OnSqlx, "postgres", store => store);
postgres_laws!(unnamed_relaxed, OnSqlx, "postgres without named statements, relaxed", store =>
    store.without_named_statements().with_durability(Durability::Relaxed));
postgres_laws!(deleting, OnSqlx, "postgres, deleting", store => store.with_settling(Settling::Delete), "DELETE");
postgres_laws!(watermark, OnSqlx, "postgres with a watermark", store => store.with_watermark(eager()));
postgres_laws!(watermark_deleting, OnSqlx, "postgres with a watermark, deleting", store =>
    store.without_named_statements().with_settling(Settling::Delete).with_watermark(eager()), "DELETE");
