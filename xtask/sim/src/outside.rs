//! What happens from outside: writers, operators, crashes, and those who ask for health.

mod relays;

use std::sync::PoisonError;
use std::time::Duration;

use outbox_core::NewMessage;
use outbox_memory::{MemoryStore, MemoryTransaction};

use crate::gate::WorldClock;
use crate::judge::subject_name;
use crate::ledger::{Message, State};
use crate::replica::{Life, Replica};
use crate::run::memory;
use crate::world::{Shared, World};

pub(crate) struct Outside {
    pub(crate) world: Shared,
    pub(crate) memory: MemoryStore,
    /// Open transactions, and the ids that they drew.
    transactions: Vec<(MemoryTransaction, Vec<i64>)>,
}

impl Outside {
    pub(crate) fn new(world: Shared) -> Self {
        let memory = memory(WorldClock { world: world.clone(), replica: usize::MAX });
        Self { world, memory, transactions: Vec::new() }
    }

    /// The first relay, and something for it to do.
    pub(crate) fn begin(&mut self) {
        self.append();
        self.start();
    }

    /// Something happens.
    pub(crate) fn something(&mut self) {
        let chosen = self.world.lock().rng.u32(..100);
        match chosen {
            0..40 => self.append(),
            40..50 => self.end_a_transaction(),
            50..60 => self.wake(),
            60..68 => self.lose_a_session(),
            68..73 => self.freeze(),
            73..75 => self.crash(),
            75..79 => self.stop_one(),
            79..85 => self.start(),
            85..88 => self.drain(),
            88..94 => self.ask_for_health(),
            94..97 => self.toggle(|world| &mut world.down.publisher, "the publisher"),
            _ => self.toggle(|world| &mut world.down.database, "the database"),
        }
    }

    fn append(&mut self) {
        let mut world = self.world.lock();
        let (tenants, subjects) = (world.setting.tenants.len(), world.setting.subjects);
        let mut messages = Vec::new();
        for _ in 0..world.rng.usize(1..=3) {
            let (tenant, subject) = (world.rng.usize(..tenants), world.rng.usize(..subjects));
            let payload = world.rng.usize(..12);
            let (name, about, kind) =
                (world.setting.tenants[tenant].clone(), subject_name(subject), "happened");
            let bytes = name.as_str().len() + about.len() + kind.len() + payload;
            let new = NewMessage::new(name, kind, about, vec![b'x'; payload]);
            let is_refused = world.setting.faults.publisher / 2;
            let refusals = if world.is_one_of(is_refused) { world.rng.u32(1..8) } else { 0 };
            messages.push((
                new,
                Message {
                    tenant,
                    subject,
                    bytes,
                    committed: None,
                    is_accepted: false,
                    is_marked: false,
                    refusals,
                },
            ));
        }
        let (stays_open, wakes) = (world.rng.u32(..4) == 0, world.rng.u32(..4) == 0);
        drop(world);
        let (mut transaction, mut ids) = (self.memory.begin(), Vec::new());
        for (new, message) in messages {
            let id = transaction.append(new).get();
            self.world.lock().ledger.appended(id, message);
            ids.push(id);
        }
        if stays_open && self.transactions.len() < 4 {
            self.world.lock().tell(|_| format!("a writer appends {ids:?} and does not commit yet"));
            self.transactions.push((transaction, ids));
        } else {
            self.commit(transaction, &ids);
            if wakes {
                self.wake();
            }
        }
    }

    fn commit(&self, transaction: MemoryTransaction, ids: &[i64]) {
        transaction.commit();
        let mut world = self.world.lock();
        let count = world.tick();
        for id in ids {
            world.ledger.committed(*id, count);
        }
        world.tell(|world| {
            let of = |id: &i64| {
                let message = world.ledger.message(*id);
                format!("{id} of {}", world.setting.tenants[message.tenant])
            };
            format!("a writer commits {}", ids.iter().map(of).collect::<Vec<_>>().join(", "))
        });
    }

    fn end_a_transaction(&mut self) {
        if self.transactions.is_empty() {
            return;
        }
        let (place, commits) = {
            let mut world = self.world.lock();
            (world.rng.usize(..self.transactions.len()), world.rng.u32(..4) > 0)
        };
        let (transaction, ids) = self.transactions.swap_remove(place);
        if commits {
            self.commit(transaction, &ids);
        } else {
            transaction.rollback();
            self.world.lock().tell(|_| format!("a writer rolls {ids:?} back"));
        }
    }

