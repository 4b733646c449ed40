//! Lines of one sort that come by the thousand: the first are told, then one line a second says how many more there
//! were, and the last is told again.

use std::time::Duration;

/// So many lines are told within a second before the others are counted.
pub(super) const SINGLY: usize = 20;

/// How often what was counted is told.
const INTERVAL: Duration = Duration::from_secs(1);

/// Lines of one sort. Each that comes is told once: by itself, or counted.
#[derive(Debug)]
pub(super) struct Flood<L> {
    /// When the second under way began.
    since: Duration,
    /// How many lines were told in it.
    told: usize,
    /// How many were neither told nor counted aloud, beside the last one.
    more: u64,
    /// The last one, if it was not told.
    last: Option<L>,
}

/// What there is to say at a second's end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due<'l, L> {
    /// There were so many more like this one, which is told later.
    More(u64, &'l L),
    /// The flood is over. This was its last line.
    Last(L),
}

impl<L> Flood<L> {
    pub(super) const fn new() -> Self {
        Self { since: Duration::ZERO, told: 0, more: 0, last: None }
    }

    /// A line comes. It is given back if it is to be told now.
    pub(super) fn comes(&mut self, now: Duration, line: L) -> Option<L> {
        if self.last.is_none() && now.saturating_sub(self.since) >= INTERVAL {
            (self.since, self.told) = (now, 0);
        }
        if self.told < SINGLY {
            self.told += 1;
            return Some(line);
        }
        self.more += u64::from(self.last.replace(line).is_some());
        None
    }

    /// When there is something to say.
    pub(super) fn due(&self) -> Option<Duration> {
        self.last.is_some().then(|| self.since.saturating_add(INTERVAL))
    }

    /// What there is to say now.
    pub(super) fn take_due(&mut self, now: Duration) -> Option<Due<'_, L>> {
        if self.due()? > now {
            return None;
        }
        self.since = now;
        self.take()
    }

    /// What there is to say before the end; to be asked until there is nothing.
    pub(super) fn take(&mut self) -> Option<Due<'_, L>> {
        match std::mem::take(&mut self.more) {
            0 => {
                self.told = 0;
                self.last.take().map(Due::Last)
            }
            more => self.last.as_ref().map(|last| Due::More(more, last)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    #[test]
    fn a_few_lines_are_told_as_they_come() {
        let mut flood = Flood::new();
        for second in 1..100 {
            for line in 0..SINGLY {
                assert_eq!(flood.comes(INTERVAL * second, line), Some(line));
            }
        }
        assert_eq!(flood.due(), None);
    }

    #[test]
    fn one_line_more_is_told_late_and_by_itself() {
        let mut flood = Flood::new();
        for line in 0..SINGLY {
            assert_eq!(flood.comes(MILLI, line), Some(line));
        }
        assert_eq!(flood.comes(MILLI, SINGLY), None);
        assert_eq!(flood.take_due(MILLI), None);
        assert_eq!(flood.take_due(flood.due().unwrap()), Some(Due::Last(SINGLY)));
        assert_eq!((flood.due(), flood.comes(INTERVAL * 2, 7)), (None, Some(7)));
    }

    proptest! {
        /// Every line is told once, by itself or counted; while they go on there is a line a second, and the very last
        /// one is told.
        #[test]
        fn no_line_is_lost_and_none_told_twice(gaps in proptest::collection::vec(0_u32..1_500, 1..400)) {
            let (mut flood, mut now) = (Flood::new(), Duration::ZERO);
            let (mut singly, mut counted, mut seconds) = (Vec::new(), 0, 0);
            let mut say = |due: Due<'_, usize>, singly: &mut Vec<usize>| match due {
                Due::More(more, _) => counted += more,
                Due::Last(line) => singly.push(line),
            };
            for (line, gap) in gaps.iter().enumerate() {
                let until = now + MILLI * (gap / 100);
                while let Some(due) = flood.due().filter(|due| *due <= until) {
                    now = due;
                    seconds += 1;
                    say(flood.take_due(now).expect("due"), &mut singly);
                }
                now = until;
                singly.extend(flood.comes(now, line));
            }
            while let Some(due) = flood.take() {
                say(due, &mut singly);
            }
            prop_assert_eq!(singly.len() as u64 + counted, gaps.len() as u64);
            prop_assert!(singly.is_sorted() && singly.last() == Some(&(gaps.len() - 1)));
            let whole = usize::try_from(now.as_secs()).unwrap() + 1;
            prop_assert!(seconds <= whole && singly.len() <= whole * (SINGLY + 1) + 1);
        }
    }
}
