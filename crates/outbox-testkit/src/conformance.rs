//! The one list of laws, and how they are run.

use std::time::Duration;

use outbox_core::BoxFuture;

use crate::capability::checked;
use crate::trial::joined;
use crate::{Harness, Trial};

/// Makes one `#[test]` of each law, named as the law, for a [`Harness`].
///
/// `outbox_testkit::conformance!(Mine);` is the whole of a test file; `docs/write-a-store.md` has one that runs.
///
/// Attributes before the type are put on every test (`#[ignore]`, `#[cfg(…)]`). Two harnesses in one file go
/// into a module each.
#[macro_export]
macro_rules! conformance {
    ($(#[$attribute:meta])* $harness:ty) => {
        $crate::__laws! { __law_test [$(#[$attribute])*] [$harness] }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __law_test {
    ([$($attributes:tt)*] [$harness:ty] $group:ident $law:ident) => {
        #[test]
        $($attributes)*
        fn $law() {
            $crate::conformance::run::<$harness>(stringify!($law), |trial| {
                Box::pin($crate::laws::$group::$law(trial))
            });
        }
    };
}

/// The list. Calls `$each!` with `$before`, `$argument`, the group and the law, for each law.
#[doc(hidden)]
#[macro_export]
macro_rules! __laws {
    ($each:ident $before:tt $argument:tt) => {
        $crate::__laws! { @ $each $before $argument
            pending:
                pending_is_in_id_order_up_to_the_limit
                pending_is_the_tenants_own
                pending_claims_nothing
                pending_changes_nothing
                pending_sees_through_a_claim;
            probe:
                probe_answers_each_tenants_oldest
                probe_leaves_out_who_has_nothing
                probe_answers_only_who_was_asked_for
                probe_discovers_tenants
                probe_takes_the_lowest_id
                probe_age_is_never_negative
                probe_tells_the_age
                probe_claims_nothing
                probe_changes_nothing
                probe_takes_many_tenants;
            claim:
                claim_is_in_id_order_up_to_the_limit
                claim_is_the_tenants_own
                claim_stops_at_max_bytes
                claim_counts_whatever_can_be_large
                claim_excludes_every_other_store
                claim_excludes_its_own_store
                claim_never_waits_for_the_holder
                claim_holds_an_empty_tenant
                claims_of_other_tenants_are_not_excluded
                claims_up_to_max_claims_are_held_at_once
                claims_of_another_table_are_not_excluded
                verify_says_that_a_claim_lives
                claim_has_one_holder_under_contention
                claim_never_hands_out_what_was_marked
                claim_fails_where_it_cannot_mark;
            exclusion:
                excluded_subjects_are_left_out
                excluded_subjects_stay_as_they_are
                excluded_subjects_compare_by_bytes
                excluded_subjects_may_be_many;
            settle:
                settle_marks_exactly_what_it_is_given
                settle_frees_the_tenant
                settle_of_nothing_marks_nothing
                settle_refuses_a_foreign_id
                settle_refuses_what_an_earlier_claim_marked;
            release:
                dropped_claim_frees_the_tenant
                dropped_claim_marks_nothing
                panicking_holder_frees_the_tenant
                claim_dropped_off_the_runtime_frees_the_tenant
                claim_moves_between_tasks
                killed_session_frees_the_tenant
                killed_session_fails_verify
                killed_session_cannot_settle
                nothing_is_left_over;
            cancel:
                cancelled_claim_frees_the_tenant
                cancelled_settle_marks_all_or_nothing
                cancelled_reads_change_nothing
                cancelled_futures_leave_nothing_over;
            write:
                ids_are_in_the_order_of_the_rows
                ids_are_never_issued_again
                uncommitted_write_is_not_seen
                rolled_back_write_is_never_seen
                late_commit_is_found
                hostile_row_stops_its_tenant_only
                hostile_row_ends_the_batch_before_it
                hostile_row_is_probed
                large_ids_are_exact;
            data:
                tenants_compare_by_bytes
                claims_of_tenants_alike_are_not_excluded
                kind_and_subject_come_back
                payload_comes_back
                tombstone_is_no_empty_payload
                large_payload_comes_back
                headers_come_back
                occurred_at_comes_back
                source_is_the_same_everywhere;
            model:
                random_stories_agree_with_the_model;
        }
    };
    (@ $each:ident $before:tt $argument:tt $($group:ident: $($law:ident)+;)+) => {
        $($crate::__laws! { @group $each $before $argument $group $($law)+ })+
    };
    (@group $each:ident $before:tt $argument:tt $group:ident $($law:ident)+) => {
        $($crate::$each! { $before $argument $group $law })+
    };
}

/// A law: its name and its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Law {
    /// What it is about: `pending`, `probe`, `claim`, `exclusion`, `settle`, `release`, `cancel`,
    /// `write`, `data` or `model`.
    pub group: &'static str,
    /// Its id in the contract, and the name of its test.
    pub name: &'static str,
}

/// What puts a law on trial.
pub type RunLaw = fn(Trial) -> BoxFuture<'static, ()>;

#[doc(hidden)]
#[macro_export]
macro_rules! __law_push {
    ([$list:ident] [] $group:ident $law:ident) => {
        let law = Law { group: stringify!($group), name: stringify!($law) };
        let run: RunLaw = |trial| Box::pin($crate::laws::$group::$law(trial));
        $list.push((law, run));
    };
}

/// Every law, in the order of the contract, with what puts it on trial.
pub fn laws() -> Vec<(Law, RunLaw)> {
    let mut list = Vec::new();
    crate::__laws! { __law_push [list] [] }
    list
}

/// The number in an environment variable, if it is set.
///
/// # Panics
/// If it is set to something else.
pub(crate) fn number_from_env(name: &str) -> Option<u32> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|error| panic!("{name} is {text:?}, which is no number: {error}")))
}

/// Puts a law on trial: on a fresh table, on a runtime of its own, with the harness's deadline.
///
/// # Panics
/// If the law is broken, or is not through by the deadline.
pub fn run<H: Harness>(name: &'static str, law: RunLaw) {
    let open: BoxFuture<'static, Trial> = Box::pin(async move { Trial::new(name, H::open().await) });
    if try_law(name, H::DEADLINE, open, law) {
        checked(H::name(), name);
    }
}

/// Whether the whole law was checked, as far as the harness can.
fn try_law(name: &str, deadline: Duration, open: BoxFuture<'static, Trial>, law: RunLaw) -> bool {
    on_a_runtime(name, deadline, async move {
        let trial = open.await;
        let verdict = tokio::spawn(law(trial.clone())).await;
        let through = trial.is_checked();
        trial.close().await;
        joined(verdict);
        through
    })
}

/// Runs a trial on a multi-thread runtime of its own.
///
/// # Panics
/// If the trial does, or is not through by the deadline.
pub(crate) fn on_a_runtime<T: Send + 'static>(
    law: &str,
    deadline: Duration,
    trial: impl Future<Output = T> + Send + 'static,
) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap_or_else(|error| panic!("no runtime: {error}"));
    // The deadline is kept by this thread, so that a trial that blocks the runtime's own cannot hold it up.
    let task = runtime.spawn(trial);
    let ended = runtime.block_on(async { tokio::time::timeout(deadline, task).await });
    runtime.shutdown_timeout(Duration::from_millis(100));
    let Ok(ended) = ended else { panic!("{law} is not through after {deadline:?}: something waits") };
    joined(ended)
}
