//! The outbox relay's reference store, in memory.
//!
//! It keeps every law that a database's store keeps, and nothing on a disk: for the tests of an application
//! and of the relay, and as the store to read before writing another.
//!
//! ```
//! use outbox_core::{NewMessage, TenantId};
//! use outbox_memory::MemoryStore;
//!
//! # fn main() -> Result<(), outbox_core::InvalidTenantId> {
//! let store = MemoryStore::new();
//! let replica = store.clone(); // the same table, as another process sees it
//!
//! let mut transaction = store.begin();
//! let id = transaction.append(NewMessage::new(TenantId::new("acme")?, "order.placed", "order-1", "{}"));
//! transaction.commit(); // dropped instead, it would be rolled back
//!
//! assert_eq!(replica.unpublished()[0].id, id);
//! # Ok(())
//! # }
//! ```

mod append;
mod claim;
mod history;
mod store;
mod table;

pub use crate::append::MemoryTransaction;
pub use crate::history::Published;
pub use crate::store::MemoryStore;
