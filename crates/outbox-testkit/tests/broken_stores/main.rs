//! The suite can fail: for each law there is a store with one defect, and the suite names that law.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt as _;
use outbox_testkit::conformance::{Law, laws};
use outbox_testkit::{Harness as _, Trial};

mod claim;
mod defect;
mod harness;
mod inspect;
mod message;
mod store;

use crate::defect::{DEFECTS, Defect};
use crate::harness::Broken;

/// A law that plays random stories may see any defect; it says nothing that it does.
const SEES_EVERYTHING: &str = "random_stories_agree_with_the_model";

/// The laws that a store with this defect breaks.
fn broken_by(defect: Defect) -> BTreeSet<&'static str> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let mut broken = BTreeSet::new();
    for (Law { name, .. }, run) in laws() {
        if name == SEES_EVERYTHING && defect != Defect::ThreeIsTwo {
            continue;
        }
        let trial = async move {
            let kept = AssertUnwindSafe(run(Trial::new(name, Broken::with(defect)))).catch_unwind();
            matches!(tokio::time::timeout(Broken::DEADLINE, kept).await, Ok(Ok(())))
        };
        let kept =
            catch_unwind(AssertUnwindSafe(|| runtime.block_on(runtime.spawn(trial)))).expect("caught before");
        if !matches!(kept, Ok(true)) {
            broken.insert(name);
        }
    }
    broken
}

/// Each defect breaks the law that it is listed for, and no other one.
#[test]
fn each_defect_breaks_its_law_and_no_other() {
    let mut wrong = Vec::new();
    for (law, defect) in DEFECTS {
        let broken = broken_by(*defect);
        if broken != BTreeSet::from([*law]) {
            wrong.push(format!("{defect:?} ought to break {law}, and breaks {broken:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each law has a defect that breaks it, and each defect a law.
#[test]
fn each_law_has_a_defect() {
    let laws: BTreeSet<_> = laws().into_iter().map(|(law, _)| law.name).collect();
    let with_defect: BTreeSet<_> = DEFECTS.iter().map(|(law, _)| *law).collect();
    assert_eq!(laws, with_defect);
    assert_eq!(DEFECTS.len(), laws.len());
}
