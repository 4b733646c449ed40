//! A store that is called where there is no tokio runtime.

use std::num::NonZeroU32;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use outbox_core::{ProbeRequest, Store as _, StoreErrorKind, Tenants};

use crate::sqlite::Driver;
use crate::sqlite::database::{FileDatabase, claim, request, tenant};

/// The driver panics where there is no runtime; a store answers with an error.
pub(crate) fn a_claim_outside_of_a_runtime_is_an_error(driver: Driver) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let database = runtime.block_on(FileDatabase::new(driver));
    let store = runtime.block_on(async { database.store() });
    let acme = tenant("acme");
    let request = request(&acme, 1);
    let probe = ProbeRequest::new(Tenants::Discovered);
    let answers = [
        at_once(store.claim(&request)).map(drop),
        at_once(store.probe(&probe)).map(drop),
        at_once(store.pending(&acme, NonZeroU32::MIN)).map(drop),
        at_once(store.check()).map(drop),
    ];
    for answer in answers {
        let error = answer.expect_err("there is no runtime");
        assert_eq!(error.kind(), StoreErrorKind::Permanent);
        assert!(error.message().contains("runtime"), "{error}");
    }
    runtime.block_on(claim(&store, &acme));
}

/// What a future answers that waits for nothing.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(answer) = pin!(future).poll(&mut context) else { panic!("it waits for something") };
    answer
}

/// A runtime without a timer cannot keep a deadline: a store says so instead of panicking.
pub(crate) fn a_store_on_a_runtime_without_a_timer_is_an_error(driver: Driver) {
    let whole = tokio::runtime::Runtime::new().expect("a runtime");
    let database = whole.block_on(FileDatabase::new(driver));
    let store = whole.block_on(async { database.store() });
    let acme = tenant("acme");
    let bare = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let error = bare.block_on(store.claim(&request(&acme, 1))).expect_err("there is no timer");
    assert_eq!(error.kind(), StoreErrorKind::Permanent);
    assert!(error.message().contains("enable_time()"), "{error}");
}
