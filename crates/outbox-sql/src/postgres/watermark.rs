//! Where a claim begins to read, so that it does not walk the dead index entries of what was settled before.
//!
//! A tenant's *watermark* is the id of a message that this store settled, below which nothing of the tenant is
//! pending. It is kept in memory and changes nothing in the database. Why nothing is overtaken by it:
//!
//! 1. An `INSERT` takes ROW EXCLUSIVE on the table before it draws its id, and a transaction gives its locks back
//!    only after its rows are visible. The sequence's last number L is read first, and then who holds such a lock.
//!    Whoever drew an id up to L is among these or has ended; whoever comes later draws a higher one. So, once a
//!    later look finds none of them, every id up to L is final, committed or not: L is the *safe id*.
//! 2. A claim notes the safe id before it sends its read, whose snapshot (READ COMMITTED) is therefore younger: it
//!    sees every message up to the safe id that there will ever be.
//! 3. When the commit of a claim's marks is confirmed, the handed-out messages up to the first that was not settled
//!    are behind us. The last of these that is not above the noted safe id is the new watermark: what is pending
//!    below it would have been handed out.
//!
//! It holds where every id comes from the column's own sequence, one number at a time, in an `INSERT` into this
//! table itself. An id drawn by hand, or a row that is made pending again, is found by the next look from zero; so is
//! one from a sequence that was set back, until the safe id, which serves no longer than that, was asked for anew.
//! A claim reads from the watermark's own row on, not from the one after it: if a crash or a fail-over took marks
//! back, the latest went first, that row is pending again, and the claim looks from zero.

mod marks;
mod remembering;
mod safe;
mod settings;
mod state;

pub(super) use self::remembering::Remembering;
pub(super) use self::safe::{SafeAnswer, Suitability};
pub use self::settings::Watermark;
pub(super) use self::state::{ProbeStart, Watermarks};
