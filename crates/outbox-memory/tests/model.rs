//! The reference store agrees with the model of the testkit, over many more stories than the suite plays.

mod support;

use outbox_testkit::{Harness as _, Trial, replay};

use crate::support::Memory;

/// Random stories of writers and two replicas end as the model says; long ones, so that backlogs build up.
#[test]
fn many_long_stories_agree_with_the_model() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let trial = runtime.block_on(async {
        Trial::new("many_long_stories_agree_with_the_model", Memory::<false>::open().await)
    });
    replay::stories(&trial, runtime.handle(), 200, 150);
}
