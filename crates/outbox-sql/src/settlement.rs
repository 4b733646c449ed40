//! What a settlement may mark, and whether it did.

use outbox_core::{MessageId, OutboxMessage, Settlement, StoreError, StoreOperation, Timestamp};

/// The messages that a claim handed out: their ids, and when they happened.
#[derive(Debug, Clone, Default)]
pub(crate) struct HandedOut(Vec<(MessageId, Timestamp)>);

impl HandedOut {
    /// Those of these messages, which are in id order.
    pub(crate) fn of(messages: &[OutboxMessage]) -> Self {
        Self(messages.iter().map(|message| (message.id, message.occurred_at)).collect())
    }

    /// What a settlement marks: its ids, each once, in order.
    ///
    /// # Errors
    /// A permanent [`StoreError`], if the claim did not hand one of them out. Nothing must be marked then.
    pub(crate) fn to_mark(&self, settlement: Settlement) -> Result<Vec<MessageId>, StoreError> {
        let mut ids = settlement.published;
        ids.sort_unstable();
        ids.dedup();
        match ids.iter().find(|id| self.time_of(**id).is_none()) {
            None => Ok(ids),
            Some(foreign) => Err(StoreError::permanent(
                StoreOperation::Settle,
                format!("message {foreign} was not handed out by this claim; nothing is marked"),
            )),
        }
    }

    /// These messages, each with the time at which it happened: what tells a row from another with its id.
    pub(crate) fn rows<'a>(
        &'a self,
        ids: &'a [MessageId],
    ) -> impl Iterator<Item = (MessageId, Timestamp)> + 'a {
        ids.iter().filter_map(|id| Some((*id, self.time_of(*id)?)))
    }

    fn time_of(&self, id: MessageId) -> Option<Timestamp> {
        let found = self.0.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.0.get(found).map(|(_, time)| *time)
    }

    /// The first messages handed out, up to the first that is not among these, which are in order.
    pub(crate) fn prefix<'a>(&self, settled: &'a [MessageId]) -> &'a [MessageId] {
        let length = self.0.iter().zip(settled).take_while(|((id, _), settled)| id == *settled).count();
        settled.get(..length).unwrap_or_default()
    }
}

/// Whether as many rows of a table were marked as were given.
///
/// # Errors
/// A permanent [`StoreError`], if fewer were: they would be published again at every turn, so the tenant has to
/// back off.
pub(crate) fn check_marked(given: usize, marked: u64, table: &str) -> Result<(), StoreError> {
    if u64::try_from(given).is_ok_and(|given| given == marked) {
        return Ok(());
    }
    Err(StoreError::permanent(
        StoreOperation::Settle,
        format!(
            "{marked} of {given} published messages were marked in {table}: a trigger or row security kept the \
             others pending, or somebody who does not hold the tenant marked, deleted or replaced them"
        ),
    ))
}

/// What became of the commit of a settlement.
#[derive(Debug)]
pub(crate) enum Fate {
    /// It was done.
    Committed,
    /// The server answered it by rolling back.
    RolledBack,
    /// Nobody knows: this came instead of an answer, and no later question asks. The settlement fails, the connection is closed,
    /// and the next claim reads what is pending: rows that were not marked are published again, and no other.
    Unknown(StoreError),
}

impl Fate {
    /// What a settlement answers.
    ///
    /// # Errors
    /// A transient [`StoreError`], if it was rolled back; what came, if nobody knows.
    pub(crate) fn decide(self) -> Result<(), StoreError> {
        match self {
            Self::Committed => Ok(()),
            Self::RolledBack => {
                let lost = "the commit was answered, and the transaction was rolled back: nothing is marked";
                Err(StoreError::transient(StoreOperation::Settle, lost))
            }
            Self::Unknown(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use outbox_core::{Headers, InvalidTenantId, TenantId, Timestamp};

    use super::*;

    fn handed_out(ids: &[i64]) -> Result<HandedOut, InvalidTenantId> {
        let tenant = TenantId::new("acme")?;
        let time = Timestamp::from_micros(0);
        let message = |id: &i64| {
            OutboxMessage::new(MessageId::new(*id), tenant.clone(), "", "", None, Headers::new(), time)
        };
        Ok(HandedOut::of(&ids.iter().map(message).collect::<Vec<_>>()))
    }

    #[test]
    fn a_settlement_marks_its_ids_once_each_and_in_order() -> Result<(), Box<dyn std::error::Error>> {
        let settlement = Settlement::published([5, 2, 5].map(MessageId::new));
        assert_eq!(handed_out(&[2, 3, 5])?.to_mark(settlement)?, [2, 5].map(MessageId::new));
        Ok(())
    }

    #[test]
    fn what_is_settled_without_a_gap_ends_before_the_first_that_is_not() -> Result<(), InvalidTenantId> {
        let ids = |ids: &[i64]| ids.iter().copied().map(MessageId::new).collect::<Vec<_>>();
        let handed_out = handed_out(&[2, 3, 5, 8])?;
        assert_eq!(handed_out.prefix(&ids(&[2, 3, 8])), ids(&[2, 3]));
        assert_eq!(handed_out.prefix(&ids(&[3])), []);
        assert_eq!(handed_out.prefix(&ids(&[2, 3, 5, 8])), ids(&[2, 3, 5, 8]));
        Ok(())
    }

    #[test]
    fn an_id_that_was_not_handed_out_refuses_the_whole_settlement() -> Result<(), InvalidTenantId> {
        let refused = handed_out(&[2, 3])?.to_mark(Settlement::published([2, 4].map(MessageId::new)));
        let text = "settle failed: message 4 was not handed out by this claim; nothing is marked";
        assert_eq!(refused.map_err(|error| error.to_string()), Err(text.to_owned()));
        Ok(())
    }

    #[test]
    fn fewer_marks_than_given_are_an_error() {
        assert!(check_marked(3, 3, "t").is_ok());
        assert!(check_marked(3, 2, "t").is_err_and(|error| error.message().starts_with("2 of 3 published")));
    }
}
