//! append
