//! Why a description is refused.

use outbox_core::text::{MAX_NAME, one_line};

use crate::dialect::Dialect;
use crate::identifier::InvalidIdentifier;

/// Why a description is not that of a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTable {
    /// A name cannot be one.
    #[error("the name of {part}, \"{}\": {problem}", one_line(name, MAX_NAME))]
    Name {
        /// What it names: `schema`, `table`, or what the column is for.
        part: &'static str,
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: InvalidIdentifier,
    },
    /// Two columns have one name.
    #[error(
        "{first} and {second} are both called \"{}\"; each needs a column of its own",
        one_line(name, MAX_NAME)
    )]
    SameColumn {
        /// The name.
        name: String,
        /// What the first column is for.
        first: &'static str,
        /// What the second column is for.
        second: &'static str,
    },
    /// This database does not have such a type.
    #[error("{option}: {dialect} has no such type")]
    Unsupported {
        /// Which option of the table.
        option: &'static str,
        /// Which database.
        dialect: Dialect,
    },
}
