//! The default table as Diesel's `table!`, for queries of your own.

diesel::table! {
    /// The table that the migration makes, `outbox_message`.
    outbox_message (id) {
        /// The sequence, the order and, with the source, the deduplication key.
        id -> BigInt,
        /// Whose message it is.
        tenant_id -> Text,
        /// What sort of message it is.
        kind -> Text,
        /// Which thing it is about.
        subject_id -> Text,
        /// The content; null is the tombstone.
        payload -> Nullable<Binary>,
        /// What travels with the message: a JSON object of strings.
        headers -> Nullable<Text>,
        /// When it happened, in microseconds since 1970.
        occurred_at -> BigInt,
        /// When it was marked, in microseconds since 1970; null is pending.
        published_at -> Nullable<BigInt>,
    }
}
