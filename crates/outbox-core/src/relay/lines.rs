//! The relay's own lines in the log: what changed, once. Texts from outside are values, in one line. Where thousands
//! of tenants change within a second, most of them are counted.

mod flood;

use std::sync::Arc;
use std::time::Duration;

use crate::text::{name, with_causes, words};
use crate::{Clock, MessageId, StoreError, TenantId};
use flood::{Due, Flood};

/// What a run writes into the log.
pub(super) struct Lines {
    clock: Arc<dyn Clock>,
    backed_off: Flood<Line>,
    recovered: Flood<Line>,
    held_back: Flood<Line>,
    subject_recovered: Flood<Line>,
    blocked: Flood<Line>,
}

/// A line that may come by the thousand.
#[derive(Debug)]
enum Line {
    BackedOff { tenant: TenantId, message: Option<MessageId>, reason: String },
    Recovered { tenant: TenantId },
    HeldBack { tenant: TenantId, subject: String, message: MessageId, reason: String },
    SubjectRecovered { tenant: TenantId, subject: String },
    Blocked { tenant: TenantId, took: Duration },
}

impl Lines {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let (backed_off, recovered) = (Flood::new(), Flood::new());
        let (held_back, subject_recovered, blocked) = (Flood::new(), Flood::new(), Flood::new());
        Self { clock, backed_off, recovered, held_back, subject_recovered, blocked }
    }

    /// When there is something to say again.
    pub(super) fn due(&self) -> Option<Duration> {
        let (tenants, subjects) =
            ([&self.backed_off, &self.recovered, &self.blocked], [&self.held_back, &self.subject_recovered]);
        tenants.into_iter().chain(subjects).filter_map(Flood::due).min()
    }

    /// Says what is due.
    pub(super) fn tell_due(&mut self, now: Duration) {
        for flood in self.floods() {
            if let Some(due) = flood.take_due(now) {
                due.tell();
            }
        }
    }

    /// Says all that was not said: the run ends.
    pub(super) fn tell_all(&mut self) {
        for flood in self.floods() {
            while let Some(due) = flood.take() {
                due.tell();
            }
        }
    }

    fn floods(&mut self) -> [&mut Flood<Line>; 5] {
        let Self { backed_off, recovered, held_back, subject_recovered, blocked, .. } = self;
        [backed_off, recovered, held_back, subject_recovered, blocked]
    }

    pub(super) fn started(source: &str) {
        tracing::info!(source = &*name(source), "outbox relay started");
    }

    pub(super) fn stopped(source: &str) {
        tracing::info!(source = &*name(source), "outbox relay stopped");
    }

    pub(super) fn probes_fail(error: &StoreError) {
        tracing::warn!(error = with_causes(error), "outbox probes fail; no new work is found meanwhile");
    }

    pub(super) fn probes_succeed() {
        tracing::info!("outbox probes succeed again");
    }

    pub(super) fn another_server() {
        tracing::info!("another server answers the outbox relay: one was restarted, or another took over");
    }

    /// A tenant backs off. The first time in a row is a warning, each further one is a debug line.
    pub(super) fn backed_off(
        &mut self,
        tenant: &TenantId,
        message: Option<MessageId>,
        failures: u32,
        wait: Duration,
        reason: &str,
    ) {
        if failures == 1 {
            let line = Line::BackedOff { tenant: tenant.clone(), message, reason: reason.to_owned() };
            comes(&*self.clock, &mut self.backed_off, line);
        } else {
            let (tenant, reason) = (name(tenant.as_str()), words(reason));
            tracing::debug!(
                tenant = &*tenant,
                failures,
                ?wait,
                reason = &*reason,
                "outbox tenant backs off further"
            );
        }
    }

    pub(super) fn recovered(&mut self, tenant: &TenantId) {
        comes(&*self.clock, &mut self.recovered, Line::Recovered { tenant: tenant.clone() });
    }

    /// A subject is held back. The first time in a row is a warning, each further one is a debug line.
    pub(super) fn held_back(
        &mut self,
        tenant: &TenantId,
        subject: &str,
        message: MessageId,
        failures: u32,
        wait: Duration,
        reason: &str,
    ) {
        if failures == 1 {
            let (tenant, subject, reason) = (tenant.clone(), subject.to_owned(), reason.to_owned());
            comes(&*self.clock, &mut self.held_back, Line::HeldBack { tenant, subject, message, reason });
        } else {
            let (tenant, subject, reason) = (&*name(tenant.as_str()), &*name(subject), &*words(reason));
            tracing::debug!(tenant, subject, failures, ?wait, reason, "outbox subject waits on");
        }
    }

    pub(super) fn subject_recovered(&mut self, tenant: &TenantId, subject: &str) {
        let line = Line::SubjectRecovered { tenant: tenant.clone(), subject: subject.to_owned() };
        comes(&*self.clock, &mut self.subject_recovered, line);
    }

    /// The publisher kept its thread for so long, with a message of this tenant's.
    pub(super) fn blocked(&mut self, tenant: &TenantId, took: Duration) {
        comes(&*self.clock, &mut self.blocked, Line::Blocked { tenant: tenant.clone(), took });
    }
}

