//! The laws of what is written: it comes back as it was.

use outbox_core::{Headers, NewMessage, OutboxMessage, Payload, Timestamp};

use crate::Trial;
use crate::trial::{claim, first_pending, is_held, message, named, pending, probe, settle, tenant};

/// Tenants compare by bytes: case, composed and decomposed letters and trailing spaces make them different,
/// in reads, probes and claims.
pub async fn tenants_compare_by_bytes(trial: Trial) {
    let tenants: Vec<_> = ALIKE.iter().map(|id| tenant(id)).collect();
    let rows: Vec<_> = tenants.iter().map(|tenant| message(tenant, 0)).collect();
    let written = trial.commit(&rows).await;
    let store = trial.store().await;
    let found = probe(&*store, named(&tenants)).await;
    assert_eq!(found.len(), tenants.len(), "the probe answers about each");
    for (tenant, id) in tenants.iter().zip(&written) {
        assert_eq!(pending(&*store, tenant).await, [*id], "pending of {:?}", tenant.as_str());
        let oldest = probe(&*store, named([tenant])).await;
        assert_eq!(oldest.len(), 1);
        assert_eq!((&oldest[0].tenant_id, oldest[0].id), (tenant, *id), "probe of {:?}", tenant.as_str());
        let claimed = claim(&*store, tenant, 10).await;
        assert_eq!(claimed.messages.len(), 1, "claim of {:?}", tenant.as_str());
        settle(claimed, &[*id]).await;
    }
}

/// Tenants that are alike do not exclude each other.
pub async fn claims_of_tenants_alike_are_not_excluded(trial: Trial) {
    let store = trial.store().await;
    for pair in ALIKE.windows(2) {
        let held = claim(&*store, &tenant(pair[0]), 1).await;
        let excluded = is_held(&*store, &tenant(pair[1])).await;
        assert!(!excluded, "a claim of {:?} excludes {:?}", pair[0], pair[1]);
        settle(held, &[]).await;
    }
}

/// Kinds and subjects come back as they were written, byte by byte.
pub async fn kind_and_subject_come_back(trial: Trial) {
    let acme = tenant("acme");
    let texts = ALIKE.iter().chain(&["", "two\nlines\ttab", "\u{1}\u{7f}", "\\u0000", "{}", "a;--"]);
    let rows: Vec<_> = texts.map(|text| NewMessage::new(acme.clone(), *text, *text, "x")).collect();
    round_trip(&trial, rows).await;
}

/// A payload comes back as it was written: every byte, NUL, and bytes that are no text.
pub async fn payload_comes_back(trial: Trial) {
    let acme = tenant("acme");
    let all_bytes: Vec<u8> = (0..=u8::MAX).collect();
    let payloads = [
        Payload::from(all_bytes),
        Payload::from(b"\0"),
        Payload::from(b"\0\0text\0"),
        Payload::from(b"\xff\xfe\xc3\x28"),
        Payload::from(" {\"b\": 1,  \"a\": 2, \"a\": 3} "),
        Payload::from("\\x00 \\\\ \\' \u{1f980} \r\n"),
    ];
    let rows = payloads.map(|payload| NewMessage::new(acme.clone(), "bytes", "s", payload));
    round_trip(&trial, rows.to_vec()).await;
}

/// A message without a payload is a tombstone, and one with an empty payload is not.
pub async fn tombstone_is_no_empty_payload(trial: Trial) {
    let acme = tenant("acme");
    let rows = [
        NewMessage::tombstone(acme.clone(), "order.deleted", "order-1"),
        NewMessage::new(acme.clone(), "order.emptied", "order-1", ""),
        NewMessage::tombstone(acme, "order.deleted", "order-1"),
    ];
    round_trip(&trial, rows.to_vec()).await;
}

/// A payload of 10 MB comes back.
pub async fn large_payload_comes_back(trial: Trial) {
    let acme = tenant("acme");
    let mut random = fastrand::Rng::with_seed(10);
    let mut bytes = vec![0; 10_000_000];
    random.fill(&mut bytes);
    let rows = [NewMessage::new(acme.clone(), "large", "s", bytes), message(&acme, 1)];
    round_trip(&trial, rows.to_vec()).await;
}

