//! No tenant waits for another's publisher, up to the concurrency.

use std::time::Duration;

use outbox_core::{OperationKind, RefusalCause};
use outbox_testkit::{PublishFault, When};

use crate::seen::End;
use crate::stage::{POLL, Stage, config, tenant};

/// S45, S46: three tenants hang, crawl and panic; the fourth place serves the others at every poll.
#[tokio::test]
async fn a_slow_hanging_or_panicking_publisher_delays_no_other_tenant() {
    let stage = Stage::new();
    for (name, fault) in [
        ("hangs", PublishFault::Hang),
        ("crawls", PublishFault::Slow(Duration::from_secs(20))),
        ("panics", PublishFault::PanicInPoll),
    ] {
        stage.publisher.fail(When::Tenant(tenant(name)), fault);
        stage.write(name, 5);
    }
    let _replicas = [stage.relay().start().unwrap(), stage.relay().start().unwrap()];
    for _ in 0..100 {
        for name in ["b", "c"] {
            stage.write(name, 2);
        }
        stage.pass(POLL).await;
    }
    stage.pass(POLL * 2).await;
    assert_eq!((stage.marked("b").len(), stage.marked("c").len()), (200, 200));
    stage.recorder.assert_in_order();
}

/// A publish that never ends is refused at its deadline: its future is dropped, its place is given back.
#[tokio::test]
async fn a_hanging_publish_gives_its_place_back_at_the_deadline() {
    let stage = Stage::new();
    stage.write("a", 1);
    stage.publisher.fail_times(1, When::Tenant(tenant("a")), PublishFault::Hang);
    let _running = stage.relay_with(config().concurrency(1)).start().unwrap();
    stage.pass(POLL).await;
    stage.write("b", 1);
    stage.pass(Duration::from_secs(30) - POLL - Duration::from_millis(1)).await;
    assert_eq!(stage.marked("b"), []);
    stage.pass(POLL + Duration::from_millis(1)).await;
    assert_eq!(stage.marked("b").len(), 1);
    let reason = "no answer within the publish deadline of 30000 ms".to_owned();
    assert_eq!(stage.seen.ends(OperationKind::Publish)[0], End::Refused(RefusalCause::Deadline, reason));
    stage.until(|| stage.all_marked()).await;
}

/// With as many hanging tenants as there are places, the others wait for the deadline and no longer.
#[tokio::test]
async fn when_every_place_hangs_the_others_wait_for_one_deadline() {
    let stage = Stage::new();
    for name in ["h1", "h2", "h3", "h4"] {
        stage.publisher.fail(When::Tenant(tenant(name)), PublishFault::Hang);
        stage.write(name, 1);
    }
    let _running = stage.relay().start().unwrap();
    stage.pass(POLL).await;
    stage.write("b", 1);
    stage.pass(Duration::from_secs(30)).await;
    assert_eq!(stage.marked("b").len(), 1);
}

/// Never more tenants at once than the concurrency says.
#[tokio::test]
async fn no_more_tenants_are_swept_at_once_than_the_concurrency_says() {
    let stage = Stage::new();
    stage.publisher.fail(When::Every, PublishFault::Hang);
    for nth in 0..20 {
        stage.write(&format!("t{nth}"), 1);
    }
    let _running = stage.relay_with(config().concurrency(3)).start().unwrap();
    stage.pass(Duration::from_secs(10)).await;
    assert_eq!((stage.table.held().len(), stage.tried().len()), (3, 3));
}
