//! Which tests ran on which database, read from the output of `cargo test`.

use std::fmt;

use crate::programs::Program;

/// What a test needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Database {
    Postgres,
    MySql,
    Sqlite,
    Memory,
    None,
}

const DATABASES: [Database; 5] =
    [Database::Postgres, Database::MySql, Database::Sqlite, Database::Memory, Database::None];

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postgres => "PostgreSQL",
            Self::MySql => "MariaDB or MySQL",
            Self::Sqlite => "SQLite",
            Self::Memory => "memory",
            Self::None => "no database",
        })
    }
}

impl Database {
    /// What a name says, word by word: `sqlite_conformance`, `postgres::claim`.
    fn named_in(name: &str) -> Option<Self> {
        let has = |wanted: &[&str]| {
            name.split(|c: char| !c.is_ascii_alphanumeric())
                .any(|word| wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted)))
        };
        if has(&["postgres", "postgresql", "pgbouncer"]) {
            Some(Self::Postgres)
        } else if has(&["mariadb", "mysql"]) {
            Some(Self::MySql)
        } else if has(&["sqlite"]) {
            Some(Self::Sqlite)
        } else if has(&["memory"]) {
            Some(Self::Memory)
        } else {
            None
        }
    }
}

/// Counts of the tests seen.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The test binary whose tests are listed now, as cargo names it.
    binary: String,
    binaries: Vec<Program>,
    ran: [usize; DATABASES.len()],
    failed: usize,
    ignored: usize,
}

impl Tally {
    /// Nothing seen yet, of tests in these binaries.
    pub(super) fn of(binaries: &[Program]) -> Self {
        Self { binaries: binaries.to_vec(), ..Self::default() }
    }

    /// Reads a line of the output; most say nothing about a test.
    pub(super) fn see(&mut self, line: &str) {
        let line = without_colour(line);
        let line = line.trim();
        if let Some(binary) = line.strip_prefix("Running ").or_else(|| line.strip_prefix("Doc-tests ")) {
            // Not the folder that it is in, which may be called anything.
            let (source, file) = binary.split_once(" (").unwrap_or((binary, ""));
            let file = file.rsplit('/').next().unwrap_or_default().trim_end_matches(')');
            let package =
                self.binaries.iter().find(|binary| binary.file() == file).map_or("", Program::package);
            self.binary = format!("{source} {file} {package}");
        } else if let Some((name, outcome)) =
            line.strip_prefix("test ").and_then(|test| test.rsplit_once(" ... "))
        {
            self.count(name, outcome);
        }
    }

    fn count(&mut self, name: &str, outcome: &str) {
        let failed = outcome.starts_with("FAILED");
        if outcome.starts_with("ignored") {
            self.ignored += 1;
        } else if failed || outcome.starts_with("ok") {
            self.failed += usize::from(failed);
            // A test of SQLite in memory is one of SQLite.
            let said = [Database::named_in(name), Database::named_in(&self.binary)];
            let server = said.into_iter().flatten().find(|database| *database != Database::Memory);
            let database = server.or(said[0]).or(said[1]).unwrap_or(Database::None);
            self.ran[database as usize] += 1;
        }
    }

    /// The databases that no test ran on.
    pub(super) fn databases_without_a_test(&self) -> Vec<Database> {
        let did_not_run = |database: &Database| self.ran[*database as usize] == 0;
        let databases = DATABASES.into_iter().filter(|database| *database != Database::None);
        databases.filter(did_not_run).collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: usize = self.ran.iter().sum();
        write!(f, "{all} tests ran: ")?;
        for (index, database) in DATABASES.into_iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{} on {database}", self.ran[index])?;
        }
        write!(f, "; {} failed, {} ignored", self.failed, self.ignored)
    }
}

/// The text without the colours that a terminal would show it in.
fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, code)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = code.split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(output: &str) -> String {
        let mut tally = Tally::default();
        output.lines().for_each(|line| tally.see(line));
        tally.to_string()
    }

    /// A test counts for the database that its own name says, else its binary's, else none; one that is
    /// ignored counts as that; the folder's name does not count.
    #[test]
    fn counts_each_test_once_for_its_database() {
        let output = "\
            \u{1b}[1m     Running\u{1b}[0m unittests src/lib.rs (/sqlite/target/deps/outbox_core-12ab)\n\
            test relay::polls ... ok\n\
            test result: ok. 1 passed; 0 failed\n\
            \x20    Running tests/sqlite_conformance.rs (deps/sqlite_conformance-12ab)\n\
            test claim_is_exclusive ... ok\n\
            test memory::claim_is_exclusive ... ok\n\
            test postgres_too ... \u{1b}[31mFAILED\u{1b}[0m\n\
            test slow ... ignored, takes an hour\n\
            \x20    Running tests/mysql_conformance.rs (deps/mysql_conformance-12ab)\n\
            test claim_is_exclusive ... ok\n\
            \x20  Doc-tests outbox_memory\n\
            test crates/outbox-memory/src/lib.rs - (line 3) ... ok\n\
            test crates/outbox-memory/src/lib.rs - (line 9) - compile ... ok\n";
        assert_eq!(
            tally(output),
            "7 tests ran: 1 on PostgreSQL, 1 on MariaDB or MySQL, 2 on SQLite, 2 on memory, 1 on no database; \
             1 failed, 1 ignored"
        );
    }

    /// A database that no test ran on is named.
    #[test]
    fn names_what_did_not_run() {
        let mut tally = Tally::default();
        tally.see("test sqlite::a ... ok");
        tally.see("test memory::a ... ok");
        assert_eq!(tally.databases_without_a_test(), [Database::Postgres, Database::MySql]);
    }
}
