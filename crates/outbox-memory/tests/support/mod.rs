//! The harness of the reference store: it can do everything.

use outbox_core::{MessageId, NewMessage, Settling, TenantId};
use outbox_memory::MemoryStore;
use outbox_testkit::{Capability, Harness, Leftovers, OpenWrite, Unsupported};

/// `DELETE` is whether settling deletes.
pub(crate) struct Memory<const DELETE: bool = false>(MemoryStore);

impl<const DELETE: bool> Memory<DELETE> {
    fn new() -> Self {
        let settling = if DELETE { Settling::Delete } else { Settling::Mark };
        Self(MemoryStore::new().with_settling(settling))
    }
}

impl<const DELETE: bool> Harness for Memory<DELETE> {
    type Store = MemoryStore;
    type Write = OpenWrite;
    const CANNOT: &'static [Capability] = &[];

    async fn open() -> Self {
        Self::new()
    }

    async fn connect(&self) -> MemoryStore {
        self.0.clone()
    }

    async fn write(&self, rows: &[NewMessage]) -> OpenWrite {
        let mut transaction = self.0.begin();
        let ids = transaction.append_all(rows.iter().cloned());
        OpenWrite::new(ids, async { transaction.commit() })
    }

    async fn write_beside(&self, rows: &[NewMessage]) -> Result<OpenWrite, Unsupported> {
        Ok(self.write(rows).await)
    }

    async fn kill_sessions(&self) -> Result<(), Unsupported> {
        self.0.kill_sessions();
        Ok(())
    }

    async fn leftovers(&self) -> Result<Leftovers, Unsupported> {
        Ok(Leftovers::new(0, self.0.held().len(), 0))
    }

    async fn write_hostile(&self, tenant: &TenantId) -> Result<MessageId, Unsupported> {
        Ok(self.0.append_unreadable(tenant.clone()))
    }

    async fn set_read_only(&self) -> Result<(), Unsupported> {
        self.0.set_read_only(true);
        Ok(())
    }

    async fn another_table(&self) -> Result<Self, Unsupported> {
        Ok(Self::new())
    }

    async fn delete_published(&self) -> Result<(), Unsupported> {
        self.0.purge_published();
        Ok(())
    }

    async fn skip_ids(&self, next: MessageId) -> Result<(), Unsupported> {
        self.0.skip_ids(next);
        Ok(())
    }
}
