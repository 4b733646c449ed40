//! What is PostgreSQL's own: the guards of the claim, names, presets and findings.

pub(crate) mod bad_input;
pub(crate) mod cancel;
pub(crate) mod check;
pub(crate) mod guards;
pub(crate) mod names;
pub(crate) mod reading;
pub(crate) mod replaced;
pub(crate) mod search_path;
pub(crate) mod settling;
pub(crate) mod statistics;
pub(crate) mod turns;
pub(crate) mod watermark;
