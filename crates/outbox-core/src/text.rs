//! Texts from outside, for a person to read: a tenant's name, a publisher's reason, a database's words.
//!
//! Whoever writes such a text into a log, an error or a page hands it through [`one_line`] first: a line break in it
//! would begin a line that nobody wrote, an escape sequence would move the terminal's cursor, and a remote body can
//! have any length. This crate's own log lines, `Display` texts and reasons have been through it. Typed fields hold
//! what they were given, whole: `OutboxMessage::subject_id`, `StoreError::message()`, `PublishError::reason()`.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;

/// How many characters of a name are written into a text: of a tenant, a subject, a table.
pub const MAX_NAME: usize = 256;

/// How many characters of a reason are written and kept: a publisher's, a panic's, an error's with all its causes.
pub const MAX_REASON: usize = 1_024;

/// Room for the words that say how long a text was that was cut.
const ROOM: usize = 40;

/// The text in one line of at most `max` characters (40, if that is fewer).
///
/// Control characters, line separators and the marks that turn the direction of writing are written as Rust writes
/// them, `\n` or `\u{1b}`. A text that is too long ends with how long it was: `… (100000 characters)`. A text that has
/// been through here once comes out of it as it is.
///
/// ```
/// use outbox_core::text::one_line;
///
/// assert_eq!(one_line("acme\nINFO all is well", 256), r"acme\nINFO all is well");
/// assert_eq!(one_line(&"x".repeat(100), 50), "xxxxxxxxxx… (100 characters)");
/// ```
pub fn one_line(text: &str, max: usize) -> Cow<'_, str> {
    let max = max.max(ROOM);
    if text.len() <= max && !text.contains(breaks_a_line) {
        return Cow::Borrowed(text);
    }
    let (mut line, mut written, mut room) = (String::new(), 0, 0);
    for (index, character) in text.chars().enumerate() {
        let before = line.len();
        if breaks_a_line(character) {
            line.extend(character.escape_default());
            written += line.len() - before;
        } else {
            line.push(character);
            written += 1;
        }
        if written <= max - ROOM {
            room = line.len();
        } else if written > max {
            line.truncate(room);
            let length = index + text.chars().skip(index).count();
            // Writing to a string does not fail.
            let _ = write!(line, "… ({length} characters)");
            break;
        }
    }
    Cow::Owned(line)
}

/// An error's text, followed by those of its causes: in one line of at most [`MAX_REASON`] characters. A cause whose text
/// the line ends with already is not said again.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    words(&text).into_owned()
}

/// A name, for a text of this crate.
pub(crate) fn name(text: &str) -> Cow<'_, str> {
    one_line(text, MAX_NAME)
}

/// What somebody said, for a text of this crate.
pub(crate) fn words(text: &str) -> Cow<'_, str> {
    one_line(text, MAX_REASON)
}

/// Whether a character is not shown where it stands: it ends the line, begins a terminal's escape sequence, or turns
/// the direction of what follows.
fn breaks_a_line(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::PublishError;

    #[test]
    fn what_is_plain_is_not_copied() {
        assert!(matches!(one_line("größer als \"das\" \\ 東京", MAX_NAME), Cow::Borrowed(_)));
    }

    #[test]
    fn what_breaks_a_line_is_written_out() {
        let line = one_line("a\r\n\t\u{1b}[31m\u{85}\u{2028}\u{202e}\u{2066}\u{200f}b", MAX_NAME);
        assert_eq!(line, r"a\r\n\t\u{1b}[31m\u{85}\u{2028}\u{202e}\u{2066}\u{200f}b");
    }

    #[test]
    fn a_text_of_the_longest_length_is_whole_and_a_longer_one_says_its_own() {
        let whole = "é".repeat(MAX_NAME);
        assert_eq!(one_line(&whole, MAX_NAME), whole);
        let cut = one_line(&"é\n".repeat(1_000_000), MAX_NAME).into_owned();
        assert!(cut.starts_with(r"é\né\n") && cut.ends_with("… (2000000 characters)"), "{cut}");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("{0}\n")]
    struct Long(&'static str, #[source] Option<Box<Long>>);

    #[test]
    fn causes_are_in_the_line_too() {
        let error = Long("one", Some(Box::new(Long("two", None))));
        assert_eq!(with_causes(&error), r"one\n: two\n");
    }

    /// `PublishError::refused(error.to_string()).with_source(error)`, and errors that say their cause themselves.
    #[test]
    fn a_cause_that_was_said_is_not_said_again() {
        let broken = || std::io::Error::other("broken pipe");
        let error = PublishError::unavailable(broken().to_string()).with_source(broken());
        assert_eq!(with_causes(&error), "unavailable: broken pipe");
        let error = PublishError::unavailable("the broker is away").with_source(broken());
        assert_eq!(with_causes(&error), "unavailable: the broker is away: broken pipe");
    }

    proptest! {
        /// One line, within its bound, the same the second time, and as it was if it was plain and short.
        #[test]
        fn any_text_becomes_one_line(
            text in proptest::collection::vec(any::<char>(), 0..200),
            max in 0_usize..300,
        ) {
            let text: String = text.into_iter().collect();
            let line = one_line(&text, max);
            prop_assert!(!line.contains(breaks_a_line) && line.lines().count() <= 1);
            prop_assert!(line.chars().count() <= max.max(ROOM), "{} characters", line.chars().count());
            prop_assert_eq!(one_line(&line, max), &*line);
            if !text.contains(breaks_a_line) && text.chars().count() <= max {
                prop_assert_eq!(&*line, &text);
            }
        }
    }
}
