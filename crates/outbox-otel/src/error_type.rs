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
        | Outcome::Verified
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use outbox_core::{StoreError, StoreOperation};

    use super::*;
    use crate::names::ERROR_TYPES;

    /// Whatever fails has a type of the documented set, and each type of it but the last has its failure.
    #[test]
    fn types_are_a_closed_set() {
        let transient = StoreError::transient(StoreOperation::Claim, "it restarts");
        let permanent = StoreError::permanent(StoreOperation::Claim, "no such table");
        let store = [&transient, &permanent].map(|error| error_type(&Outcome::Failed(error)));
        let refusals = [RefusalClass::Unavailable, RefusalClass::Refused, RefusalClass::Rejected]
            .map(RefusalCause::Publisher)
            .into_iter()
            .chain([RefusalCause::Deadline, RefusalCause::Panic])
            .map(refusal);
        let found: BTreeSet<&str> =
            store.into_iter().chain([error_type(&Outcome::Abandoned)]).flatten().chain(refusals).collect();
        let documented: BTreeSet<&str> = ERROR_TYPES.iter().map(|(name, _)| *name).collect();
        let other = BTreeSet::from(["_OTHER"]);
        assert_eq!(documented.difference(&found).copied().collect::<BTreeSet<_>>(), other);
        assert!(found.is_subset(&documented));
    }

    /// What ended well has none.
    #[test]
    fn what_ended_well_has_none() {
        for outcome in [Outcome::Probed(&[]), Outcome::Held, Outcome::Accepted, Outcome::Verified] {
            assert_eq!(error_type(&outcome), None, "{outcome:?}");
        }
    }
}
