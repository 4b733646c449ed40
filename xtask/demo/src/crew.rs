//! The replica processes, from outside: started, heard, killed, stopped.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::place::{PLACE, Place};
use super::relay::BACKS_OFF;
use super::story::Story;

/// The replicas that run. Dropping it kills them.
#[derive(Debug)]
pub(super) struct Crew<'a> {
    story: Story,
    place: &'a Place,
    folder: &'a Path,
    replicas: Vec<Replica>,
    back_offs: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Replica {
    name: String,
    process: Child,
    hearing: tokio::task::JoinHandle<()>,
}

impl<'a> Crew<'a> {
    pub(super) fn new(story: Story, place: &'a Place, folder: &'a Path) -> Self {
        Self { story, place, folder, replicas: Vec::new(), back_offs: Arc::default() }
    }

    /// Starts a replica, as a process of its own.
    pub(super) fn start(&mut self, name: &str) -> Result<()> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["replica", name])
            .arg(self.folder)
            .env(PLACE, self.place.to_text())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start a replica")?;
        let who = format!("replica {name}");
        self.story.tell(&who, &format!("started, process {}", process.id().unwrap_or_default()));
        let mut lines = BufReader::new(process.stdout.take().context("no output")?).lines();
        let (story, back_offs) = (self.story, Arc::clone(&self.back_offs));
        let hearing = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                story.tell(&who, &line);
                back_offs.fetch_add(usize::from(line.contains(BACKS_OFF)), Ordering::Relaxed);
            }
        });
        self.replicas.push(Replica { name: name.to_owned(), process, hearing });
        Ok(())
    }

    /// How often a tenant backed off, in all replicas together.
    pub(super) fn back_offs(&self) -> usize {
        self.back_offs.load(Ordering::Relaxed)
    }

    /// Kills a replica with SIGKILL and waits until it is gone.
    pub(super) async fn kill(&mut self, name: &str) -> Result<()> {
        let found = self.replicas.iter().position(|replica| replica.name == name);
        let mut replica = self.replicas.remove(found.with_context(|| format!("no replica {name}"))?);
        Ok(replica.process.kill().await?)
    }

    /// Stops the replicas in good order and waits until they have ended.
    pub(super) async fn stop(&mut self) -> Result<()> {
        for replica in &mut self.replicas {
            drop(replica.process.stdin.take());
        }
        for mut replica in self.replicas.drain(..) {
            let status = tokio::time::timeout(Duration::from_secs(30), replica.process.wait())
                .await
                .with_context(|| format!("replica {} does not stop", replica.name))??;
            ensure!(status.success(), "replica {} ended with {status}", replica.name);
            replica.hearing.await?;
        }
        Ok(())
    }
}
