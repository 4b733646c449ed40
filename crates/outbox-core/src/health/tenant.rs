//! A tenant, as health sees it.

use std::fmt;
use std::time::Duration;

use crate::text::{name, words};
use crate::{HeldSubject, MessageId, TenantState};

/// A tenant, as health sees it. `Display` is one line: `caught up`, or all that is to say about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TenantHealth {
    /// Whether the store answered about it. If not, all but the state is unknown.
    pub probed: bool,
    /// Its oldest pending message; `None` is caught up, or not known because the store did not answer.
    pub oldest: Option<MessageId>,
    /// That message's age by the store's clock; `None` if there is none, or if its time cannot be read.
    pub lag: Option<Duration>,
    /// Whether that message is older than the tolerated lag.
    pub behind: bool,
    /// What the relay is doing with it.
    pub state: TenantState,
    /// Its subjects that wait after refusals, while its others go on.
    pub held_subjects: Vec<HeldSubject>,
}

/// A tenant in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TenantCondition {
    /// Its oldest pending message is older than the tolerated lag, whatever else it does.
    Behind,
    /// It waits after failures; [`TenantHealth::state`] has the last one.
    BackingOff,
    /// Some of its subjects wait after refusals; its others go on. [`TenantHealth::held_subjects`] has them.
    HoldingBack,
    /// Another relay holds it.
    HeldElsewhere,
    /// It is being swept.
    Busy,
    /// It has something pending, and its turn comes.
    Waiting,
    /// It has nothing pending.
    CaughtUp,
    /// The store did not answer, and the relay does nothing with it.
    Unknown,
}

impl TenantHealth {
    /// The tenant in a word: the first condition that holds, in the order of [`TenantCondition`].
    pub fn condition(&self) -> TenantCondition {
        match &self.state {
            _ if self.behind => TenantCondition::Behind,
            TenantState::BackingOff { .. } => TenantCondition::BackingOff,
            _ if !self.held_subjects.is_empty() => TenantCondition::HoldingBack,
            TenantState::HeldElsewhere => TenantCondition::HeldElsewhere,
            TenantState::Sweeping => TenantCondition::Busy,
            TenantState::Idle if self.oldest.is_some() => TenantCondition::Waiting,
            TenantState::Idle if self.probed => TenantCondition::CaughtUp,
            TenantState::Idle => TenantCondition::Unknown,
        }
    }
}

impl TenantCondition {
    /// In words: `behind`, `backing off`, `holding back`, `held elsewhere`, `busy`, `waiting`, `caught up` or `unknown`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Behind => "behind",
            Self::BackingOff => "backing off",
            Self::HoldingBack => "holding back",
            Self::HeldElsewhere => "held elsewhere",
            Self::Busy => "busy",
            Self::Waiting => "waiting",
            Self::CaughtUp => "caught up",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for TenantCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for TenantHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let condition = Self { behind: false, ..self.clone() }.condition();
        write!(f, "{condition}")?;
        if let TenantState::BackingOff { failures, message, reason, .. } = &self.state {
            write!(f, " after {failures} failures in a row")?;
            if let Some(message) = message {
                write!(f, ", message {message}")?;
            }
            write!(f, ": {}", words(reason))?;
        }
        if condition == TenantCondition::HoldingBack
            && let Some(first) = self.held_subjects.first()
        {
            let HeldSubject { subject_id, failures, message, reason, .. } = first;
            let (subject, reason) = (name(subject_id), words(reason));
            write!(f, " {} subjects", self.held_subjects.len())?;
            write!(f, "; {subject} after {failures} failures in a row, message {message}: {reason}")?;
        }
        match self.lag {
            Some(lag) if self.behind => write!(f, "; {} ms behind", lag.as_millis()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(state: TenantState, behind: bool) -> TenantHealth {
        let (oldest, lag) = (Some(MessageId::new(7)), Some(Duration::from_secs(61)));
        TenantHealth { probed: true, oldest, lag, behind, state, held_subjects: Vec::new() }
    }

    fn backing_off() -> TenantState {
        let (wait, reason) = (Duration::from_secs(1), "refused: full".to_owned());
        TenantState::BackingOff { failures: 3, wait, message: Some(MessageId::new(7)), reason }
    }

    /// What makes health red comes first, then what the relay does, then what the store says.
    #[test]
    fn a_tenant_has_one_word() {
        let word = |health: &TenantHealth| health.condition().as_str();
        assert_eq!(word(&health(backing_off(), true)), "behind");
        assert_eq!(word(&health(backing_off(), false)), "backing off");
        assert_eq!(word(&health(TenantState::HeldElsewhere, false)), "held elsewhere");
        assert_eq!(word(&health(TenantState::Sweeping, false)), "busy");
        assert_eq!(word(&health(TenantState::Idle, false)), "waiting");
        assert_eq!(word(&TenantHealth { probed: true, ..TenantHealth::default() }), "caught up");
        assert_eq!(word(&TenantHealth::default()), "unknown");
    }

    /// The line names the last refusal, and the lag only where it is too long.
    #[test]
    fn a_tenant_has_one_line() {
        let line = "backing off after 3 failures in a row, message 7: refused: full";
        assert_eq!(health(backing_off(), false).to_string(), line);
        assert_eq!(health(backing_off(), true).to_string(), format!("{line}; 61000 ms behind"));
        assert_eq!(health(TenantState::Sweeping, true).to_string(), "busy; 61000 ms behind");
    }
}
