//! The outbox relay's reference store, in memory: transactions, replicas and a clock for tests.
