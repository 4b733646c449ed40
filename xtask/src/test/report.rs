//! What the conformance suites wrote about the laws: those that were checked, and those that were not and why.

use std::collections::BTreeMap;
use std::fmt;

/// What the suites reported. A line is `CHECKED harness law` or `NOT CHECKED harness law: why`.
#[derive(Debug, Default)]
pub(super) struct Report {
    checked: usize,
    unchecked: Vec<String>,
}

impl Report {
    /// Reads the file's text. A line of another kind counts as not checked, so that none is lost in silence.
    pub(super) fn read(text: &str) -> Self {
        let mut report = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if line.starts_with("CHECKED ") {
                report.checked += 1;
            } else {
                report.unchecked.push(line.to_owned());
            }
        }
        report.unchecked.sort();
        report.unchecked.dedup();
        report
    }

    /// The lines about what was not checked, in order.
    pub(super) fn unchecked(&self) -> &[String] {
        &self.unchecked
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "laws: {} checked, {} not checked", self.checked, self.unchecked.len())?;
        let mut reasons = BTreeMap::<&str, usize>::new();
        for line in &self.unchecked {
            let reason = line.split_once(": ").map_or(line.as_str(), |(_, reason)| reason);
            *reasons.entry(reason).or_default() += 1;
        }
        for (index, (reason, count)) in reasons.iter().enumerate() {
            let before = if index == 0 { " (" } else { "; " };
            write!(f, "{before}{count}: {reason}")?;
        }
        if reasons.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each law that was not checked counts once, under its reason.
    #[test]
    fn counts_what_was_not_checked_by_reason() {
        let report = Report::read(
            "CHECKED Sqlite a\nNOT CHECKED Sqlite b: cannot kill\nNOT CHECKED Sqlite b: cannot kill\n\
             CHECKED Postgres b\nNOT CHECKED Sqlite c: cannot kill\nNOT CHECKED Mine d: cannot wait\n",
        );
        assert_eq!(report.unchecked().len(), 3);
        assert_eq!(report.to_string(), "laws: 2 checked, 3 not checked (2: cannot kill; 1: cannot wait)");
    }

    /// With nothing left unchecked there is nothing to explain.
    #[test]
    fn says_when_all_is_checked() {
        assert_eq!(Report::read("CHECKED Memory a\n").to_string(), "laws: 1 checked, 0 not checked");
    }
}