fn comes(clock: &dyn Clock, flood: &mut Flood<Line>, line: Line) {
    let now = clock.monotonic();
    if let Some(due) = flood.take_due(now) {
        due.tell();
    }
    if let Some(line) = flood.comes(now, line) {
        line.tell();
    }
}

impl Due<'_, Line> {
    fn tell(&self) {
        match self {
            Self::Last(line) => line.tell(),
            Self::More(more, like) => like.tell_more(*more),
        }
    }
}

impl Line {
    fn tell(&self) {
        match self {
            Self::BackedOff { tenant, message, reason } => {
                let (tenant, reason, id) =
                    (name(tenant.as_str()), words(reason), message.map(MessageId::get));
                let (tenant, reason) = (&*tenant, &*reason);
                if let Some(id) = id {
                    tracing::warn!(
                        tenant,
                        id,
                        reason,
                        "outbox tenant backs off; its message is tried again until it is accepted"
                    );
                } else {
                    tracing::warn!(tenant, reason, "outbox tenant backs off");
                }
            }
            Self::Recovered { tenant } => {
                tracing::info!(tenant = &*name(tenant.as_str()), "outbox tenant recovered");
            }
            Self::HeldBack { tenant, subject, message, reason } => {
                let (tenant, subject, reason) = (name(tenant.as_str()), name(subject), words(reason));
                let (tenant, subject, reason, id) = (&*tenant, &*subject, &*reason, message.get());
                tracing::warn!(
                    tenant,
                    subject,
                    id,
                    reason,
                    "outbox subject is held back; its message is tried again until it is accepted"
                );
            }
            Self::SubjectRecovered { tenant, subject } => {
                let (tenant, subject) = (name(tenant.as_str()), name(subject));
                tracing::info!(tenant = &*tenant, subject = &*subject, "outbox subject recovered");
            }
            Self::Blocked { tenant, took } => {
                tracing::warn!(
                    tenant = &*name(tenant.as_str()),
                    ?took,
                    "outbox publisher blocked its thread, and others may wait: it must await, or use another thread"
                );
            }
        }
    }

    /// There were so many more like this one.
    fn tell_more(&self, more: u64) {
        match self {
            Self::BackedOff { .. } => tracing::warn!(more, "more outbox tenants back off"),
            Self::Recovered { .. } => tracing::info!(more, "more outbox tenants recovered"),
            Self::HeldBack { .. } => tracing::warn!(more, "more outbox subjects are held back"),
            Self::SubjectRecovered { .. } => tracing::info!(more, "more outbox subjects recovered"),
            Self::Blocked { .. } => {
                tracing::warn!(more, "outbox publisher blocked its thread for more tenants");
            }
        }
    }
}
