//! The MySQL store, on a pool of bb8 and on one of deadpool: the laws, every test of the suite, and what is Diesel's own.
#![cfg(all(feature = "mysql", feature = "bb8", feature = "deadpool"))]

mod append;
mod blocking;
mod connect;
mod on_bb8;
mod on_deadpool;
mod together;
