//! Conformance suite for outbox stores and publishers, with fault injection, an order recorder and a manual clock.
