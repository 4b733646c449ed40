//! A store with watermarks hands out what one without would, and begins where it left off.
//!
//! That it does begin there shows in a row that no honest writer makes: below the watermark, where nobody looks.

mod stage;

use std::time::Duration;

use outbox_core::{ClaimRequest, MessageId, Settlement, Settling, StoreErrorKind};
use sqlx::AssertSqlSafe;

use self::stage::{LOOK_EVERY, Stage, gap, settle};

use crate::postgres::{Database, Driver, ROLE, STORE};
use crate::server::{claim, ids, refused, tenant};

/// A message whose transaction commits late is handed out by the very next claim, however far claims went beyond it
/// meanwhile: whether it began before the store did, or in the middle of the drain.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_lower_id_that_commits_late_is_handed_out_next(driver: Driver) {
    let stage = Stage::new(driver).await;
    for begins_with_the_store in [true, false] {
        if !begins_with_the_store {
            stage.append(50).await;
            assert_eq!(stage.publish(50).await.len(), 50);
        }
        let (late, writer) = stage.begin().await;
        let backlog = stage.append(200).await;
        for batch in backlog.chunks(20) {
            assert_eq!(stage.publish(20).await, batch);
        }
        let more = stage.append(20).await;
        writer.commit().await.unwrap();
        assert_eq!(stage.probe().await, [Some(late); 2]);
        let next = stage.publish(100).await;
        assert_eq!(next[0], late, "{next:?}");
        assert_eq!(next[1..], more);
        // Once it has ended, the watermark passes it.
        stage.append(1).await;
        assert_eq!(stage.publish(1).await.len(), 1);
    }
    stage.end().await;
}

/// The safe id is not taken while a writer may still commit what it drew, be its transaction open or prepared; what
/// is settled meanwhile raises no watermark, and what comes to lie below it is seen at once.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn no_safe_id_is_taken_while_a_writer_is_open_or_prepared(driver: Driver) {
    let server = servers::Postgres::start(&[("max_prepared_transactions", "2")]).unwrap();
    let stage = Stage::on(Database::on(driver, &server, "prepared").await).await;
    let by_hand = [gap(&stage).await, gap(&stage).await, gap(&stage).await];
    let (drawn, mut writer) = stage.begin().await;
    for (id, how) in by_hand.into_iter().zip(["open", "prepared", "ended"]) {
        if how == "prepared" {
            sqlx::raw_sql("PREPARE TRANSACTION 'writer'").execute(&mut *writer).await.unwrap();
        }
        if how == "ended" {
            stage.database.run("COMMIT PREPARED 'writer'").await;
            assert_eq!(stage.publish(10).await, [drawn]);
        }
        // Twice: a safe id that is taken at one claim serves the next.
        for _ in 0..2 {
            let backlog = stage.append(30).await;
            assert_eq!(stage.publish(30).await, backlog, "{how}");
        }
        stage.insert_by_hand(id).await;
        let seen = if how == "ended" { vec![] } else { vec![id] };
        assert_eq!(stage.look().await, seen, "{how}");
        stage.clock.advance(LOOK_EVERY);
        assert_eq!(stage.publish(10).await, [id], "{how}");
    }
    drop(writer);
}

/// An id drawn by hand below the watermark is passed over until the next look from zero, and is then the first: by
/// a claim in a backlog, and by a probe where there is nothing else.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn an_id_drawn_by_hand_is_found_by_the_next_look_from_zero(driver: Driver) {
    let stage = Stage::new(driver).await;
    let (first, second) = (gap(&stage).await, gap(&stage).await);
    let backlog = stage.append(60).await;
    assert_eq!(stage.publish(40).await, backlog[..40]);
    stage.insert_by_hand(second).await;
    assert_eq!(stage.publish(10).await, backlog[40..50]);
    assert_eq!(stage.probe().await, [Some(backlog[50]); 2]);
    stage.clock.advance(LOOK_EVERY.saturating_sub(Duration::from_nanos(1)));
    assert_eq!(stage.look().await, backlog[50..]);
    stage.clock.advance(Duration::from_nanos(1));
    assert_eq!(stage.publish(1).await, [second]);

    assert_eq!(stage.publish(10).await, backlog[50..]);
    stage.insert_by_hand(first).await;
    assert_eq!(stage.probe().await, [None; 2]);
    stage.clock.advance(LOOK_EVERY);
    assert_eq!(stage.probe().await, [Some(first); 2]);
    // The claim that follows goes by what the probe found.
    assert_eq!(stage.publish(10).await, [first]);
    stage.end().await;
}

/// A claim that finds nothing although it was asked for looks from zero next time.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_claim_that_finds_nothing_looks_from_zero_next_time(driver: Driver) {
    let stage = Stage::new(driver).await;
    let by_hand = gap(&stage).await;
    let backlog = stage.append(20).await;
    assert_eq!(stage.publish(20).await, backlog);
    stage.insert_by_hand(by_hand).await;
    assert_eq!(stage.look().await, Vec::<i64>::new());
    assert_eq!(stage.look().await, [by_hand]);
    stage.end().await;
}

