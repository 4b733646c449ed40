//! The law that covers what no other one thought of.

use tokio::runtime::Handle;

use crate::trial::joined;
use crate::{Trial, replay};

/// Random stories of writers and two replicas end as the model says, step by step.
pub async fn random_stories_agree_with_the_model(trial: Trial) {
    let cases = crate::conformance::number_from_env("OUTBOX_TEST_CASES").unwrap_or(trial.facts().cases);
    let runtime = Handle::current();
    joined(tokio::task::spawn_blocking(move || replay::stories(&trial, &runtime, cases, STEPS)).await);
}

/// How long a story may be.
const STEPS: usize = 120;
