//! What is PostgreSQL's own: the guards of the claim, plans, names, presets and findings.
#![cfg(feature = "postgres")]

mod advice;
mod append;
mod bad_input;
mod cancel;
mod check;
#[path = "../support/driver.rs"]
mod driver;
mod guards;
mod holder;
mod names;
mod plans;
mod proxy;
mod reading;
mod replaced;
mod search_path;
mod settling;
#[path = "../support/postgres.rs"]
mod support;
mod turns;
mod watermark;
mod watermark_plans;
mod watermark_writers;
