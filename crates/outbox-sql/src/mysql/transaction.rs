//! What is the same for every table: how a claim's transaction begins, what is set in its session meanwhile, and
//! how both end.

use std::time::Duration;

use super::MySqlStatements;

/// Gives back the session's settings; a macro, since a constant text is made of it.
macro_rules! restore {
    () => {
        "SET SESSION innodb_lock_wait_timeout = @outbox_innodb_lock_wait_timeout, \
         lock_wait_timeout = @outbox_lock_wait_timeout, \
         wait_timeout = @outbox_wait_timeout, \
         sql_safe_updates = @outbox_sql_safe_updates \
         /*M! , idle_transaction_timeout = @outbox_idle_transaction_timeout, \
         idle_write_transaction_timeout = @outbox_idle_write_transaction_timeout, \
         max_statement_time = @outbox_max_statement_time */ \
         /*!80000 , max_execution_time = @outbox_max_execution_time */"
    };
}

/// Asks nothing, of a session that is still there.
pub(crate) const VERIFY: &str = "DO 1";

/// Commits, with the session's settings as they were before: one text of several statements. They come first, so
/// that nothing is committed if one of them fails. Neither another transaction nor the session's end follows, whatever
/// its `completion_type` is.
pub(crate) const COMMIT: &str = concat!(restore!(), "; COMMIT AND NO CHAIN NO RELEASE");

/// Rolls back, with the session's settings as they were before: one text of several statements. What follows is as
/// after [`COMMIT`].
pub(crate) const ROLLBACK: &str = concat!(restore!(), "; ROLLBACK AND NO CHAIN NO RELEASE");

/// What a claim begins with: [`begin_claim`].
#[derive(Debug, Clone)]
pub(crate) struct BeginClaim {
    /// One text of several statements, without parameters.
    pub(super) text: String,
    /// For how many seconds the sentinel may be waited for. `None`: there is no time for that.
    pub(super) a_while: Option<u64>,
}

/// Begins the transaction of a claim.
///
/// READ COMMITTED, so that the read after the lock sees what the last holder marked, and so that no gap is locked
/// where the application inserts, whatever the server's default; READ WRITE, so that a read-only server refuses
/// it before anything is published, as it does the statement that would mark nothing.
///
/// A setting of MySQL or MariaDB holds for the session, not for the transaction. So the old ones are kept in the
/// session's own variables, from where [`COMMIT`] and [`ROLLBACK`] take them back; a connection that came to
/// neither must be closed. Meanwhile no statement and no wait for a lock takes longer than `timeout` (in whole
/// seconds, at least one), the session ends if it hears nothing for `silence`, and no shorter timeout ends it.
///
/// The wait for another that adds a tenant's row takes a twentieth of `timeout`, or a second if that is longer, and
/// does not take place below three: servers look once a second whether a wait is over, and it has to end before the
/// operation does.
pub(crate) fn begin_claim(statements: &MySqlStatements, timeout: Duration, silence: Duration) -> BeginClaim {
    let seconds = |time: Duration| {
        let whole = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
        whole.clamp(1, LONGEST)
    };
    let (wait, silence) = (seconds(timeout), seconds(silence));
    let text = format!(
        "{KEEP}; \
         SET SESSION innodb_lock_wait_timeout = {wait}, lock_wait_timeout = {wait}, wait_timeout = {silence}, \
         sql_safe_updates = 0 \
         /*M! , idle_transaction_timeout = 0, idle_write_transaction_timeout = 0, \
         max_statement_time = {wait} */ /*!80000 , max_execution_time = {milliseconds} */; \
         SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE; \
         START TRANSACTION READ WRITE; \
         {prove}",
        milliseconds = wait * 1_000,
        prove = statements.prove_writable,
    );
    let a_while = (timeout >= LEAST_FOR_A_WAIT).then_some((wait / 20).max(1));
    BeginClaim { text, a_while }
}

/// How long an operation has to be for a wait within it.
const LEAST_FOR_A_WAIT: Duration = Duration::from_secs(3);

/// The longest that each of the settings can be on every system, in seconds.
const LONGEST: u64 = 2_147_483;

const KEEP: &str = "SET @outbox_innodb_lock_wait_timeout = @@SESSION.innodb_lock_wait_timeout, \
     @outbox_lock_wait_timeout = @@SESSION.lock_wait_timeout, \
     @outbox_wait_timeout = @@SESSION.wait_timeout, \
     @outbox_sql_safe_updates = @@SESSION.sql_safe_updates \
     /*M! , @outbox_idle_transaction_timeout = @@SESSION.idle_transaction_timeout, \
     @outbox_idle_write_transaction_timeout = @@SESSION.idle_write_transaction_timeout, \
     @outbox_max_statement_time = @@SESSION.max_statement_time */ \
     /*!80000 , @outbox_max_execution_time = @@SESSION.max_execution_time */";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{InvalidTable, OutboxTable};

    #[test]
    fn what_is_set_is_kept_before_and_restored_before_the_end() -> Result<(), InvalidTable> {
        let statements = MySqlStatements::new(&OutboxTable::default())?;
        let begin = begin_claim(&statements, Duration::from_millis(5_001), Duration::from_secs(600));
        let set = begin.text.split("; ").nth(1).unwrap_or_default();
        assert!(set.starts_with("SET SESSION "), "{set}");
        let settings = |text: &str| -> Vec<String> {
            let words = text
                .split([' ', ','])
                .filter(|word| ["_timeout", "_time", "_updates"].iter().any(|end| word.ends_with(end)));
            words.filter(|word| !word.starts_with('@')).map(str::to_owned).collect()
        };
        assert_eq!(settings(set).len(), 8);
        for end in [COMMIT, ROLLBACK] {
            assert_eq!(settings(end), settings(set));
            for setting in settings(set) {
                assert!(KEEP.contains(&format!("@outbox_{setting} = @@SESSION.{setting}")), "{setting}");
                assert!(end.contains(&format!("{setting} = @outbox_{setting}")), "{setting}");
            }
        }
        assert!(set.contains("lock_wait_timeout = 6, wait_timeout = 600, "), "{set}");
        Ok(())
    }

    #[test]
    fn the_transaction_says_what_it_is_before_it_begins() -> Result<(), InvalidTable> {
        let statements = MySqlStatements::new(&OutboxTable::default())?;
        let begin = begin_claim(&statements, Duration::ZERO, Duration::MAX);
        let order = [
            "lock_wait_timeout = 1, ",
            "wait_timeout = 2147483, ",
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE; ",
            "START TRANSACTION READ WRITE; ",
            "UPDATE `outbox_message` SET `published_at` = `published_at` WHERE FALSE",
        ]
        .map(|part| begin.text.find(part));
        assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{begin:?}");
        Ok(())
    }

    #[test]
    fn a_wait_ends_well_before_the_operation() -> Result<(), InvalidTable> {
        let statements = MySqlStatements::new(&OutboxTable::default())?;
        let a_while = |seconds| begin_claim(&statements, Duration::from_secs(seconds), Duration::MAX).a_while;
        assert_eq!(a_while(2), None);
        for (timeout, most) in [(3, 1), (30, 1), (100, 5), (u64::MAX, LONGEST / 20)] {
            assert_eq!(a_while(timeout), Some(most));
        }
        Ok(())
    }
}
