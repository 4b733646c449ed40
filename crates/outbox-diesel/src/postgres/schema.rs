//! The default table as Diesel's `table!`, for queries of your own.

diesel::table! {
    /// The table that the migration makes, `outbox_message` in the schema `public`.
    outbox_message (id) {
        /// The sequence, the order and, with the source, the deduplication key.
        id -> Int8,
        /// Whose message it is.
        tenant_id -> Text,
        /// What sort of message it is.
        kind -> Text,
        /// Which thing it is about.
        subject_id -> Text,
        /// The content; null is the tombstone.
        payload -> Nullable<Bytea>,
        /// What travels with the message: an object of strings.
        headers -> Nullable<Jsonb>,
        /// When it happened.
        occurred_at -> Timestamptz,
        /// When it was marked; null is pending.
        published_at -> Nullable<Timestamptz>,
    }
}