    /// One of the relays for which that holds.
    fn pick(world: &mut World, is_right: impl Fn(&Replica) -> bool) -> Option<usize> {
        let right: Vec<usize> =
            (0..world.replicas.len()).filter(|of| is_right(&world.replicas[*of])).collect();
        (!right.is_empty()).then(|| right[world.rng.usize(..right.len())])
    }

    fn wake(&self) {
        let mut world = self.world.lock();
        let now = world.now;
        let awake = |of: &Replica| of.is_working() && !of.is_drain && of.frozen_until <= now;
        let Some(replica) = Self::pick(&mut world, awake) else { return };
        world.tell(|_| format!("relay {replica} is woken"));
        let of = &mut world.replicas[replica];
        of.probes.wanted |= of.probes.failures == 0;
        of.tenants.iter_mut().filter_map(|tenant| tenant.turn.as_mut()).for_each(|turn| turn.woken = true);
        let waker = of.relay.waker();
        drop(world);
        waker.wake();
    }

    /// The database ends a session: the tenant is free at once, and its holder does not know.
    fn lose_a_session(&self) {
        let mut world = self.world.lock();
        let open = world.ledger.open.clone();
        if open.is_empty() {
            return;
        }
        let claim = open[world.rng.usize(..open.len())];
        let session = Self::lose(&mut world, claim);
        drop(world);
        drop(session);
    }

    fn lose(world: &mut World, claim: usize) -> Option<Box<dyn outbox_core::Claim>> {
        let record = &mut world.ledger.claims[claim];
        let session = record.session.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A session that is settled already is no one's any more.
        record.is_lost |= session.is_some();
        let (replica, tenant, is_lost) = (record.replica, record.tenant, session.is_some());
        if is_lost {
            world.tell(|world| {
                format!("the session of relay {replica} on {} is lost", world.setting.tenants[tenant])
            });
        }
        session
    }

    fn freeze(&self) {
        let mut world = self.world.lock();
        let Some(replica) = Self::pick(&mut world, Replica::is_alive) else { return };
        let time = Duration::from_millis(world.rng.u64(100..4_000));
        let now = world.now;
        let of = &mut world.replicas[replica];
        of.frozen_until = of.frozen_until.max(now + time);
        of.stood_still += time;
        world.tell(|_| format!("the process of relay {replica} stands still for {time:?}"));
    }

    /// The process is killed: its sessions end, and nothing of it goes on.
    fn crash(&self) {
        let mut world = self.world.lock();
        let Some(replica) = Self::pick(&mut world, Replica::is_alive) else { return };
        world.tell(|_| format!("relay {replica} is killed"));
        world.replicas[replica].life = Life::Dead;
        let open: Vec<usize> = world.ledger.open.clone();
        let mut sessions = Vec::new();
        for claim in open {
            if world.ledger.claims[claim].replica == replica {
                sessions.push(Self::lose(&mut world, claim));
                let states = &mut world.ledger.claims[claim].states;
                let in_flight = states.iter_mut().filter(|state| **state == State::InFlight);
                in_flight.for_each(|state| *state = State::Dropped);
                world.ledger.over(claim);
            }
        }
        drop(world);
        drop(sessions);
    }

    fn ask_for_health(&self) {
        let mut world = self.world.lock();
        let now = world.now;
        let asked = |of: &Replica| !of.is_dead() && !of.is_drain && of.frozen_until <= now;
        let Some(replica) = Self::pick(&mut world, asked) else { return };
        let health = world.replicas[replica].relay.health();
        drop(world);
        let world = self.world.clone();
        tokio::spawn(async move {
            let report = health.check().await;
            let mut world = world.lock();
            if !world.is_over {
                world.health_said(replica, now, &report);
            }
        });
    }

    fn toggle(&self, what: impl Fn(&mut World) -> &mut bool, name: &str) {
        let mut world = self.world.lock();
        if world.setting.faults.store == 0 {
            return;
        }
        let is_down = what(&mut world);
        *is_down = !*is_down;
        let state = if *is_down { "down" } else { "up again" };
        world.tell(|_| format!("{name} is {state}"));
    }

    /// Nothing goes wrong any more; there is a relay that works.
    pub(crate) fn heal(&mut self) {
        for (number, (transaction, ids)) in std::mem::take(&mut self.transactions).into_iter().enumerate() {
            if number % 2 == 0 {
                self.commit(transaction, &ids);
            }
        }
        let mut world = self.world.lock();
        world.is_faulty = false;
        world.ledger.heal();
        world.deliver_all();
        world.tell(|_| "nothing goes wrong any more".to_owned());
        let works = world.replicas.iter().any(|of| of.is_working() && !of.is_drain);
        drop(world);
        if !works {
            self.start_one();
        }
    }
}
