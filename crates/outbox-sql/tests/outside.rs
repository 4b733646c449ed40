//! Texts from outside in errors: names, paths and what a server said stay on the error's line, and leave room for
//! what to do.

use std::io;
use std::path::PathBuf;

use outbox_core::StoreError;
use outbox_core::StoreOperation;
use outbox_sql::append::{AppendError, InvalidMessage};
use outbox_sql::check::Finding;
use outbox_sql::file_lock::FileLockError;
use outbox_sql::row::{Unreadable, text};
use outbox_sql::sqlite::NoPlace;
use outbox_sql::table::InvalidTable;
use outbox_sql::{Dialect, OutboxTable, headers};
use outbox_sql::{mysql, postgres};
use proptest::prelude::*;

const HOSTILE: &str = "acme\nFORGED\r\n\u{1b}[2K\u{85}\u{2028}\u{2029}\u{202e}\u{2066}";

fn assert_one_line(text: &str) {
    let bad = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert!(!text.contains(bad), "{text:?}");
    assert!(text.chars().count() < 4_200, "{} characters", text.chars().count());
}

/// Every error of this crate that carries a text from outside.
fn errors(outside: &str) -> Vec<String> {
    let words = || outside.to_owned();
    let path = || PathBuf::from(outside);
    let refused = || io::Error::other("refused");
    let store =
        |meaning: outbox_sql::Meaning| meaning.store_error(StoreOperation::Claim, refused()).to_string();
    let json = serde_json::json!({ outside: 1 }).to_string();
    let mut errors = vec![
        FileLockError::Unusable { path: path(), source: refused() }.to_string(),
        FileLockError::NoLocks { path: path(), source: refused() }.to_string(),
        FileLockError::Replaced { path: path() }.to_string(),
        FileLockError::Replaced { path: path() }.error(StoreOperation::Verify).to_string(),
        NoPlace::NotAttached { schema: words() }.to_string(),
        NoPlace::Network { path: path(), file_system: "nfs".to_owned() }.to_string(),
        NoPlace::NoFile { path: path() }.to_string(),
        InvalidMessage::NoHeadersColumn { table: words() }.to_string(),
        InvalidMessage::PayloadNotJson { reason: words() }.to_string(),
        AppendError::database(outside, refused()).to_string(),
        InvalidTable::SameColumn { name: words(), first: "id", second: "kind" }.to_string(),
        Unreadable::new(words()).to_string(),
        headers::from_json(&json).unwrap_err().to_string(),
        text(outside.bytes().chain([0xff]).collect()).unwrap_err().to_string(),
        Finding::error(outside).to_string(),
        StoreError::permanent(StoreOperation::Check, words()).to_string(),
    ];
    errors.extend(OutboxTable::new(outside).check(Dialect::Postgres).err().map(|error| error.to_string()));
    for code in
        ["42P01", "42703", "42804", "42501", "25006", "26000", "28P01", "3D000", "22000", "40001", "XX000"]
    {
        errors.push(store(postgres::error::meaning(code, outside, "public.t", "SELECT")));
    }
    for number in [1146, 1046, 1054, 1142, 1290, 1665, 1045, 1064, 1153, 1213, 9999] {
        errors.push(store(mysql::error::meaning(number, outside, "db.t", "SELECT")));
    }
    errors
}

/// Every error is one line, whatever it tells of.
#[test]
fn every_error_is_one_line_whatever_it_tells_of() {
    for outside in [HOSTILE.to_owned(), HOSTILE.repeat(10_000)] {
        for error in errors(&outside) {
            assert_one_line(&error);
        }
    }
}

/// However much a server says, what to do is there to be read.
#[test]
fn a_long_message_of_the_server_leaves_room_for_what_to_do() {
    let long = "x".repeat(100_000);
    let denied = postgres::error::meaning("42501", &long, "public.t", "SELECT and UPDATE");
    let denied = denied.store_error(StoreOperation::Claim, io::Error::other("refused")).to_string();
    assert!(denied.ends_with(": grant SELECT and UPDATE on public.t"), "{denied}");
    let denied = mysql::error::meaning(1142, &long, "db.t", "SELECT and UPDATE");
    let denied = denied.store_error(StoreOperation::Claim, io::Error::other("refused")).to_string();
    assert!(denied.ends_with("UPDATE on its table of claims"), "{denied}");
}

proptest! {
    /// By chance, too.
    #[test]
    fn any_text_stays_on_its_errors_line(outside in proptest::collection::vec(any::<char>(), 0..64)) {
        for error in errors(&outside.into_iter().collect::<String>()) {
            assert_one_line(&error);
        }
    }
}
