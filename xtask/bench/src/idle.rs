//! What a relay costs that has nothing to do, by the number of its tenants.

use std::time::Duration;

use anyhow::Result;
use outbox_core::{Relay, RelayConfig, RelayHandle};
use outbox_sqlx::OutboxTable;
use outbox_sqlx::postgres::PostgresStore;
use sqlx::postgres::PgPoolOptions;

use super::Bench;
use super::bed::{Bed, tenants};
use super::ledger::Ledger;
use super::report::{Section, number};
use super::stats::{as_f64, millis};
use super::wire::Wire;

/// The most statements in a second: the default poll interval makes five, and there is some jitter.
const STATEMENTS: f64 = 6.0;
/// The most CPU time of the client in a minute that is as good as none: a thousandth of a core.
const CLIENT: f64 = 60.0;

/// How long statements are counted.
const COUNTED: Duration = Duration::from_secs(4);

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Vec<Section>> {
    let bed = Bed::start(&[]).await?;
    let time = Duration::from_secs(bench.size(4, 20));
    let mut section = Section::new(
        "Idle",
        format!(
            "Nothing is pending, default settings. Statements are counted on the wire for {} s; then, for {} s without \
             that, CPU time.",
            COUNTED.as_secs(),
            time.as_secs()
        ),
        &["tenants", "statements/s", "round trips/s", "client CPU ms/min", "server CPU ms/min"],
    );
    let (mut statements, mut client) = (0.0, 0.0);
    let counts: &[_] =
        bench.size(&[Some(1), Some(10_000)], &[Some(1), Some(100), Some(1_000), Some(10_000), None]);
    for &count in counts {
        let name = count.map_or("discovered".to_owned(), |count| super::report::count(count as u64));
        bench.progress.tell(&format!("idle, {name} tenants"));
        let idle = idle(&bed, count, time).await?;
        statements = f64::max(statements, idle.statements);
        client = f64::max(client, idle.client);
        section.row([
            name,
            number(idle.statements),
            number(idle.round_trips),
            number(idle.client),
            number(idle.server),
        ]);
    }
    section.at_most("statements, whatever the number of tenants", STATEMENTS, statements, "/s");
    section.at_most("client CPU", CLIENT, client, "ms/min");
    Ok(vec![section])
}

struct Idle {
    statements: f64,
    round_trips: f64,
    client: f64,
    server: f64,
}

async fn idle(bed: &Bed, count: Option<usize>, time: Duration) -> Result<Idle> {
    let wire = Wire::start(bed.server.address())?;
    let running = start(&bed.server.url_by_port(wire.port(), "postgres"), count).await?;
    let asked = wire.counted();
    tokio::time::sleep(COUNTED).await;
    let asked = wire.counted().since(asked);
    running.stop().await?;
    drop(wire);

    let running = start(&bed.server.url("postgres"), count).await?;
    let cpu = bed.cpu();
    tokio::time::sleep(time).await;
    let used = bed.cpu().used_since(cpu);
    running.stop().await?;
    let minute = 60.0 / time.as_secs_f64();
    Ok(Idle {
        statements: as_f64(asked.statements) / COUNTED.as_secs_f64(),
        round_trips: as_f64(asked.round_trips) / COUNTED.as_secs_f64(),
        client: millis(used.client) * minute,
        server: used.server.map_or(f64::NAN, |server| millis(server) * minute),
    })
}

/// A relay with nothing to do, once it has begun to poll.
async fn start(url: &str, count: Option<usize>) -> Result<RelayHandle> {
    let pool = PgPoolOptions::new().max_connections(6).connect(url).await?;
    let store = PostgresStore::new(pool, OutboxTable::default())?;
    let config = RelayConfig::builder();
    let config = match count {
        Some(count) => config.tenants(tenants(count).iter()),
        None => config.discover_tenants(),
    };
    let relay = Relay::builder(store, Ledger::new(1, 0, 1), config.build()?).build()?;
    let running = relay.start()?;
    // The first probe opens a connection and prepares its statement.
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(running)
}
