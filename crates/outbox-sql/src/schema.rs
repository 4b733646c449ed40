//! The tables' DDL, as functions of their description. The files beside this one have it for the default
//! table, to read and to copy.

pub mod mysql;
pub mod postgres;
pub mod sqlite;
