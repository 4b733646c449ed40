//! What the store does to the database.

pub(crate) mod check;
pub(crate) mod namesakes;
pub(crate) mod plans;
pub(crate) mod settle;
pub(crate) mod uncommitted;
