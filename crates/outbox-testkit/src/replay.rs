//! Plays random stories on a store and compares each answer with the model's.

use std::fmt::Write as _;
use std::sync::Arc;

use outbox_core::{ClaimOutcome, Claimed, Inspect, MessageId, Settlement, Store, TenantId};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::erased::ErasedWrite;
use crate::model::{Model, REPLICAS, Step, TENANTS, excluded};
use crate::trial::{chain, first_pending, ids, message, named, probe, request, subject, tenant};
use crate::{Capability, Trial};

/// Plays random stories of up to `steps` steps on one table, each with tenants of its own: the same stories
/// in every run.
///
/// To be called from a thread that may block, with the runtime that the store runs on.
///
/// # Panics
/// If the store's answer differs from the model's: with the shortest story found that shows it.
pub fn stories(trial: &Trial, runtime: &tokio::runtime::Handle, cases: u32, steps: usize) {
    let config = Config { cases, failure_persistence: None, max_shrink_time: 15_000, ..Config::default() };
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &[11; 32]);
    let mut runner = TestRunner::new_with_rng(config, random);
    let case = std::cell::Cell::new(0_u32);
    let result = runner.run(&Step::story(steps), |story| {
        case.set(case.get() + 1);
        let played = runtime.block_on(play(trial, case.get(), &story));
        played.map_err(TestCaseError::fail)
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(reason, story)) => panic!("{reason}\nin the story:\n{}", told(&story)),
        Err(TestError::Abort(reason)) => panic!("the stories could not be played: {reason}"),
    }
}

/// The story, a numbered step a line.
fn told(story: &[Step]) -> String {
    let mut lines = String::new();
    for (number, step) in story.iter().enumerate() {
        let _ = writeln!(lines, "{:>4}. {step}", number + 1);
    }
    lines
}

/// Plays a story; an error says in which step the store differs from the model, and how.
async fn play(trial: &Trial, case: u32, story: &[Step]) -> Result<(), String> {
    let mut replicas = Vec::new();
    for _ in 0..REPLICAS {
        replicas.push(trial.store().await);
    }
    let tenants = (0..TENANTS).map(|number| tenant(&format!("story-{case}-tenant-{number}"))).collect();
    let mut play =
        Play { trial, replicas, tenants, model: Model::new(), writes: Vec::new(), claims: Vec::new() };
    for (number, step) in story.iter().enumerate() {
        let played = play.step(step).await;
        played.map_err(|differs| format!("step {}, {step}: {differs}", number + 1))?;
    }
    Ok(())
}

struct Play<'a> {
    trial: &'a Trial,
    replicas: Vec<Arc<dyn Inspect>>,
    tenants: Vec<TenantId>,
    model: Model,
    writes: Vec<Box<dyn ErasedWrite>>,
    claims: Vec<Claimed>,
}

