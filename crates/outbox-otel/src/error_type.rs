//! What something failed of, from a closed set.

use outbox_core::{Outcome, RefusalCause, RefusalClass, StoreErrorKind};

/// What an operation failed of; `None` is that it did not fail.
pub(crate) fn error_type(outcome: &Outcome<'_>) -> Option<&'static str> {
    Some(match outcome {
        Outcome::Refused { cause, .. } => refusal(*cause),
        Outcome::Failed(error) => match error.kind() {
            StoreErrorKind::Transient => "store_transient",
            StoreErrorKind::Permanent => "store_permanent",
            _ => "_OTHER",
        },
        Outcome::Abandoned => "lost",
        Outcome::Probed(_)
        | Outcome::Claimed { .. }
        | Outcome::Held
        | Outcome::Accepted
        | Outcome::Settled { .. } => return None,
        _ => "_OTHER",
    })
}

fn refusal(cause: RefusalCause) -> &'static str {
    match cause {
        RefusalCause::Publisher(RefusalClass::Unavailable) => "unavailable",
        RefusalCause::Publisher(RefusalClass::Refused) => "refused",
        RefusalCause::Publisher(RefusalClass::Rejected) => "rejected",
        RefusalCause::Deadline => "timeout",
        RefusalCause::Panic => "panic",
        _ => "_OTHER",
    }
}
