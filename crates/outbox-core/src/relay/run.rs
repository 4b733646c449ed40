//! The loop of a relay and of a drain: wait until something happens, ask the engine, do what it says.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::engine::{DrainReport, Effect, Engine, Event, Step};
use super::error::RelayError;
use super::lines::Lines;
use super::observe::Observers;
use super::probe::probe;
use super::shared::Shared;
use super::stop::Stop;
use super::tell::tell;
use super::turns::Turns;
use crate::status::Run as OnBoard;
use crate::{Notice, Probed, StoreError, StoreOperation};

/// One run, until `stop`; ends when it holds nothing any more.
pub(super) async fn run(shared: Arc<Shared>, stop: Stop, on_board: OnBoard) {
    let announced = Announced::begin(&shared.observers);
    Lines::started(shared.store.source());
    let (config, concurrency) = (shared.config.clone(), shared.concurrency.get());
    let engine = Engine::new(config, concurrency, shared.clock.monotonic(), shared.random());
    Loop::new(Arc::clone(&shared), stop, engine).work().await;
    Lines::stopped(shared.store.source());
    on_board.stopped();
    announced.stopped();
}

/// Publishes what is pending, once, until it is done or `stop`.
pub(super) async fn drain(shared: Arc<Shared>, stop: Stop) -> Result<DrainReport, RelayError> {
    let (config, concurrency) = (shared.config.clone(), shared.concurrency.get());
    let engine = Engine::draining(config, concurrency, shared.clock.monotonic(), shared.random());
    Loop::new(shared, stop, engine).work().await.end()
}

/// A run as observers know it: it died unless it says that it stopped.
struct Announced<'a> {
    observers: &'a Observers,
    stopped: bool,
}

impl<'a> Announced<'a> {
    fn begin(observers: &'a Observers) -> Self {
        observers.notice(&Notice::Started);
        Self { observers, stopped: false }
    }

    fn stopped(mut self) {
        self.stopped = true;
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.observers.notice(if self.stopped { &Notice::Stopped } else { &Notice::Died });
    }
}

struct Loop {
    shared: Arc<Shared>,
    stop: Stop,
    stopping: bool,
    engine: Engine,
    lines: Lines,
    turns: Turns,
    probe: Option<JoinHandle<Result<Probed, StoreError>>>,
    due: Option<Duration>,
}

impl Loop {
    fn new(shared: Arc<Shared>, stop: Stop, engine: Engine) -> Self {
        let lines = Lines::new(Arc::clone(&shared.clock));
        Self { shared, stop, stopping: false, engine, lines, turns: Turns::default(), probe: None, due: None }
    }

    async fn work(mut self) -> Engine {
        let (clock, stop) = (Arc::clone(&self.shared.clock), self.stop.clone());
        let stop_timeout = self.shared.config.stop_timeout;
        let mut wake = self.shared.wake.subscribe();
        // How long a stop waits for the messages that are being published.
        let mut deadline = pin!(async {
            stop.wait().await;
            clock.sleep(stop_timeout).await;
        });
        let mut patient = true;
        self.happened(Event::Due);
        while !self.engine.is_over() {
            let due = self.due.into_iter().chain(self.lines.due()).min();
            let rest = due.map(|due| due.saturating_sub(clock.monotonic()));
            let event = tokio::select! {
                biased;
                () = stop.wait(), if !self.stopping => Event::Stop,
                Some(ended) = self.turns.ended() => ended,
                answer = async { self.probe.as_mut()?.await.ok() }, if self.probe.is_some() => {
                    self.probe = None;
                    Event::Probed(answer.unwrap_or_else(|| {
                        Err(StoreError::transient(StoreOperation::Probe, "the probe's task died"))
                    }))
                }
                Ok(()) = wake.changed(), if !self.stopping => Event::Woken,
                () = &mut deadline, if self.stopping && patient => {
                    patient = false;
                    stop.abort().cancel();
                    continue;
                }
                () = async { clock.sleep(rest.unwrap_or_default()).await }, if rest.is_some() => Event::Due,
            };
            self.happened(event);
        }
        self.lines.tell_all();
        self.engine
    }

    /// Hands an event to the engine, after the stop if that was requested meanwhile.
    fn happened(&mut self, event: Event) {
        if self.stop.requested() && !self.stopping {
            self.stopping = true;
            self.handle(Event::Stop);
        }
        if !matches!(event, Event::Stop) {
            self.handle(event);
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.shared.clock.monotonic();
        self.lines.tell_due(now);
        for (tenant, took) in self.shared.blocking.take() {
            self.lines.blocked(&tenant, took);
        }
        let Step { effects, due } = self.engine.handle(event, now);
        self.due = due;
        for effect in effects {
            self.execute(effect);
        }
    }

    fn execute(&mut self, effect: Effect) {
        let shared = &self.shared;
        match effect {
            Effect::Probe => self.probe = Some(tokio::spawn(probe(Arc::clone(shared)))),
            Effect::Turn(turn) => self.turns.give(shared, turn, &self.stop),
            Effect::Status(tenant, state) => shared.board.set_tenant(&tenant, state),
            Effect::Held(tenant, subjects) => shared.board.set_held_subjects(&tenant, subjects),
            Effect::Tell(news) => tell(&mut self.lines, &shared.observers, &news),
        }
    }
}