impl Play<'_> {
    async fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Write(tenants) => self.write(tenants).await,
            Step::Commit(write) => {
                if let Some(write) = place(*write, self.writes.len()) {
                    self.commit(write).await;
                }
                Ok(())
            }
            Step::RollBack(write) => {
                if let Some(write) = place(*write, self.writes.len()) {
                    self.writes.remove(write).rollback().await;
                    self.model.roll_back(write);
                }
                Ok(())
            }
            Step::Claim(replica, tenant, limit, without) => {
                self.claim(*replica, *tenant, *limit, *without).await
            }
            Step::Verify(claim) => match place(*claim, self.claims.len()) {
                Some(claim) => failed(self.claims[claim].claim.verify().await),
                None => Ok(()),
            },
            Step::Settle(claim, mask) => self.settle(*claim, *mask).await,
            Step::Drop(claim) => {
                if let Some(claim) = place(*claim, self.claims.len()) {
                    drop(self.claims.remove(claim));
                    self.model.end_claim(claim, &[]);
                }
                Ok(())
            }
            Step::Probe(replica) => {
                let found = probe(&*self.replicas[*replica], named(&self.tenants)).await;
                let number = |id| self.tenants.iter().position(|tenant| *tenant == id);
                let found: Vec<_> = found.into_iter().map(|o| (number(o.tenant_id), o.id)).collect();
                let expected: Vec<_> = self.model.probe().into_iter().map(|(t, id)| (Some(t), id)).collect();
                same(&expected, &found)
            }
            Step::Pending(replica, tenant, limit) => {
                let answer =
                    self.replicas[*replica].pending(&first_pending(&self.tenants[*tenant], *limit)).await;
                let messages = answer.map_err(|error| chain(&error))?;
                let found: Vec<_> = messages.iter().map(|message| message.id).collect();
                same(&self.model.pending(*tenant, *limit), &found)
            }
        }
    }

    async fn write(&mut self, tenants: &[usize]) -> Result<(), String> {
        let rows: Vec<_> = tenants.iter().enumerate().map(|(n, t)| message(&self.tenants[*t], n)).collect();
        let write = if self.writes.is_empty() {
            self.trial.harness().write(&rows).await
        } else if let Ok(write) = self.trial.harness().write_beside(&rows).await {
            write
        } else {
            self.commit_all().await;
            self.trial.harness().write(&rows).await
        };
        let written: Vec<MessageId> = write.ids().to_vec();
        if written.len() != rows.len() || !self.model.may_issue(&written) {
            return Err(format!("{written:?} are not {} new ids in rising order", rows.len()));
        }
        self.model.write(tenants, &written);
        self.writes.push(write);
        Ok(())
    }

    async fn commit(&mut self, write: usize) {
        self.writes.remove(write).commit().await;
        self.model.commit(write);
    }

    async fn commit_all(&mut self) {
        while !self.writes.is_empty() {
            self.commit(0).await;
        }
    }

    async fn claim(&mut self, replica: usize, tenant: usize, limit: u32, without: u8) -> Result<(), String> {
        let store = &self.replicas[replica];
        let excluded: Vec<_> = excluded(without).map(subject).collect();
        let request = request(&self.tenants[tenant], limit).with_excluded_subjects(excluded);
        let expected = self.model.claim(tenant, limit, without);
        let outcome = match &expected {
            // A claim that was dropped may still be on its way back.
            Some(_) => self.trial.claim_by(&**store, &request, "the model says that it is free").await,
            None => self
                .trial
                .at_once("a claim on a held tenant", store.claim(&request))
                .await
                .map_err(|e| chain(&e))?,
        };
        match (expected, outcome) {
            (None, ClaimOutcome::Held) => Ok(()),
            (Some(batch), ClaimOutcome::Claimed(claimed)) => {
                same(&batch, &ids(&claimed))?;
                self.claims.push(claimed);
                Ok(())
            }
            (expected, outcome) => Err(format!("the model says {expected:?}, the store {outcome:?}")),
        }
    }

    async fn settle(&mut self, claim: usize, mask: u32) -> Result<(), String> {
        let Some(claim) = place(claim, self.claims.len()) else { return Ok(()) };
        if self.trial.facts().cannot.contains(&Capability::OverlappingWrites) {
            // A database with one writer at a time: the mark would wait for the open write.
            self.commit_all().await;
        }
        let published = self.model.picked(claim, mask);
        let claimed = self.claims.remove(claim);
        failed(claimed.claim.settle(Settlement::published(published.iter().copied())).await)?;
        self.model.end_claim(claim, &published);
        Ok(())
    }
}

/// The place of something open, out of any number; `None` if nothing is open.
fn place(any: usize, open: usize) -> Option<usize> {
    any.checked_rem(open)
}

fn failed<T>(result: Result<T, outbox_core::StoreError>) -> Result<T, String> {
    result.map_err(|error| chain(&error))
}

fn same<T: PartialEq + std::fmt::Debug>(expected: &T, found: &T) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("the model says {expected:?}, the store {found:?}")) }
}