/// A row that is made pending again is found within the interval. Is it the last one that was settled, as after a
/// crash that took the marks back, then it is found by the next claim, and with it all the others.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_row_made_pending_again_is_found_within_the_interval(driver: Driver) {
    let stage = Stage::new(driver).await;
    let backlog = stage.append(40).await;
    assert_eq!(stage.publish(30).await, backlog[..30]);
    let redrive = |ids: &[i64]| {
        format!(
            "UPDATE outbox_message SET published_at = NULL WHERE id = ANY('{{{}}}')",
            ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        )
    };
    stage.database.run(redrive(&backlog[3..5])).await;
    assert_eq!(stage.look().await, backlog[30..]);
    stage.clock.advance(LOOK_EVERY);
    // One at a time: the first that is found does not hide the second.
    assert_eq!(stage.publish(1).await, backlog[3..4]);
    assert_eq!(stage.publish(1).await, backlog[4..5]);
    assert_eq!(stage.publish(5).await, backlog[30..35]);

    stage.database.run(redrive(&backlog[20..35])).await;
    // The first probe begins there, and sees by it that it has to begin at zero.
    assert_eq!(stage.probe().await, [Some(backlog[34]), Some(backlog[20])]);
    assert_eq!(stage.publish(100).await, backlog[20..]);

    stage.database.run(redrive(&backlog[36..])).await;
    assert_eq!(stage.publish(100).await, backlog[36..], "by the claim alone");
    stage.end().await;
}

/// A claim that leaves subjects out begins at the watermark, and raises none: what it left out is below.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_claim_of_other_subjects_begins_at_the_watermark_and_raises_none(driver: Driver) {
    let stage = Stage::new(driver).await;
    let by_hand = gap(&stage).await;
    let backlog = stage.append(30).await;
    stage
        .database
        .run(format!("UPDATE outbox_message SET subject_id = 'held' WHERE id = {}", backlog[12]))
        .await;
    assert_eq!(stage.publish(10).await, backlog[..10]);
    stage.insert_by_hand(by_hand).await;
    let request =
        ClaimRequest::new(tenant("acme"), 10.try_into().unwrap()).with_excluded_subjects(["held".to_owned()]);
    let claimed = crate::claim(&stage.store, &request).await;
    let expected: Vec<i64> = backlog[10..21].iter().copied().filter(|id| *id != backlog[12]).collect();
    assert_eq!(ids(&claimed), expected);
    settle(claimed, &expected).await;
    assert_eq!(stage.publish(2).await, [backlog[12], backlog[21]]);
    stage.end().await;
}

/// Settled with a gap, the watermark stays below it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn what_was_not_settled_is_handed_out_again(driver: Driver) {
    let stage = Stage::new(driver).await;
    let backlog = stage.append(20).await;
    let claimed = stage.claim(10).await;
    let accepted: Vec<i64> = backlog[..10].iter().copied().filter(|id| *id != backlog[4]).collect();
    settle(claimed, &accepted).await;
    assert_eq!(stage.publish(3).await, [backlog[4], backlog[10], backlog[11]]);
    stage.end().await;
}

/// A claim whose session is killed forgets every watermark: perhaps the server came back without the last marks.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_killed_session_forgets(driver: Driver) {
    for by_verify in [false, true] {
        let stage = Stage::new(driver).await;
        let by_hand = gap(&stage).await;
        let backlog = stage.append(40).await;
        assert_eq!(stage.publish(10).await, backlog[..10]);
        stage.insert_by_hand(by_hand).await;
        let mut claimed = stage.claim(10).await;
        assert_eq!(ids(&claimed), backlog[10..20]);
        assert_eq!(stage.database.terminate_holders().await, 1);
        if by_verify {
            claimed.claim.verify().await.unwrap_err();
            drop(claimed);
        } else {
            let published = backlog[10..20].iter().copied().map(MessageId::new);
            claimed.claim.settle(Settlement::published(published)).await.unwrap_err();
        }
        stage.database.wait_until_nothing_is_left(STORE).await;
        assert_eq!(stage.look().await[..2], [by_hand, backlog[10]]);
        stage.end().await;
    }
}

