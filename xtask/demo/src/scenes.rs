//! The scenes of the demo, in their order.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use outbox_core::{ClaimOutcome, ClaimRequest, Inspect, PendingRequest, TenantId};

use super::check::{Evidence, problems};
use super::control::Control;
use super::crew::Crew;
use super::database::Database;
use super::journal::{Entry, Journal};
use super::place::Place;
use super::story::Story;
use super::summary;
use super::writer::{Order, TENANTS, Writer, subject};

/// How long anything may take before the demo gives up on it.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many orders the batch has in which a replica is killed.
const BURST: usize = 12;

struct Stage<'a> {
    story: Story,
    database: &'a dyn Database,
    store: Arc<dyn Inspect>,
    journal: Journal,
    control: Control,
    crew: Crew<'a>,
    writer: Writer<'a>,
}

/// The replica that was killed, and what it had published and not yet marked.
struct Kill {
    replica: String,
    unmarked: BTreeSet<i64>,
}

/// Plays the demo and answers whether the check is well.
pub(super) async fn play(
    story: &Story,
    place: &Place,
    database: &dyn Database,
    folder: &Path,
) -> Result<bool> {
    let mut stage = Stage {
        story: *story,
        database,
        store: database.store()?,
        journal: Journal::new(folder),
        control: Control::new(folder),
        crew: Crew::new(*story, place, folder),
        writer: Writer::new(database),
    };
    stage.two_replicas_take_turns().await?;
    stage.an_order_is_refused().await?;
    stage.an_order_commits_late().await?;
    let kill = stage.a_replica_is_killed().await?;
    stage.the_rest_is_relayed().await?;
    stage.check(&kill).await
}

