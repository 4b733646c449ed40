//! The relay's laws, one subject a file, over the memory store, with a clock that the test moves.

#![expect(clippy::unchecked_time_subtraction, reason = "a test that subtracts too much has to fail")]

mod back_off;
mod batch;
mod blocking;
mod deadlines;
mod drain;
mod flood;
mod frozen;
mod health;
mod isolation;
mod log;
mod observers;
mod order;
mod outlets;
mod outside;
mod panics;
mod pipelined;
mod pool;
mod probe;
mod replicas;
mod scale;
mod seen;
mod stage;
mod stop;
mod story;
mod subject;
mod verify;
mod wake;
mod written;
