//! What a harness can do beside the necessary, and how it is reported where it cannot.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;

/// Something that a law needs of a harness and that not every database offers.
///
/// A harness lists what it cannot do in [`Harness::CANNOT`](crate::Harness::CANNOT); it has the hook of each other one. Laws that
/// need what is listed are reported as *not checked*, and the hook is called all the same, to see that it
/// refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// [`Harness::kill_sessions`](crate::Harness::kill_sessions).
    KillSessions,
    /// [`Harness::leftovers`](crate::Harness::leftovers).
    CountLeftovers,
    /// [`Harness::write_beside`](crate::Harness::write_beside).
    OverlappingWrites,
    /// [`Harness::write_hostile`](crate::Harness::write_hostile).
    HostileRow,
    /// [`Harness::set_read_only`](crate::Harness::set_read_only).
    ReadOnly,
    /// [`Harness::another_table`](crate::Harness::another_table).
    AnotherTable,
    /// [`Harness::delete_published`](crate::Harness::delete_published).
    DeletePublished,
    /// [`Harness::skip_ids`](crate::Harness::skip_ids).
    LargeIds,
}

impl Capability {
    /// Every one: what a harness cannot do that has the necessary methods only.
    pub const ALL: &'static [Self] = &[
        Self::KillSessions,
        Self::CountLeftovers,
        Self::OverlappingWrites,
        Self::HostileRow,
        Self::ReadOnly,
        Self::AnotherTable,
        Self::DeletePublished,
        Self::LargeIds,
    ];
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KillSessions => {
                "end the sessions that hold claims (Capability::KillSessions, hook kill_sessions)"
            }
            Self::CountLeftovers => "count what is left over (Capability::CountLeftovers, hook leftovers)",
            Self::OverlappingWrites => {
                "have two writes open at once (Capability::OverlappingWrites, hook write_beside)"
            }
            Self::HostileRow => {
                "write a row that cannot be read (Capability::HostileRow, hook write_hostile)"
            }
            Self::ReadOnly => "make the table read-only (Capability::ReadOnly, hook set_read_only)",
            Self::AnotherTable => {
                "make another table in the same database (Capability::AnotherTable, hook another_table)"
            }
            Self::DeletePublished => {
                "delete what is published (Capability::DeletePublished, hook delete_published)"
            }
            Self::LargeIds => "skip to large ids (Capability::LargeIds, hook skip_ids)",
        })
    }
}

/// The answer of a hook that the harness does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsupported;

/// Whether the harness can do it; if not, the law is reported as not checked.
///
/// # Panics
/// If the hook's answer contradicts what the harness declares.
pub(crate) fn answered<T>(
    harness: &str,
    law: &str,
    capability: &(impl fmt::Display + fmt::Debug),
    declared_impossible: bool,
    answer: Result<T, Unsupported>,
) -> Option<T> {
    match (declared_impossible, answer) {
        (false, Ok(answer)) => Some(answer),
        (true, Err(Unsupported)) => {
            report(&format!("NOT CHECKED {harness} {law}: the harness cannot {capability}"), true);
            None
        }
        (true, Ok(_)) => {
            panic!("the harness lists {capability:?} in CANNOT, yet its hook did it: take it off the list")
        }
        (false, Err(Unsupported)) => panic!(
            "the harness does not list {capability:?} in CANNOT, yet its hook is unsupported: list it or write \
             the hook"
        ),
    }
}

/// Reports a law that was checked and kept.
pub(crate) fn checked(harness: &str, law: &str) {
    report(&format!("CHECKED {harness} {law}"), false);
}

/// Writes a line to the file that `OUTBOX_TEST_REPORT` names, if it names one, and aloud to the real
/// standard error: the test runner captures what is printed with macros, and would swallow it.
fn report(line: &str, aloud: bool) {
    let line = format!("{line}\n");
    if aloud {
        // Nothing can be done about a closed standard error.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    if let Some(path) = std::env::var_os("OUTBOX_TEST_REPORT").filter(|path| !path.is_empty()) {
        // One write of one line: appends of parallel tests and processes do not mix.
        let written = OpenOptions::new().create(true).append(true).open(&path);
        if let Err(error) = written.and_then(|mut file| file.write_all(line.as_bytes())) {
            panic!("OUTBOX_TEST_REPORT names {}, which cannot be written: {error}", path.display());
        }
    }
}
