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
    /// The name is longer than the database keeps; it would cut it, and two names could become one.
    #[error("the name has {bytes} bytes; {dialect} keeps at most {max}")]
    TooLong {
        /// How many bytes the name has.
        bytes: usize,
        /// How many the database keeps.
        max: usize,
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
    match dialect.max_identifier_bytes() {
        Some(max) if name.len() > max => Err(InvalidIdentifier::TooLong { bytes: name.len(), max, dialect }),
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

/// A text as an SQL string literal, the quotes inside it doubled. For names and comments in DDL; values are
/// always bound.
///
/// PostgreSQL reads a backslash in it as itself, as `standard_conforming_strings` (its default) says.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_quoted_and_never_changed() {
        assert_eq!(quote("Order", Dialect::Postgres), r#""Order""#);
        assert_eq!(quote(r#"a"b"#, Dialect::Sqlite), r#""a""b""#);
        assert_eq!(literal("it's"), "'it''s'");
    }

    #[test]
    fn a_name_that_the_database_would_cut_is_refused() {
        assert_eq!(check(&"é".repeat(31), Dialect::Postgres), Ok(()));
        assert_eq!(
            check(&"é".repeat(32), Dialect::Postgres),
            Err(InvalidIdentifier::TooLong { bytes: 64, max: 63, dialect: Dialect::Postgres })
        );
        assert_eq!(check(&"a".repeat(64), Dialect::Sqlite), Ok(()));
    }

    #[test]
    fn an_empty_name_and_a_nul_are_refused() {
        assert_eq!(check("", Dialect::Sqlite), Err(InvalidIdentifier::Empty));
        assert_eq!(check("a\0b", Dialect::Postgres), Err(InvalidIdentifier::Nul));
    }
}