impl Stage<'_> {
    async fn two_replicas_take_turns(&mut self) -> Result<()> {
        self.story.scene("Orders are placed in transactions; two replicas take turns to publish them");
        self.crew.start("A")?;
        self.crew.start("B")?;
        for round in 0..8 {
            self.round(round).await?;
            tokio::time::sleep(Duration::from_millis(220)).await;
        }
        self.all_is_published().await
    }

    /// An order or two of each tenant; every other round one of them is rolled back.
    async fn round(&mut self, round: usize) -> Result<()> {
        let mut committed = Vec::new();
        for (index, tenant) in TENANTS.into_iter().enumerate() {
            for order in
                self.writer.commit(tenant, 1 + usize::from((round + index).is_multiple_of(3))).await?
            {
                committed.push(format!("{tenant} {}", order.number));
            }
        }
        let mut line = format!("commits {}", committed.join(", "));
        if round.is_multiple_of(2) {
            let tenant = TENANTS[round / 2 % TENANTS.len()];
            let order = self.writer.roll_back(tenant).await?;
            line = format!("{line}; rolls back {tenant} {}", order.number);
        }
        self.story.tell("writer", &line);
        Ok(())
    }

    async fn an_order_is_refused(&mut self) -> Result<()> {
        self.story.scene("The publisher refuses one order: its tenant backs off, the others go on");
        let refused = subject(self.writer.next_number());
        self.control.refuse(Some(&refused))?;
        let globex = self.writer.commit("globex", 2).await?;
        let acme = self.writer.commit("acme", 2).await?;
        self.story.tell("writer", &format!("commits {refused} of globex, then 3 more orders"));
        let (crew, journal) = (&self.crew, &self.journal);
        wait("the refusals", || Ok(crew.back_offs() >= 6)).await?;
        wait("the other tenant's orders", || is_in(journal, &acme)).await?;
        ensure!(
            !is_any_in(&self.journal, &globex)?,
            "an order of globex went out before the refused one that is older"
        );
        self.control.refuse(None)?;
        self.story.tell("demo", &format!("the publisher takes {refused} again"));
        self.all_is_published().await
    }

    async fn an_order_commits_late(&mut self) -> Result<()> {
        self.story.scene("An order commits later than its successors: it is published late, never skipped");
        if !self.database.has_concurrent_writers() {
            self.story
                .tell("demo", "SQLite has one writer at a time, so this cannot happen (try --postgres)");
            return Ok(());
        }
        let late = self.writer.open("initech").await?;
        let (order, id) = (late.0.subject(), late.0.id);
        self.story.tell("writer", &format!("{order} of initech has the id {id}, and is not committed yet"));
        let successors = self.writer.commit("initech", 2).await?;
        self.story.tell("writer", &format!("commits 2 orders after it, up to id {}", successors[1].id));
        let journal = &self.journal;
        wait("the orders after the late one", || is_in(journal, &successors)).await?;
        self.writer.commit_late(late).await?;
        self.story.tell("writer", &format!("commits {order} at last"));
        self.all_is_published().await
    }

    async fn a_replica_is_killed(&mut self) -> Result<Kill> {
        self.story.scene("A replica is killed in the middle of a batch: the other takes over");
        self.control.slow_down(Some("acme"))?;
        let burst = self.writer.commit("acme", BURST).await?;
        self.story.tell("writer", &format!("commits {BURST} orders of acme at once; the broker is slow now"));
        let journal = &self.journal;
        wait("the middle of the batch", || Ok(entries_of(journal, &burst)?.len() >= 4)).await?;
        let replica = entries_of(&self.journal, &burst)?[0].replica.clone();
        ensure!(self.is_held("acme").await?, "nobody holds acme in the middle of its batch");
        let pending = self.pending("acme").await?;
        ensure!(pending == BURST, "{pending} of the batch's {BURST} messages are unmarked in its middle");
        let begin = Instant::now();
        self.crew.kill(&replica).await?;
        // The other may have begun already.
        let published =
            entries_of(&self.journal, &burst)?.into_iter().filter(|entry| entry.replica == replica);
        let unmarked: BTreeSet<_> = published.map(|entry| entry.id).collect();
        ensure!(unmarked.len() < BURST, "replica {replica} had published its whole batch");
        let who = format!("replica {replica}");
        let what = format!("killed with SIGKILL: {} of {BURST} published, none marked", unmarked.len());
        self.story.tell(&who, &what);
        self.control.slow_down(None)?;
        let taken_over = || Ok(entries_of(journal, &burst)?.iter().any(|entry| entry.replica != replica));
        wait("the other replica", taken_over).await?;
        let millis = begin.elapsed().as_millis();
        self.story.tell("demo", &format!("acme is taken over {millis} ms after the kill"));
        self.all_is_published().await?;
        Ok(Kill { replica, unmarked })
    }

    /// Whether somebody holds the tenant: asked by trying to.
    async fn is_held(&self, tenant: &str) -> Result<bool> {
        let request = ClaimRequest::new(TenantId::new(tenant)?, NonZeroU32::MIN);
        Ok(matches!(self.store.claim(&request).await?, ClaimOutcome::Held))
    }

    async fn the_rest_is_relayed(&mut self) -> Result<()> {
        self.story.scene("A new replica joins, and life goes on");
        self.crew.start("C")?;
        for round in 0..4 {
            self.round(round).await?;
            tokio::time::sleep(Duration::from_millis(220)).await;
        }
        self.all_is_published().await?;
        self.crew.stop().await
    }

    /// Waits until nothing is unpublished.
    async fn all_is_published(&self) -> Result<()> {
        let begin = Instant::now();
        while self.all_pending().await? > 0 {
            ensure!(begin.elapsed() < PATIENCE, "orders are still unpublished after {PATIENCE:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    async fn all_pending(&self) -> Result<usize> {
        let mut pending = 0;
        for tenant in TENANTS {
            pending += self.pending(tenant).await?;
        }
        Ok(pending)
    }

    async fn pending(&self, tenant: &str) -> Result<usize> {
        Ok(self.store.pending(&PendingRequest::new(TenantId::new(tenant)?, NonZeroU32::MAX)).await?.len())
    }

    async fn check(&self, kill: &Kill) -> Result<bool> {
        let journal = self.journal.read()?;
        let evidence = Evidence {
            orders: self.writer.orders(),
            journal: &journal,
            killed: &kill.replica,
            unmarked: &kill.unmarked,
            pending: self.all_pending().await?,
        };
        let problems = problems(&evidence);
        summary::tell(&self.story, &evidence, &problems);
        Ok(problems.is_empty())
    }
}

/// Waits until something has happened.
async fn wait(what: &str, mut happened: impl FnMut() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    while !happened()? {
        ensure!(begin.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

fn entries_of(journal: &Journal, orders: &[Order]) -> Result<Vec<Entry>> {
    let is_one = |entry: &Entry| orders.iter().any(|order| order.id == entry.id);
    Ok(journal.read()?.into_iter().filter(is_one).collect())
}

fn is_in(journal: &Journal, orders: &[Order]) -> Result<bool> {
    let entries = journal.read()?;
    Ok(orders.iter().all(|order| entries.iter().any(|entry| entry.id == order.id)))
}

fn is_any_in(journal: &Journal, orders: &[Order]) -> Result<bool> {
    Ok(!entries_of(journal, orders)?.is_empty())
}
