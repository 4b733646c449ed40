//! The turns under way, each in a task of its own.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::task::{Id, JoinSet};

use super::engine::Event;
use super::error::RelayError;
use super::observe::panic_text;
use super::shared::Shared;
use super::stop::Stop;
use super::sweep::sweep;
use super::turn::{Member, Sweep, SweepEnd, Turn, TurnId};
use crate::{StoreError, StoreOperation};

#[derive(Default)]
pub(super) struct Turns {
    tasks: JoinSet<Vec<Sweep>>,
    given: HashMap<Id, TurnId>,
}

impl Turns {
    pub(super) fn give(&mut self, shared: &Arc<Shared>, turn: Turn, stop: &Stop) {
        let (shared, stop) = (Arc::clone(shared), stop.clone());
        let task = self.tasks.spawn(async move {
            let mut sweeps = Vec::with_capacity(turn.members.len());
            // Each member has a claim of its own, one after the other.
            for member in turn.members {
                sweeps.push(contained_sweep(&shared, member, &stop).await);
            }
            sweeps
        });
        self.given.insert(task.id(), turn.id);
    }

    /// Waits for the first one to end; `None` if there is none.
    ///
    /// # Cancellation
    /// Safe: no end is lost.
    pub(super) async fn ended(&mut self) -> Option<Event> {
        let (id, ended) = match self.tasks.join_next_with_id().await? {
            Ok((id, sweeps)) => (id, Ok(sweeps)),
            Err(error) => (error.id(), Err(RelayError::died(error))),
        };
        let turn = self.given.remove(&id)?;
        Some(match ended {
            Ok(sweeps) => Event::TurnEnded(turn, sweeps),
            Err(error) => Event::TurnDied(turn, error),
        })
    }
}

/// A sweep whose every panic is contained: a fault of ours backs the tenant off and does not end the relay.
async fn contained_sweep(shared: &Arc<Shared>, member: Member, stop: &Stop) -> Sweep {
    AssertUnwindSafe(sweep(shared, member, stop)).catch_unwind().await.unwrap_or_else(|panic| {
        let reason = format!("the sweep panicked: {}", panic_text(&*panic));
        let error = StoreError::permanent(StoreOperation::Claim, reason);
        Sweep::nothing(SweepEnd::Failed { error, tried: None })
    })
}
