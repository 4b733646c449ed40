//! Names of schemas, tables and columns: checked, then quoted. A name is never cut or changed.

use crate::dialect::Dialect;

/// Why a text cannot be the name of a schema, a table or a column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidIdentifier {
    /// The name is empty.
    #[error("a name must not be empty")]
    Empty,
    /// The name has a NUL character.
    #[error("a name must not contain a NUL character")]
    Nul,
    /// The name has a control character, such as a line break. A database would take it; a tool that reads SQL line
    /// by line may not, and no log shows it.
    #[error("a name must not contain the control character {character:?}")]
    Control {
        /// Which character.
        character: char,
    },
    /// The name is longer than the database keeps; it would cut it, and two names could become one.
    #[error("the name has a length of {length}; {dialect} keeps at most {max}")]
    TooLong {
        /// How many bytes the name has, on MySQL how many characters.
        length: usize,
        /// How many the database keeps.
        max: usize,
        /// Which database.
        dialect: Dialect,
    },
    /// The name has a character that MySQL takes in no name: one past U+FFFF, or a space at the end.
    #[error("{dialect} takes no name with {character:?} in that place")]
    Character {
        /// Which character.
        character: char,
        /// Which database.
        dialect: Dialect,
    },
}

/// Whether a database can hold this name as it is.
///
/// # Errors
/// [`InvalidIdentifier`] if it cannot.
pub fn check(name: &str, dialect: Dialect) -> Result<(), InvalidIdentifier> {
    if name.is_empty() {
        return Err(InvalidIdentifier::Empty);
    }
    if name.contains('\0') {
        return Err(InvalidIdentifier::Nul);
    }
    if let Some(character) = name.chars().find(|character| character.is_control()) {
        return Err(InvalidIdentifier::Control { character });
    }
    let length = if dialect == Dialect::MySql { name.chars().count() } else { name.len() };
    if let Some(max) = dialect.max_identifier_length().filter(|max| length > *max) {
        return Err(InvalidIdentifier::TooLong { length, max, dialect });
    }
    let beyond = name.chars().find(|character| *character > '\u{ffff}');
    let space = name.chars().next_back().filter(|last| *last == ' ');
    match beyond.or(space) {
        Some(character) if dialect == Dialect::MySql => {
            Err(InvalidIdentifier::Character { character, dialect })
        }
        _ => Ok(()),
    }
}

/// The name in quotes, those inside it doubled: capitals, spaces, quotes and keywords are kept.
pub fn quote(name: &str, dialect: Dialect) -> String {
    let mark = dialect.quote_mark();
    let mut quoted = String::with_capacity(name.len() + 2);
    quoted.push(mark);
    for character in name.chars() {
        if character == mark {
            quoted.push(mark);
        }
        quoted.push(character);
    }
    quoted.push(mark);
    quoted
}

/// A text as a string literal of PostgreSQL that no setting of the server reads differently. For values in a text of
/// several statements, which takes no parameters.
pub fn escaped_literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// A text as an SQL string literal. For names and comments; values are always bound.
///
/// No setting of the session reads it differently, but for a backslash on MySQL, where only a text of our own without
/// one is written so.
pub fn literal(text: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::Postgres if text.contains('\\') => escaped_literal(text),
        _ => format!("'{}'", text.replace('\'', "''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_quoted_and_never_changed() {
        assert_eq!(quote("Order", Dialect::Postgres), r#""Order""#);
        assert_eq!(quote(r#"a"b"#, Dialect::Sqlite), r#""a""b""#);
        assert_eq!(quote("a`b\"", Dialect::MySql), "`a``b\"`");
        for dialect in [Dialect::Postgres, Dialect::MySql, Dialect::Sqlite] {
            assert_eq!(literal("it's", dialect), "'it''s'");
        }
        assert_eq!(escaped_literal(r"it's \' x"), r"E'it''s \\'' x'");
    }

    #[test]
    fn a_name_that_the_database_would_cut_is_refused() {
        assert_eq!(check(&"é".repeat(31), Dialect::Postgres), Ok(()));
        assert_eq!(
            check(&"é".repeat(32), Dialect::Postgres),
            Err(InvalidIdentifier::TooLong { length: 64, max: 63, dialect: Dialect::Postgres })
        );
        assert_eq!(check(&"a".repeat(64), Dialect::Sqlite), Ok(()));
        assert_eq!(check(&"é".repeat(64), Dialect::MySql), Ok(()));
        assert_eq!(
            check(&"é".repeat(65), Dialect::MySql),
            Err(InvalidIdentifier::TooLong { length: 65, max: 64, dialect: Dialect::MySql })
        );
    }

    #[test]
    fn a_name_that_mysql_takes_nowhere_is_refused_there() {
        for (name, character) in [("a ", ' '), ("crab \u{1f980}", '\u{1f980}')] {
            let dialect = Dialect::MySql;
            assert_eq!(check(name, dialect), Err(InvalidIdentifier::Character { character, dialect }));
            assert_eq!(check(name, Dialect::Postgres), Ok(()));
        }
    }

    /// What a session's settings turn is the backslash.
    #[test]
    fn a_backslash_in_a_literal_is_one_whatever_the_settings() {
        assert_eq!(literal(r"a\'b", Dialect::Postgres), r"E'a\\''b'");
        assert_eq!(literal(r"a\'b", Dialect::Sqlite), r"'a\''b'");
    }

    #[test]
    fn a_control_character_is_refused_on_every_database() {
        for dialect in [Dialect::Postgres, Dialect::MySql, Dialect::Sqlite] {
            for character in ['\n', '\r', '\t', '\u{1b}', '\u{7f}', '\u{85}'] {
                let refused = check(&format!("a{character}b"), dialect);
                assert_eq!(refused, Err(InvalidIdentifier::Control { character }), "{dialect}");
            }
        }
    }

    #[test]
    fn an_empty_name_and_a_nul_are_refused() {
        assert_eq!(check("", Dialect::Sqlite), Err(InvalidIdentifier::Empty));
        assert_eq!(check("a\0b", Dialect::Postgres), Err(InvalidIdentifier::Nul));
    }
}
