//! The one list of laws, and how they are run.

use std::panic::resume_unwind;
use std::time::Duration;

use outbox_core::BoxFuture;

use crate::capability::checked;
use crate::{Harness, Trial};

/// Makes one `#[test]` of each law, named as the law, for a [`Harness`].
///
/// ```ignore
/// outbox_testkit::conformance!(Mine);
/// ```
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
            $crate::conformance::run(stringify!($law), $crate::laws::$group::$law::<$harness>);
        }
    };
}

/// The list. Calls `$each!` with `$before`, `$argument`, the group and the law, for each law.
#[doc(hidden)]
#[macro_export]
macro_rules! __laws {
    ($each:ident $before:tt $argument:tt) => {
        $crate::__laws! { @ $each $before $argument
            pending: pending_is_in_id_order_up_to_the_limit
                pending_is_the_tenants_own
                pending_claims_nothing
                pending_changes_nothing
                pending_sees_through_a_claim;
            claim: claim_excludes_every_other_store;
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
    /// What it is about: `pending`, `probe`, `claim`, `settle`, `release`, `data` or `model`.
    pub group: &'static str,
    /// Its id in the contract, and the name of its test.
    pub name: &'static str,
}

/// What puts a law on trial.
pub type RunLaw<H> = fn(Trial<H>) -> BoxFuture<'static, ()>;

#[doc(hidden)]
#[macro_export]
macro_rules! __law_push {
    ([$list:ident] [$harness:ty] $group:ident $law:ident) => {
        let law = Law { group: stringify!($group), name: stringify!($law) };
        let run: RunLaw<$harness> = |trial| Box::pin($crate::laws::$group::$law(trial));
        $list.push((law, run));
    };
}

/// Every law, in the order of the contract, with what puts it on trial.
pub fn laws<H: Harness>() -> Vec<(Law, RunLaw<H>)> {
    let mut list = Vec::new();
    crate::__laws! { __law_push [list] [H] }
    list
}

/// Puts a law on trial: on a fresh table, on a runtime of its own, with the harness's deadline.
///
/// # Panics
/// If the law is broken, or is not through by the deadline.
pub fn run<H, F, L>(name: &'static str, law: L)
where
    H: Harness,
    F: Future<Output = ()> + Send + 'static,
    L: FnOnce(Trial<H>) -> F + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap_or_else(|error| panic!("no runtime: {error}"));
    let trial = async move {
        let trial = Trial::new(name, H::open().await);
        let verdict = tokio::spawn(law(trial.clone())).await;
        trial.close().await;
        if let Err(broken) = verdict {
            resume_unwind(broken.into_panic());
        }
    };
    // The deadline is kept by this thread, so that a law that blocks the runtime's own cannot hold it up.
    let task = runtime.spawn(trial);
    let ended = runtime.block_on(async { tokio::time::timeout(H::DEADLINE, task).await });
    runtime.shutdown_timeout(Duration::from_millis(100));
    match ended {
        Ok(Ok(())) => checked::<H>(name),
        Ok(Err(broken)) => resume_unwind(broken.into_panic()),
        Err(_) => panic!("{name} is not through after {:?}: the store waits for something", H::DEADLINE),
    }
}
