//! What is MySQL's and MariaDB's own: the guards of the claim, its row, plans, names and sessions.

pub(crate) mod cancel;
pub(crate) mod check;
pub(crate) mod faults;
pub(crate) mod guards;
pub(crate) mod names;
pub(crate) mod plans;
pub(crate) mod replaced;
pub(crate) mod rows;
pub(crate) mod session_settings;
pub(crate) mod turns;
