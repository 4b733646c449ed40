//! What the outbox's SQL stores share: table description, statements, lock keys and DDL; no driver.
