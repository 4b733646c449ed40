//! What goes wrong, and what is not as it should be.

pub(crate) mod access;
pub(crate) mod bad_input;
pub(crate) mod links;
pub(crate) mod lock_file;
pub(crate) mod processes;
pub(crate) mod read_only;
pub(crate) mod replaced;
pub(crate) mod row_identity;
pub(crate) mod runtime;
