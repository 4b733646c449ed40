//! The PostgreSQL store, on a pool of bb8 and on one of deadpool: the laws, every test of the suite, and what is Diesel's own.
#![cfg(all(feature = "postgres", feature = "bb8", feature = "deadpool"))]

mod append;
mod connect;
mod on_bb8;
mod on_deadpool;
mod together;
