//! The log as a subscriber of `tracing-subscriber` writes it, line by line.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

/// A line as a terminal shows it: nothing in it ends it, moves the cursor or turns its direction.
pub(crate) fn assert_one_line(text: &str) {
    let bad = |c: char| {
        c.is_control()
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(bad), "{text:?}");
    assert!(text.chars().count() < 4_096, "{} characters", text.chars().count());
}

/// While a process has one subscriber only, `tracing` asks the subscriber of whichever thread comes to a line first, and
/// of a test without one the answer is that nobody ever wants it. So there is another, which wants nothing.
pub(crate) fn share_the_callsites() {
    static ANOTHER: OnceLock<tracing::Dispatch> = OnceLock::new();
    ANOTHER.get_or_init(|| {
        tracing::Dispatch::new(tracing_subscriber::fmt().with_max_level(LevelFilter::OFF).finish())
    });
}

/// What a subscriber of `tracing-subscriber` writes.
#[derive(Clone, Default)]
pub(crate) struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    pub(crate) fn collect() -> (Self, tracing::subscriber::DefaultGuard) {
        share_the_callsites();
        let written = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .without_time()
            .with_ansi(false)
            .with_writer(written.clone())
            .finish();
        (written, tracing::subscriber::set_default(subscriber))
    }

    /// The relay's lines, each of which begins as the subscriber began it.
    pub(crate) fn lines(&self) -> Vec<String> {
        let written = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<_> = written.split_terminator('\n').map(str::to_owned).collect();
        for line in &lines {
            let level = line.split_whitespace().next();
            assert!(
                level.is_some_and(|level| ["ERROR", "WARN", "INFO", "DEBUG"].contains(&level)),
                "{line:?}"
            );
            assert_one_line(line);
        }
        lines
    }

    /// Those of some levels.
    pub(crate) fn lines_of(&self, levels: &[&str]) -> Vec<String> {
        let of = |line: &String| line.split_whitespace().next().is_some_and(|level| levels.contains(&level));
        self.lines().into_iter().filter(of).collect()
    }

    pub(crate) fn assert_tells(&self, what: &str) {
        let lines = self.lines();
        assert!(lines.iter().any(|line| line.contains(what)), "{what}: {lines:#?}");
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Written {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
