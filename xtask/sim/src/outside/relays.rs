//! Relays and drains: put together, started, stopped.

use std::sync::Arc;

use outbox_core::{Publishing, Relay, Slices};

use super::Outside;
use crate::gate::WorldClock;
use crate::observer::WorldObserver;
use crate::publisher::WorldPublisher;
use crate::replica::{Life, Replica};
use crate::setting::Shape;
use crate::store::WorldStore;
use crate::world::World;

impl Outside {
    pub(super) fn stop_one(&self) {
        let mut world = self.world.lock();
        let now = world.now;
        let awake = |of: &Replica| of.is_working() && !of.is_drain && of.frozen_until <= now;
        let Some(replica) = Self::pick(&mut world, awake) else { return };
        let waits = world.rng.bool();
        drop(world);
        self.stop(replica, waits);
    }

    fn stop(&self, replica: usize, waits: bool) {
        let mut world = self.world.lock();
        let now = world.now;
        world.tell(|_| format!("relay {replica} is told to stop"));
        world.replicas[replica].life = Life::Stopping(now);
        let handle = world.replicas[replica].handle.take();
        drop(world);
        let Some(handle) = handle.filter(|_| waits) else { return };
        let world = self.world.clone();
        tokio::spawn(async move {
            let ended = handle.stop().await;
            let mut world = world.lock();
            let is_stopped = world.replicas[replica].life == Life::Stopped;
            if !world.is_over && (ended.is_err() || !is_stopped) {
                world.broke("a stop ends when the relay has", |_| format!("{ended:?}"));
            }
        });
    }

    pub(crate) fn stop_all(&self) {
        let working = |world: &World| {
            let of = world.replicas.iter().enumerate();
            of.filter(|(_, of)| of.is_working() && !of.is_drain).map(|(number, _)| number).collect::<Vec<_>>()
        };
        let working = working(&self.world.lock());
        for replica in working {
            self.stop(replica, true);
        }
    }

    /// Another relay on the same table, if there is room.
    pub(super) fn start(&self) {
        if self.has_room() {
            self.start_one();
        }
    }

    pub(super) fn start_one(&self) {
        let replica = self.make(false);
        let relay = self.world.lock().replicas[replica].relay.clone();
        let handle = relay.start().expect("there is a runtime");
        self.world.lock().replicas[replica].handle = Some(handle);
    }

    pub(super) fn drain(&self) {
        if !self.has_room() {
            return;
        }
        let (replica, world) = (self.make(true), self.world.clone());
        let relay = world.lock().replicas[replica].relay.clone();
        tokio::spawn(async move {
            let report = relay.drain().await;
            let mut world = world.lock();
            if !world.is_over {
                world.drained(replica, &report);
            }
        });
    }

    fn has_room(&self) -> bool {
        let world = self.world.lock();
        world.replicas.iter().filter(|of| of.is_alive()).count() < world.setting.replicas
    }

    fn make(&self, is_drain: bool) -> usize {
        let mut world = self.world.lock();
        let (replica, setting) = (world.replicas.len(), world.setting.clone());
        let seed = world.rng.u64(..);
        let shared = self.world.clone();
        let store = WorldStore { world: shared.clone(), memory: self.memory.clone(), replica };
        let publisher = WorldPublisher { world: shared.clone(), replica };
        drop(world);
        let relay = Relay::builder(store, publishing(setting.shape, publisher), setting.config.clone())
            .observer(WorldObserver { world: shared.clone(), replica })
            .clock(Arc::new(WorldClock { world: shared, replica }))
            .seed(seed)
            .build()
            .expect("the options are right");
        let mut world = self.world.lock();
        let kind = if is_drain { "drain" } else { "relay" };
        world.tell(|_| format!("{kind} {replica} is started"));
        world.replicas.push(Replica::new(relay, is_drain, &setting));
        replica
    }
}

fn publishing(shape: Shape, publisher: WorldPublisher) -> Publishing {
    match shape {
        Shape::InOrder => Publishing::in_order(publisher),
        Shape::BySubject(in_flight) => Publishing::by_subject(publisher, in_flight),
        Shape::Pipelined(in_flight) => Publishing::pipelined(publisher, in_flight),
        Shape::Slices(most) => Publishing::in_slices(publisher, Slices::default().with_max_messages(most)),
    }
}
