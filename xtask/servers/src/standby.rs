//! A hot standby: a read-only copy that follows its primary.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::{Folder, Postgres, account};

impl Postgres {
    /// Starts a hot standby of this server: it streams what is committed here, and only reads.
    ///
    /// # Errors
    /// If the copy or the start fails.
    pub fn standby(&self) -> Result<Self> {
        let folder = Folder::new("standby")?;
        let data = folder.path().join("data");
        let output = account::command(self.programs.join("pg_basebackup"))?
            .args(["--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--no-sync"])
            .arg("--dbname")
            .arg(self.url("postgres"))
            .arg("--pgdata")
            .arg(&data)
            .current_dir(folder.path())
            .output()
            .context("cannot run pg_basebackup")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() && Self::data_is_there(&folder), "pg_basebackup: {said}");
        Self::on(self.programs.clone(), folder, &[])
    }

    /// Waits until this standby has replayed what its primary has written so far.
    ///
    /// # Errors
    /// If it has not after 30 s.
    pub fn wait_for_replay(&self, primary: &Self) -> Result<()> {
        let written = primary.execute("postgres", "SELECT pg_current_wal_lsn()")?;
        let question = format!("SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn");
        let begin = Instant::now();
        while self.execute("postgres", &question)? != "t" {
            ensure!(begin.elapsed() < Duration::from_secs(30), "the standby does not follow its primary");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}
