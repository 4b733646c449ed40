//! Real faults that are MySQL's and MariaDB's own: the whole relay, on the store, while something breaks under it.

pub(crate) mod contact;
pub(crate) mod isolation;
pub(crate) mod start;
