//! A replica: a process with a relay in it, which reports what it does on its standard output.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use outbox_core::{Notice, Observation, Observer, Operation, Outcome, Relay, RelayConfig, Store};
use tokio::io::AsyncReadExt;

use super::publisher::Shipping;
use super::writer::TENANTS;

/// How a back-off is told; the demo counts those lines.
pub(super) const BACKS_OFF: &str = "backs off";

/// Relays until the standard input ends: until the demo says so, or is gone.
pub(super) async fn run(name: &str, folder: &Path, store: Arc<dyn Store>) -> Result<()> {
    let publisher = Shipping::new(name, folder);
    // Longer than the slow batch that a replica is killed in the middle of.
    let batch_time = Duration::from_mins(1);
    let config = RelayConfig::builder().tenants(TENANTS).max_batch_time(batch_time).build()?;
    let relay = Relay::builder(store, publisher, config).observer(Reporter).build()?;
    // Nothing is ever written to it; an error is as good as its end.
    let told_to_stop = async { _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await };
    Ok(relay.run(told_to_stop).await?)
}

/// Tells the demo something; if it is gone, nobody listens, and that is no reason to panic.
fn tell(what: &str) {
    let _ = writeln!(std::io::stdout(), "{what}");
}

/// Tells what is worth telling, a line each.
#[derive(Debug)]
struct Reporter;

impl Observer for Reporter {
    fn start(&self, operation: &Operation<'_>) -> Option<Box<dyn Observation>> {
        match operation {
            Operation::Claim { tenants, .. } | Operation::Settle { tenants, .. } => {
                let tenants = tenants.iter().map(|share| share.tenant.to_string()).collect();
                Some(Box::new(Step { tenants }))
            }
            _ => None,
        }
    }

    fn notice(&self, notice: &Notice<'_>) {
        match notice {
            Notice::BackedOff { tenant, failures, wait, reason, .. } => tell(&format!(
                "{tenant}: {BACKS_OFF} {:.1} s after failure {failures}: {reason}",
                wait.as_secs_f64()
            )),
            Notice::Recovered { tenant, .. } => tell(&format!("{tenant}: is well again")),
            Notice::ProbeFailing { error, .. } => tell(&format!("cannot look for messages: {error}")),
            Notice::Stopped => tell("stopped, holds nothing"),
            _ => {}
        }
    }
}

struct Step {
    tenants: Vec<String>,
}

impl Observation for Step {
    fn propagate(&mut self, _: &mut outbox_core::Headers) {}

    fn enter(&mut self, poll: &mut dyn FnMut()) {
        poll();
    }

    fn end(self: Box<Self>, outcome: &Outcome<'_>) {
        match outcome {
            Outcome::Settled { tenants, .. } => {
                for share in tenants.iter().filter(|share| share.messages > 0) {
                    tell(&format!("{}: published and marked {}", share.tenant, share.messages));
                }
            }
            Outcome::Failed(error) => tell(&format!("{}: {error}", self.tenants.join(", "))),
            _ => {}
        }
    }
}
