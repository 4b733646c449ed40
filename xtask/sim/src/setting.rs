//! What a world is like: drawn from its seed before anything happens in it.

use std::time::Duration;

use fastrand::Rng;
use outbox_core::{RelayConfig, TenantId};

/// At most so many tenants.
pub(crate) const TENANTS: [&str; 4] = ["ada", "ben", "cleo", "dan"];
/// At most so many subjects of a tenant.
pub(crate) const SUBJECTS: usize = 4;

/// How messages are handed to the publisher; all relays of a world agree on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    InOrder,
    BySubject(usize),
    Pipelined(usize),
    /// So many messages at once, at most.
    Slices(usize),
}

/// How much goes wrong, in thousandths of the occasions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Faults {
    /// A store's operation fails, panics, or loses its answer.
    pub(crate) store: u32,
    /// A message is refused, a publisher panics or hangs.
    pub(crate) publisher: u32,
    /// Something takes its time.
    pub(crate) slow: u32,
    /// Everything stands still for a while, though something could go on.
    pub(crate) lag: u32,
    /// Something happens from outside.
    pub(crate) outside: u32,
}

/// What a world is like.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) shape: Shape,
    pub(crate) config: RelayConfig,
    pub(crate) concurrency: usize,
    pub(crate) tenants: Vec<TenantId>,
    pub(crate) subjects: usize,
    pub(crate) faults: Faults,
    /// At most so many relays at once.
    pub(crate) replicas: usize,
}

impl Setting {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let millis = |rng: &mut Rng, from: u64, to: u64| Duration::from_millis(rng.u64(from..=to));
        let in_flight = rng.usize(2..=4);
        let shape = match rng.u32(..8) {
            0..3 => Shape::InOrder,
            3..5 => Shape::BySubject(in_flight),
            5..7 => Shape::Pipelined(in_flight),
            _ => Shape::Slices(rng.usize(1..=4)),
        };
        let names = &TENANTS[..rng.usize(1..=TENANTS.len())];
        let (concurrency, initial) = (rng.usize(1..=3), rng.u32(1..=4));
        let builder = RelayConfig::builder()
            .concurrency(concurrency)
            .poll_interval(millis(rng, 50, 1_000))
            .initial_batch(initial)
            .max_batch(initial * rng.u32(1..=4))
            .max_batch_bytes(if rng.bool() { 32 } else { 16 * 1024 })
            .max_batch_time(millis(rng, 100, 2_000))
            .publish_timeout(millis(rng, 200, 4_000))
            .store_timeout(millis(rng, 200, 4_000))
            .stop_timeout(millis(rng, 0, 3_000))
            .max_back_off(millis(rng, 200, 8_000))
            .max_lag(millis(rng, 1_000, 5_000))
            .health_timeout(millis(rng, 100, 2_000));
        let builder = if rng.bool() { builder.discover_tenants() } else { builder.tenants(names.to_vec()) };
        let config = builder.build().expect("the options are drawn within their ranges");
        let often = |rng: &mut Rng, choices: [u32; 4]| choices[rng.usize(..4)];
        let faults = Faults {
            store: often(rng, [0, 10, 50, 200]),
            publisher: often(rng, [0, 20, 100, 300]),
            slow: often(rng, [20, 100, 300, 500]),
            lag: often(rng, [0, 5, 10, 30]),
            outside: often(rng, [80, 120, 160, 240]),
        };
        let tenants = names.iter().map(|name| TenantId::new(*name).expect("a name")).collect();
        let (subjects, replicas) = (rng.usize(1..=SUBJECTS), rng.usize(1..=3));
        Self { shape, config, concurrency, tenants, subjects, faults, replicas }
    }

    /// Which tenant that is.
    pub(crate) fn tenant(&self, id: &TenantId) -> usize {
        self.tenants.iter().position(|tenant| tenant == id).expect("nobody names another tenant")
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { shape, config, concurrency, tenants, faults, replicas, .. } = self;
        let names: Vec<&str> = tenants.iter().map(TenantId::as_str).collect();
        writeln!(
            f,
            "messages go out {shape:?}; tenants {}; {concurrency} turns at once; at most {replicas} relays",
            names.join(", ")
        )?;
        writeln!(
            f,
            "poll {:?}, batches {} to {} of {:?}, publish deadline {:?}, store deadline {:?}, stop deadline {:?}, back-off up to {:?}",
            config.poll_interval,
            config.initial_batch,
            config.max_batch,
            config.max_batch_time,
            config.publish_timeout,
            config.store_timeout,
            config.stop_timeout,
            config.max_back_off
        )?;
        write!(f, "{faults:?}, in thousandths")
    }
}
