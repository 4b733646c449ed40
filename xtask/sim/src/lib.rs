//! The relay in simulated worlds.
//!
//! A world is a table in memory, one to three relays on it, writers, and a publisher, on one thread and in a time of
//! its own. Everybody waits at gates: of the store, of the publisher, of the clock. A scheduler that a seed drives says
//! who goes on, what fails, what is late or lost, who stands still or is killed. Each promise is judged at each thing
//! that happens. One seed is one story.
//!
//! By file: `setting` (what a world is like), `run` (its course), `outside` (writers, operators, crashes), `world` and
//! `gate` (time, and who waits), `store`, `publisher` and `observer` (where the relay meets the world), `ledger` and
//! `replica` (what is known), `judge` (what is promised).

mod gate;
mod judge;
mod ledger;
mod observer;
mod outside;
mod publisher;
mod replica;
mod run;
mod seeds;
mod setting;
mod store;
mod world;

pub use run::{Verdict, run};
pub use seeds::{Found, many};
pub use world::Broken;
