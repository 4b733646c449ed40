//! The MySQL store, on a pool of bb8 and on one of deadpool: the laws, the guards and the real faults.
//!
//! The tests are those of the store on sqlx. They know the store by what `driver` says.
#![cfg(all(feature = "mysql", feature = "bb8", feature = "deadpool"))]
#![expect(clippy::duplicate_mod, reason = "once for each pool")]
#![expect(clippy::incompatible_msrv, reason = "the tests are those of a crate that needs a newer compiler")]

mod append;
mod blocking;
mod connect;
mod on_bb8;
mod on_deadpool;
mod together;
