//! Real faults that are PostgreSQL's own: the whole relay, on the store, while something breaks under it.

pub(crate) mod contact;
pub(crate) mod durability;
pub(crate) mod locks;
pub(crate) mod read_only;
pub(crate) mod rights;
pub(crate) mod rows;
pub(crate) mod settings;
pub(crate) mod start;
