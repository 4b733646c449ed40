//! Changes of state, told to the log and to the observers.

use super::engine::News;
use super::lines::Lines;
use super::observe::Observers;
use crate::{HeldSubject, Notice};

pub(super) fn tell(lines: &mut Lines, observers: &Observers, news: &News) {
    observers.notice(&match news {
        News::BackedOff { tenant, message, failures, wait, reason } => {
            let (message, failures, wait) = (*message, *failures, *wait);
            lines.backed_off(tenant, message, failures, wait, reason);
            Notice::BackedOff { tenant, message, failures, wait, reason }
        }
        News::Recovered { tenant } => {
            lines.recovered(tenant);
            Notice::Recovered { tenant }
        }
        News::SubjectBackedOff { tenant, subject } => {
            let HeldSubject { subject_id: subject, failures, wait, message, reason } = subject;
            let (message, failures, wait) = (*message, *failures, *wait);
            lines.held_back(tenant, subject, message, failures, wait, reason);
            Notice::SubjectBackedOff { tenant, subject, message, failures, wait, reason }
        }
        News::SubjectRecovered { tenant, subject } => {
            lines.subject_recovered(tenant, subject);
            Notice::SubjectRecovered { tenant, subject }
        }
        News::ProbesFail { error } => {
            Lines::probes_fail(error);
            Notice::ProbeFailing { error }
        }
        News::ProbesRecovered => {
            Lines::probes_succeed();
            Notice::ProbeRecovered
        }
        News::AnotherServer => {
            Lines::another_server();
            Notice::AnotherServer
        }
    });
}
