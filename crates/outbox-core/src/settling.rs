//! What becomes of a published row.

/// What a store that offers the choice does with the row of a published message.
///
/// Replicas on one table may differ: what one has marked or deleted is not pending for any other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Settling {
    /// Marks it as published and keeps it: a history, to be purged by somebody. The default.
    #[default]
    Mark,
    /// Deletes it: a fraction of the work, and no history. Its id is not issued again.
    Delete,
}
