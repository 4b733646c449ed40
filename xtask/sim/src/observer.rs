//! What a relay tells its observers, and how each operation ended as the relay heard it.

use outbox_core::{
    Headers, MessageId, Notice, Observation, Observer, Operation, OperationKind, Outcome, Share,
};

use crate::judge::End;
use crate::ledger::Heard;
use crate::world::{Shared, World};

#[derive(Debug, Clone)]
pub(crate) struct WorldObserver {
    pub(crate) world: Shared,
    pub(crate) replica: usize,
}

struct Watched {
    world: Shared,
    replica: usize,
    kind: OperationKind,
    tenant: usize,
    message: i64,
}

impl Observer for WorldObserver {
    fn start(&self, operation: &Operation<'_>) -> Option<Box<dyn Observation>> {
        let mut world = self.world.lock();
        if world.is_over {
            return None;
        }
        // A turn has one member.
        let share = operation.tenants().first();
        let (tenant, messages) =
            share.map_or((0, 0), |share| (world.setting.tenant(share.tenant), share.messages));
        let mut of_message = 0;
        match operation {
            Operation::Probe { .. } => world.probe_begins(self.replica),
            Operation::Claim { .. } => world.turn_begins(self.replica, tenant, messages),
            Operation::Publish { message, .. } => of_message = message.id.get(),
            Operation::Verify { .. } => world.verify_begins(self.replica, tenant),
            Operation::Settle { .. } => world.settle_begins(self.replica, tenant, messages),
            _ => {}
        }
        drop(world);
        let (world, replica, kind) = (self.world.clone(), self.replica, operation.kind());
        let message = of_message;
        Some(Box::new(Watched { world, replica, kind, tenant, message }))
    }

    fn notice(&self, notice: &Notice<'_>) {
        let mut world = self.world.lock();
        if !world.is_over {
            world.told(self.replica, notice);
        }
    }
}

impl Observation for Watched {
    fn propagate(&mut self, _headers: &mut Headers) {}

    fn enter(&mut self, poll: &mut dyn FnMut()) {
        poll();
    }

    fn end(self: Box<Self>, outcome: &Outcome<'_>) {
        let mut world = self.world.lock();
        if !world.is_over {
            self.ended(&mut world, outcome);
        }
    }
}

impl Watched {
    fn ended(&self, world: &mut World, outcome: &Outcome<'_>) {
        let Self { replica, tenant, message, .. } = *self;
        match (self.kind, outcome) {
            (OperationKind::Probe, Outcome::Probed(oldest)) => world.probe_answered(replica, oldest),
            (OperationKind::Probe, Outcome::Failed(_)) => world.probe_failed(replica),
            (OperationKind::Claim, Outcome::Claimed { tenants, .. }) => {
                world.turn_claimed(replica, tenant, count(tenants));
            }
            (OperationKind::Claim, Outcome::Held) => world.turn_ends(replica, tenant, End::Held),
            (OperationKind::Claim | OperationKind::Verify, Outcome::Failed(error)) => {
                let error = error.to_string();
                world.tell(|_| format!("relay {replica} hears: {error}"));
                world.turn_ends(replica, tenant, End::NoClaim);
            }
            (OperationKind::Verify, Outcome::Verified) => world.verified(replica, tenant),
            (OperationKind::Publish, Outcome::Accepted) => {
                world.publish_heard(replica, message, Heard::Accepted);
            }
            (OperationKind::Publish, Outcome::Refused { .. }) => {
                world.publish_heard(replica, message, Heard::Refused);
            }
            (OperationKind::Publish, Outcome::Abandoned) => {
                world.publish_heard(replica, message, Heard::Abandoned);
            }
            (OperationKind::Settle, Outcome::Settled { tenants, .. }) => {
                world.settle_ended(replica, tenant, Some(count(tenants)));
            }
            (OperationKind::Settle, Outcome::Failed(error)) => {
                let error = error.to_string();
                world.tell(|_| format!("relay {replica} hears: {error}"));
                world.settle_ended(replica, tenant, None);
            }
            (kind, outcome) => {
                let message = MessageId::new(message);
                world.broke("every operation ends in one of its ways", |_| {
                    format!("{kind} of {message}: {outcome:?}")
                });
            }
        }
    }
}

/// How many messages these are in all.
fn count(shares: &[Share<'_>]) -> usize {
    shares.iter().map(|share| share.messages).sum()
}
