//! What the relay is compared with, written out here, so that each runs in the same mix.

mod cursor;
mod loops;
mod plain;

pub(super) use self::cursor::move_cursor;
pub(super) use self::loops::{create_loop, run_loop};
pub(super) use self::plain::relay_plainly;
