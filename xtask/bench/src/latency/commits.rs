//! What it costs writers to wake the relay: how many commits they make in a second.

use std::time::Duration;

use anyhow::Result;
use outbox_core::{Relay, RelayConfig};
use outbox_sqlx::OutboxTable;
use outbox_sqlx::postgres::{PostgresListener, PostgresTable};

use crate::Bench;
use crate::arrivals::Arrivals;
use crate::bed::Bed;
use crate::report::{Section, number, times};
use crate::stats::{as_f64, median};
use crate::writer::{Hint, Job, TENANT, Writer};

/// How a writer's commits reach the relay.
const WAYS: [&str; 3] = ["nothing", "a notifier", "a trigger"];

pub(super) async fn measure(bench: &Bench<'_>, bed: &Bed) -> Result<Section> {
    let (time, repetitions) = bench.size((Duration::from_millis(800), 1), (Duration::from_secs(3), 5));
    let mut section = Section::new(
        "What waking costs writers",
        format!(
            "Durable commits of one message each, in another process, {} ms for each number, medians of {repetitions}; a \
             relay listens and publishes what they write.",
            time.as_millis()
        ),
        &[
            "what wakes the relay",
            "commits/s, 1 writer",
            "to nothing, 1 writer",
            "commits/s, 8 writers",
            "to nothing, 8 writers",
        ],
    );
    let mut rates = [const { [const { Vec::new() }; 2] }; WAYS.len()];
    for _ in 0..repetitions {
        for (way, rates) in WAYS.iter().zip(&mut rates) {
            for (writers, rates) in [1, 8].into_iter().zip(rates.iter_mut()) {
                let rate = rate(bed, way, writers, time).await?;
                bench.progress.tell(&format!("{writers} writers, {way}: {} commits/s", number(rate)));
                rates.push(rate);
            }
        }
    }
    let [of_nothing, ..] = &rates;
    let base = of_nothing.each_ref().map(|rates| median(rates));
    for (way, rates) in WAYS.iter().zip(&rates) {
        let [one, eight] = rates.each_ref().map(|rates| median(rates));
        let cells = [number(one), times(one, base[0]), number(eight), times(eight, base[1])];
        section.row([(*way).to_owned()].into_iter().chain(cells));
    }
    Ok(section)
}

async fn rate(bed: &Bed, way: &str, writers: usize, time: Duration) -> Result<f64> {
    bed.fill(0, 0, 1).await?;
    let table = PostgresTable::new(OutboxTable::default())?;
    let with_trigger = way == "a trigger";
    if with_trigger {
        bed.run(table.notify_trigger_ddl()).await?;
    }
    let arrivals = Arrivals::new();
    let config = RelayConfig::builder().tenants([TENANT]).build()?;
    let relay = Relay::builder(bed.store(6).await?, arrivals.clone(), config).build()?;
    let running = relay.start()?;
    let listener = PostgresListener::new(bed.options()?, &OutboxTable::default())?;
    let listening = listener.start(relay.waker())?;
    let hint = if way == "a notifier" { Hint::Notifier } else { Hint::Nothing };
    let writer = Writer::start(&bed.server.url("postgres"), Job::Flood { writers, time }, hint)?;
    let (_, count) = writer.finish().await?;
    arrivals.wait(usize::try_from(count)?).await?;
    listening.stop().await;
    running.stop().await?;
    if with_trigger {
        bed.run(table.drop_notify_trigger_ddl()).await?;
    }
    Ok(as_f64(count) / time.as_secs_f64())
}
