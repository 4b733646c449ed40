//! An observer that writes everything down, and checks that each start has exactly one end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_core::{
    Headers, MessageId, Notice, Observation, Observer, Operation, OperationKind, Outcome, RefusalCause, Share,
};

#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Record>>);

#[derive(Default)]
struct Record {
    started: Vec<OperationKind>,
    ended: Vec<(OperationKind, End)>,
    notices: Vec<Told>,
    limits: Vec<usize>,
}

/// An outcome, without what it borrows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Probed,
    Claimed(usize),
    Held,
    Accepted,
    Refused(RefusalCause, String),
    Verified,
    Settled(usize),
    Failed(String),
    Abandoned,
}

/// A notice, without what it borrows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    Started,
    Stopped,
    Died,
    BackedOff { tenant: String, message: Option<MessageId>, failures: u32, wait: Duration, reason: String },
    Recovered(String),
    SubjectBackedOff { tenant: String, subject: String, message: MessageId, failures: u32 },
    SubjectRecovered(String),
    ProbeFailing,
    ProbeRecovered,
}

impl Seen {
    pub(crate) fn ends(&self, kind: OperationKind) -> Vec<End> {
        let record = self.0.lock().unwrap();
        record.ended.iter().filter(|(of, _)| *of == kind).map(|(_, end)| end.clone()).collect()
    }

    pub(crate) fn starts(&self, kind: OperationKind) -> usize {
        self.0.lock().unwrap().started.iter().filter(|of| **of == kind).count()
    }

    pub(crate) fn notices(&self) -> Vec<Told> {
        self.0.lock().unwrap().notices.clone()
    }

    /// How often each tenant's failures were told, and what was told: failures and waits.
    pub(crate) fn back_offs(&self, tenant: &str) -> Vec<(u32, Duration)> {
        let of = |told| match told {
            Told::BackedOff { tenant: of, failures, wait, .. } if of == tenant => Some((failures, wait)),
            _ => None,
        };
        self.notices().into_iter().filter_map(of).collect()
    }

    /// The tenant and the reason of the last back-off.
    pub(crate) fn last_reason(&self) -> (String, String) {
        let of = |told| match told {
            Told::BackedOff { tenant, reason, .. } => Some((tenant, reason)),
            _ => None,
        };
        self.notices().into_iter().filter_map(of).next_back().unwrap()
    }

    /// What each claim asked for.
    pub(crate) fn limits(&self) -> Vec<usize> {
        self.0.lock().unwrap().limits.clone()
    }

    /// Checks that each operation that started has ended, once.
    pub(crate) fn assert_balanced(&self) {
        let kinds = [
            OperationKind::Probe,
            OperationKind::Claim,
            OperationKind::Publish,
            OperationKind::Verify,
            OperationKind::Settle,
        ];
        for kind in kinds {
            assert_eq!(self.starts(kind), self.ends(kind).len(), "{kind}");
        }
    }
}

impl Observer for Seen {
    fn start(&self, operation: &Operation<'_>) -> Option<Box<dyn Observation>> {
        let mut record = self.0.lock().unwrap();
        record.started.push(operation.kind());
        if let Operation::Claim { tenants, .. } = operation {
            record.limits.extend(tenants.iter().map(|share| share.messages));
        }
        Some(Box::new(Watching { seen: self.clone(), kind: operation.kind() }))
    }

    fn notice(&self, notice: &Notice<'_>) {
        let told = match notice {
            Notice::Started => Told::Started,
            Notice::Stopped => Told::Stopped,
            Notice::Died => Told::Died,
            Notice::BackedOff { tenant, message, failures, wait, reason, .. } => Told::BackedOff {
                tenant: tenant.as_str().to_owned(),
                message: *message,
                failures: *failures,
                wait: *wait,
                reason: (*reason).to_owned(),
            },
            Notice::Recovered { tenant, .. } => Told::Recovered(tenant.as_str().to_owned()),
            Notice::SubjectBackedOff { tenant, subject, message, failures, .. } => Told::SubjectBackedOff {
                tenant: tenant.as_str().to_owned(),
                subject: (*subject).to_owned(),
                message: *message,
                failures: *failures,
            },
            Notice::SubjectRecovered { subject, .. } => Told::SubjectRecovered((*subject).to_owned()),
            Notice::ProbeFailing { .. } => Told::ProbeFailing,
            Notice::ProbeRecovered => Told::ProbeRecovered,
            other => panic!("a notice that this test does not know: {other:?}"),
        };
        self.0.lock().unwrap().notices.push(told);
    }
}

struct Watching {
    seen: Seen,
    kind: OperationKind,
}

impl Observation for Watching {
    fn enter(&mut self, poll: &mut dyn FnMut()) {
        poll();
    }

    fn propagate(&mut self, headers: &mut Headers) {
        headers.insert("traceparent", "added by the observer");
    }

    fn end(self: Box<Self>, outcome: &Outcome<'_>) {
        let end = match outcome {
            Outcome::Probed(_) => End::Probed,
            Outcome::Claimed { tenants, .. } => End::Claimed(messages(tenants)),
            Outcome::Held => End::Held,
            Outcome::Accepted => End::Accepted,
            Outcome::Refused { cause, error, .. } => End::Refused(*cause, error.reason().to_owned()),
            Outcome::Verified => End::Verified,
            Outcome::Settled { tenants, .. } => End::Settled(messages(tenants)),
            Outcome::Failed(error) => End::Failed(error.to_string()),
            Outcome::Abandoned => End::Abandoned,
            other => panic!("an outcome that this test does not know: {other:?}"),
        };
        self.seen.0.lock().unwrap().ended.push((self.kind, end));
    }
}

fn messages(tenants: &[Share<'_>]) -> usize {
    tenants.iter().map(|share| share.messages).sum()
}
