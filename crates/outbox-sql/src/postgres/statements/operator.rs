//! The operators of our statements, with their schema. All have one rank, above comparisons' own: put brackets.

pub(super) const EQ: &str = "OPERATOR(pg_catalog.=)";
pub(super) const LT: &str = "OPERATOR(pg_catalog.<)";
pub(super) const LE: &str = "OPERATOR(pg_catalog.<=)";
pub(super) const GT: &str = "OPERATOR(pg_catalog.>)";
pub(super) const GE: &str = "OPERATOR(pg_catalog.>=)";
pub(super) const PLUS: &str = "OPERATOR(pg_catalog.+)";
pub(super) const TIMES: &str = "OPERATOR(pg_catalog.*)";
pub(super) const DIV: &str = "OPERATOR(pg_catalog./)";
pub(super) const MOD: &str = "OPERATOR(pg_catalog.%)";
