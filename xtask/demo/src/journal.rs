//! What the world received: a line for each message that a publisher accepted, in the order of acceptance.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use outbox_core::OutboxMessage;

/// The demo's broker: a file that all publishers append to.
#[derive(Debug, Clone)]
pub(super) struct Journal {
    path: PathBuf,
}

/// One acceptance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) replica: String,
    pub(super) id: i64,
    pub(super) tenant: String,
    pub(super) subject: String,
}

impl Entry {
    pub(super) fn new(replica: &str, message: &OutboxMessage) -> Self {
        Self {
            replica: replica.to_owned(),
            id: message.id.get(),
            tenant: message.tenant_id.as_str().to_owned(),
            subject: message.subject_id.clone(),
        }
    }

    fn line(&self) -> String {
        format!("{}\t{}\t{}\t{}\n", self.replica, self.id, self.tenant, self.subject)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split('\t').map(str::to_owned);
        Some(Self {
            replica: fields.next()?,
            id: fields.next()?.parse().ok()?,
            tenant: fields.next()?,
            subject: fields.next()?,
        })
    }
}

impl Journal {
    pub(super) fn new(folder: &Path) -> Self {
        Self { path: folder.join("journal") }
    }

    /// Appends a line in one write, and returns only when it is on the disk: what is accepted stays accepted,
    /// whoever is killed next.
    pub(super) fn accept(&self, entry: &Entry) -> Result<()> {
        let mut file: File = OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(entry.line().as_bytes())?;
        Ok(file.sync_data()?)
    }

    /// Everything so far.
    pub(super) fn read(&self) -> Result<Vec<Entry>> {
        let text = match std::fs::read_to_string(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            text => text?,
        };
        // A line that is being written has no end yet.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole.lines();
        lines.map(|line| Entry::parse(line).with_context(|| format!("a broken line: {line:?}"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is accepted is read back in order, without a line that is not whole yet.
    #[test]
    fn reads_what_was_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::new(folder.path());
        assert_eq!(journal.read().unwrap(), []);
        let entry =
            |id| Entry { replica: "A".into(), id, tenant: "t".into(), subject: format!("order-{id}") };
        journal.accept(&entry(2)).unwrap();
        journal.accept(&entry(1)).unwrap();
        OpenOptions::new().append(true).open(&journal.path).unwrap().write_all(b"A\t3").unwrap();
        assert_eq!(journal.read().unwrap(), [entry(2), entry(1)]);
    }
}
