//! How fast messages go out in order when the receiver takes its time: a millisecond for each acknowledgement.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use outbox_core::{
    Accepted, BatchOutcome, BatchPublisher, Delivery, PublishError, Publisher, Publishing, Relay,
    RelayConfig, RelayConfigBuilder, Slices,
};
use outbox_testkit::Recorder;

use super::Bench;
use super::bed::{Bed, tenants};
use super::ledger::Ledger;
use super::report::{Section, number, times};
use super::stats::{as_f64, median};

/// How long an acknowledgement takes.
const ACKNOWLEDGEMENT: Duration = Duration::from_millis(1);
/// How many times faster than strict order in one tenant the others are to be.
const FASTER: f64 = 20.0;

/// How the relay publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Strict,
    Subjects,
    Batches,
    Tenants,
}

impl How {
    const ALL: [Self; 4] = [Self::Strict, Self::Subjects, Self::Batches, Self::Tenants];

    fn name(self) -> &'static str {
        match self {
            Self::Strict => "1 tenant, one message at a time",
            Self::Subjects => "1 tenant, by subject, 32 in flight",
            Self::Batches => "1 tenant, a batch publisher, one acknowledgement for a batch",
            Self::Tenants => "100 tenants, 32 of them at once",
        }
    }

    fn tenants(self) -> usize {
        if self == Self::Tenants { 100 } else { 1 }
    }

    fn options(self, config: RelayConfigBuilder) -> RelayConfigBuilder {
        match self {
            Self::Strict | Self::Batches | Self::Subjects => config,
            Self::Tenants => config.concurrency(32),
        }
    }
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Vec<Section>> {
    let (few, many) = bench.size((400, 6_000), (2_000, 40_000));
    let repetitions = bench.size(1, 5);
    let bed = Bed::start(&[]).await?;
    let mut section = Section::new(
        "A slow publisher",
        format!(
            "Each acknowledgement takes {} ms by the timer, which is coarse. {} rows for the first line, {} for the \
             others, medians of {repetitions}. A recorder checks the order and that nothing came twice.",
            ACKNOWLEDGEMENT.as_millis(),
            number(as_f64(few)),
            number(as_f64(many)),
        ),
        &["how", "rows/s", "to strict"],
    );
    let mut rates = How::ALL.map(|_| Vec::new());
    for _ in 0..repetitions {
        for (how, rates) in How::ALL.into_iter().zip(&mut rates) {
            let rows = if how == How::Strict { few } else { many };
            let rate = run(&bed, how, rows).await.with_context(|| how.name())?;
            bench.progress.tell(&format!("slow publisher, {}: {} rows/s", how.name(), number(rate)));
            rates.push(rate);
        }
    }
    let [strict, ..] = &rates;
    let strict = median(strict);
    for (how, rates) in How::ALL.into_iter().zip(&rates) {
        let rate = median(rates);
        section.row([how.name().to_owned(), number(rate), times(rate, strict)]);
        section.bar(how.name(), rate);
        if how != How::Strict {
            section.at_least(format!("{}, to strict", how.name()), FASTER, rate / strict, "times");
        }
    }
    Ok(vec![section])
}

/// Rows in a second, in order, with one acknowledgement for each batch.
async fn run_batches(bed: &Bed, rows: u64) -> Result<f64> {
    let filled = bed.fill(0, rows, 1).await?;
    let ledger = Ledger::new(filled.first, usize::try_from(rows)?, 1);
    let config = RelayConfig::builder().tenants(tenants(1).iter()).build()?;
    let publishing = Publishing::in_slices(SlowBatches(ledger.clone()), Slices::default());
    let relay = Relay::builder(bed.store(34).await?, publishing, config).build()?;
    let begin = Instant::now();
    let running = relay.start()?;
    let complete = tokio::time::timeout(Duration::from_mins(5), ledger.wait()).await;
    running.stop().await?;
    let took = begin.elapsed();
    complete.context("not everything was published within 5 minutes")?;
    ledger.check()?;
    bed.expect(filled, 0, rows).await?;
    Ok(as_f64(rows) / took.as_secs_f64())
}

/// Rows in a second, in order.
async fn run(bed: &Bed, how: How, rows: u64) -> Result<f64> {
    if how == How::Batches {
        return run_batches(bed, rows).await;
    }
    let filled = bed.fill(0, rows, how.tenants()).await?;
    let recorder = Recorder::around(Slow);
    let recorder = if how == How::Subjects { recorder.by_subject() } else { recorder };
    let config = how.options(RelayConfig::builder().tenants(tenants(how.tenants()).iter())).build()?;
    let publishing = match how {
        How::Subjects => Publishing::by_subject(recorder.clone(), 32),
        _ => Publishing::in_order(recorder.clone()),
    };
    let relay = Relay::builder(bed.store(34).await?, publishing, config).build()?;
    let begin = Instant::now();
    let running = relay.start()?;
    let everything = recorder.wait_for_accepted(usize::try_from(rows)?);
    let complete = tokio::time::timeout(Duration::from_mins(5), everything).await;
    running.stop().await?;
    let took = begin.elapsed();
    complete.context("not everything was published within 5 minutes")?;
    let violations = recorder.violations();
    ensure!(violations.is_empty(), "out of order: {violations:?}");
    let duplicates = recorder.duplicates().len();
    ensure!(duplicates == 0, "{duplicates} messages were published more than once");
    bed.expect(filled, 0, rows).await?;
    Ok(as_f64(rows) / took.as_secs_f64())
}

/// A receiver that takes its time.
#[derive(Debug)]
struct Slow;

#[async_trait]
impl Publisher for Slow {
    async fn publish(&self, _: &Delivery<'_>) -> Result<Accepted, PublishError> {
        tokio::time::sleep(ACKNOWLEDGEMENT).await;
        Ok(Accepted)
    }
}

/// A receiver that takes its time, and a whole slice in it.
#[derive(Debug)]
struct SlowBatches(Ledger);

#[async_trait]
impl BatchPublisher for SlowBatches {
    async fn publish_batch(&self, deliveries: &[Delivery<'_>]) -> BatchOutcome {
        tokio::time::sleep(ACKNOWLEDGEMENT).await;
        for delivery in deliveries {
            self.0.record(delivery.message.id.get());
        }
        BatchOutcome::all(deliveries)
    }
}
