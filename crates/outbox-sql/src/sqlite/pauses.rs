//! How long to wait before a busy database is asked again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(2);
const LAST: Duration = Duration::from_millis(50);

/// The pauses between attempts: from 2 ms, each twice as long as the one before, up to 50 ms.
#[derive(Debug, Clone)]
pub struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Pauses {
    /// The next one.
    pub fn next_pause(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(LAST);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let mut pauses = Pauses::default();
        let first = [0; 7].map(|_| pauses.next_pause().as_millis());
        assert_eq!(first, [2, 4, 8, 16, 32, 50, 50]);
    }
}
