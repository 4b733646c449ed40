//! The story in the terminal: when, who, what.

use std::io::{IsTerminal, Write};
use std::time::Instant;

/// Tells what happens, as it happens.
#[derive(Debug, Clone, Copy)]
pub struct Story {
    begin: Instant,
    colours: bool,
}

impl Story {
    /// Begins now.
    pub fn begin() -> Self {
        let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { begin: Instant::now(), colours }
    }

    /// Something that somebody did.
    pub fn tell(&self, who: &str, what: &str) {
        let time = self.begin.elapsed().as_secs_f64();
        // Each replica has its own colour; the writer and the demo have theirs.
        let colour = match who {
            "replica A" => "36",
            "replica B" => "33",
            "replica C" => "32",
            "writer" => "35",
            _ => "1",
        };
        let who = self.paint(colour, &format!("{who:<9}"));
        Self::line(&format!("{time:6.2}  {who}  {what}"));
    }

    /// A new scene.
    pub fn scene(&self, title: &str) {
        Self::line("");
        Self::line(&self.paint("1", &format!("        {title}")));
    }

    /// A line as it is.
    pub fn line(line: &str) {
        // A reader that went away is no reason to stop the demo.
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    }

    /// A text in a colour of the terminal, if that has any.
    pub fn paint(self, colour: &str, text: &str) -> String {
        if self.colours { format!("\u{1b}[{colour}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// How long the demo has run, in seconds.
    pub fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }
}
