//! The default table as Diesel's `table!`, for queries of your own.

diesel::table! {
    /// The table that the migration makes, `outbox_message`.
    outbox_message (id) {
        /// The sequence, the order and, with the source, the deduplication key.
        id -> BigInt,
        /// Whose message it is: UTF-8.
        tenant_id -> Varbinary,
        /// What sort of message it is.
        kind -> Varchar,
        /// Which thing it is about: UTF-8.
        subject_id -> Varbinary,
        /// The content; null is the tombstone.
        payload -> Nullable<Longblob>,
        /// What travels with the message: an object of strings, as a text of JSON.
        headers -> Nullable<Text>,
        /// When it happened, in UTC.
        occurred_at -> Datetime,
        /// When it was marked, in UTC; null is pending.
        published_at -> Nullable<Datetime>,
    }
}