/// Of a table where no id is ever final, or where that cannot be told, the first claim says so, and `check()`.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_table_that_does_not_suit_is_refused_with_what_to_do(driver: Driver) {
    let sequence = "outbox_message_id_seq";
    for (change, says) in [
        (format!("ALTER SEQUENCE {sequence} CACHE 20"), "ALTER SEQUENCE … INCREMENT 1 CACHE 1"),
        (format!("ALTER SEQUENCE {sequence} INCREMENT 50"), "INCREMENT 1"),
        (format!("REVOKE SELECT ON SEQUENCE {sequence} FROM {ROLE}"), "GRANT SELECT ON SEQUENCE"),
        ("ALTER TABLE outbox_message ALTER id DROP IDENTITY".into(), "GENERATED BY DEFAULT AS IDENTITY"),
        ("CREATE TABLE more () INHERITS (outbox_message)".into(), "its writers lock another"),
        (
            "ALTER TABLE outbox_message RENAME TO part;
             CREATE TABLE outbox_message (LIKE part) PARTITION BY RANGE (id);
             ALTER TABLE outbox_message ALTER id ADD GENERATED BY DEFAULT AS IDENTITY;
             ALTER TABLE part ALTER id DROP IDENTITY;
             ALTER TABLE outbox_message ATTACH PARTITION part DEFAULT"
                .into(),
            "it is partitioned",
        ),
    ] {
        let stage = Stage::new(driver).await;
        assert_eq!(stage.store.check().await.unwrap(), []);
        stage.database.run(&change).await;
        let rights = "GRANT SELECT, INSERT, UPDATE ON outbox_message TO";
        stage.database.run(format!("{rights} {ROLE}")).await;
        for _ in 0..2 {
            let error = refused(&stage.store, "acme").await;
            assert_eq!(error.kind(), StoreErrorKind::Permanent, "{error:?}");
            assert!(error.message().contains(says), "{change}: {error}");
            assert!(error.message().starts_with("public.outbox_message cannot have a watermark"), "{error}");
            stage.database.wait_until_nothing_is_left(STORE).await;
        }
        let found = stage.store.check().await.unwrap();
        assert!(found.iter().any(|finding| finding.message.contains(says)), "{change}: {found:?}");
        // Without, the table serves.
        claim(&stage.database.store(stage.table.description()), "acme").await;
        stage.end().await;
    }
}

/// A store that deletes goes on after what is gone, and its clones go on where it stopped.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_store_that_deletes_and_its_clones_share_the_watermark(driver: Driver) {
    let mut stage = Stage::new(driver).await;
    stage.store = stage.store.with_settling(Settling::Delete);
    let by_hand = gap(&stage).await;
    let backlog = stage.append(20).await;
    assert_eq!(stage.publish(10).await, backlog[..10]);
    stage.insert_by_hand(by_hand).await;
    stage.store = stage.store.clone();
    assert_eq!(stage.publish(10).await, backlog[10..]);
    let left: i64 = sqlx::query_scalar(AssertSqlSafe("SELECT count(*) FROM outbox_message".to_owned()))
        .fetch_one(&stage.database.admin)
        .await
        .unwrap();
    assert_eq!(left, 1);
    stage.end().await;
}

/// Numbers that a sequence hands out a second time have a safe id of their own, once the table was looked at anew: a
/// message that commits late is handed out next again.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_sequence_that_was_set_back_has_a_safe_id_of_its_own(driver: Driver) {
    for set_back in [
        "TRUNCATE outbox_message RESTART IDENTITY",
        "DELETE FROM outbox_message; SELECT setval('outbox_message_id_seq', 5)",
        "DELETE FROM outbox_message; SELECT setval('outbox_message_id_seq', 5, false)",
    ] {
        let stage = Stage::new(driver).await;
        for _ in 0..2 {
            let backlog = stage.append(100).await;
            assert_eq!(stage.publish(100).await, backlog);
        }
        stage.database.run(set_back).await;
        stage.clock.advance(LOOK_EVERY);
        for _ in 0..2 {
            let backlog = stage.append(10).await;
            assert_eq!(stage.publish(10).await, backlog, "{set_back}");
        }
        let (late, writer) = stage.begin().await;
        for _ in 0..2 {
            let backlog = stage.append(10).await;
            assert_eq!(stage.publish(10).await, backlog, "{set_back}");
        }
        let more = stage.append(3).await;
        writer.commit().await.unwrap();
        assert_eq!(stage.publish(10).await, [vec![late], more].concat(), "{set_back}");
        stage.end().await;
    }
}

/// A claim that leaves subjects out does not count as a look from zero: what it did not see is below.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_claim_of_other_subjects_is_no_look_from_zero(driver: Driver) {
    let stage = Stage::new(driver).await;
    let by_hand = gap(&stage).await;
    for _ in 0..2 {
        let backlog = stage.append(10).await;
        assert_eq!(stage.publish(10).await, backlog);
    }
    stage.insert_by_hand(by_hand).await;
    let backlog = stage.append(3).await;
    assert_eq!(stage.look().await, backlog);
    stage.clock.advance(LOOK_EVERY);
    let others =
        ClaimRequest::new(tenant("acme"), 10.try_into().unwrap()).with_excluded_subjects(["s".to_owned()]);
    let claimed = crate::claim(&stage.store, &others).await;
    assert_eq!(ids(&claimed), backlog);
    claimed.claim.settle(Settlement::release()).await.unwrap();
    assert_eq!(stage.look().await, [vec![by_hand], backlog].concat());
    stage.end().await;
}