/// Headers come back as they were written, names and values.
pub async fn headers_come_back(trial: Trial) {
    let acme = tenant("acme");
    let long = "0123456789".repeat(10_000);
    let pairs = [
        ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ("quotes", "'single' \"double\" `back`"),
        ("backslashes", "\\ \\\\ \\n \\u0041 \\u0000"),
        ("control", "\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}"),
        ("Case", "upper"),
        ("case", "lower"),
        ("Å", "composed"),
        ("A\u{30a}", "decomposed"),
        ("crab \u{1f980}", "\u{1f980} \u{fffd} \u{10ffff}"),
        ("na\"me's\\", "a name with quotes"),
        ("", "the empty name"),
        ("empty", ""),
        ("json", "{\"a\": [1, null, true]}"),
        ("number", "1e400"),
        ("long", &long),
    ];
    let with = |headers: Headers| {
        let mut row = message(&acme, 0);
        row.headers = headers;
        row
    };
    let rows = vec![
        with(Headers::new()),
        with(pairs.into_iter().collect()),
        with([("a", "b")].into_iter().collect()),
    ];
    round_trip(&trial, rows).await;
}

/// `occurred_at` comes back to the microsecond, before 1970 and after 2038, whatever the session's time zone.
pub async fn occurred_at_comes_back(trial: Trial) {
    let acme = tenant("acme");
    let times = [
        0,
        1,
        -1,
        -1_000_001,
        999_999,
        1_700_000_000_123_456,
        // A leap day, and an hour that a time zone with daylight saving skips.
        1_709_164_799_999_999,
        1_711_848_600_000_001,
        // After 2038, and the last microsecond of the year 9999.
        2_147_483_648_000_001,
        253_402_300_799_999_999,
        // 1900-01-01, and the first microseconds of the year 1000.
        -2_208_988_800_000_001,
        -30_610_224_000_000_000 + 7,
    ];
    let rows = times.map(|micros| message(&acme, 0).with_occurred_at(Timestamp::from_micros(micros)));
    round_trip(&trial, rows.to_vec()).await;
}

/// A store's source is not empty, never changes, and is the same in every process.
pub async fn source_is_the_same_everywhere(trial: Trial) {
    let (store, other) = (trial.store().await, trial.store().await);
    let source = store.source().to_owned();
    assert!(!source.is_empty());
    trial.commit_some(&tenant("acme"), 1).await;
    settle(claim(&*store, &tenant("acme"), 1).await, &[]).await;
    assert_eq!([store.source(), other.source()], [&*source, &*source]);
}

/// Ids that some database or collation might take for the same.
pub(super) const ALIKE: &[&str] = &[
    "T",
    "t",
    "\u{c5}",
    "A\u{30a}",
    "\u{e5}",
    "a",
    "a ",
    " a",
    "a\t",
    "a\u{a0}",
    "a%",
    "a_",
    "ab",
    "a'b",
    "a\"b",
    "a\\b",
    "stra\u{df}e",
    "strasse",
    "STRASSE",
    "\u{130}",
    "i",
    "I",
    "\u{131}",
    "\u{1f980}",
    "\u{1f981}",
    "0",
    "00",
    "null",
    "NULL",
    "select",
    "\u{65e5}\u{672c}",
];

/// Writes rows of one tenant and reads them with `pending` and with a claim.
async fn round_trip(trial: &Trial, rows: Vec<NewMessage>) {
    let tenant = rows[0].tenant_id.clone();
    let written = trial.commit(&rows).await;
    let store = trial.store().await;
    let read = store.pending(&first_pending(&tenant, 1_000)).await.expect("pending answers");
    let claimed = claim(&*store, &tenant, 1_000).await;
    for (what, messages) in [("pending", &read), ("a claim", &claimed.messages)] {
        assert_eq!(messages.len(), rows.len(), "{what} answers every row");
        for ((message, row), id) in messages.iter().zip(&rows).zip(&written) {
            assert_eq!(message.id, *id, "the id, from {what}");
            same(what, message, row);
        }
    }
    settle(claimed, &[]).await;
}

fn same(what: &str, message: &OutboxMessage, row: &NewMessage) {
    assert_eq!(message.tenant_id, row.tenant_id, "the tenant, from {what}");
    assert_eq!(message.kind, row.kind, "the kind, from {what}");
    assert_eq!(message.subject_id, row.subject_id, "the subject, from {what}");
    assert_eq!(message.headers, row.headers, "the headers, from {what}");
    if let Some(occurred_at) = row.occurred_at {
        assert_eq!(message.occurred_at, occurred_at, "occurred_at, from {what}");
    }
    // Payloads may be large: say where they differ, and do not print them.
    match (&message.payload, &row.payload) {
        (None, None) => {}
        (Some(read), Some(written)) => {
            assert_eq!(read.len(), written.len(), "the payload's length, from {what}");
            if read != written {
                let differs = read.as_bytes().iter().zip(written.as_bytes()).position(|(a, b)| a != b);
                panic!("the payload differs at byte {differs:?}, from {what}");
            }
        }
        (Some(_), None) => panic!("{what} made a payload of a tombstone"),
        (None, Some(_)) => panic!("{what} made a tombstone of a payload"),
    }
}
