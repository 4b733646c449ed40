//! The harness of a broken store.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox_core::{MessageId, NewMessage, TenantId};
use outbox_memory::{MemoryStore, MemoryTransaction};
use outbox_testkit::{Capability, Harness, Leftovers, Unsupported, Write};

use crate::defect::Defect;
use crate::store::{BrokenStore, Shared, locked};

pub(crate) struct Broken {
    store: MemoryStore,
    defect: Defect,
    shared: Arc<Mutex<Shared>>,
}

impl Broken {
    pub(crate) fn with(defect: Defect) -> Self {
        Self { store: MemoryStore::new(), defect, shared: Arc::default() }
    }
}

pub(crate) struct BrokenWrite {
    defect: Defect,
    transaction: Option<MemoryTransaction>,
    ids: Vec<MessageId>,
}

impl Write for BrokenWrite {
    fn ids(&self) -> &[MessageId] {
        &self.ids
    }

    async fn commit(self) {
        if let Some(transaction) = self.transaction {
            transaction.commit();
        }
    }

    async fn rollback(self) {
        if self.defect == Defect::RolledBackIsSeen {
            self.commit().await;
        }
    }
}

impl Harness for Broken {
    type Store = BrokenStore;
    type Write = BrokenWrite;
    const CANNOT: &'static [Capability] = &[];
    const DEADLINE: Duration = Duration::from_secs(10);
    const AT_ONCE: Duration = Duration::from_millis(300);
    const FREE_WITHIN: Duration = Duration::from_millis(30);

    async fn open() -> Self {
        unreachable!("each trial has a harness with a defect of its own")
    }

    async fn connect(&self) -> BrokenStore {
        let mut shared = locked(&self.shared);
        shared.replicas += 1;
        let replica = shared.replicas - 1;
        let of = if self.defect == Defect::SourceIsTheProcess { replica } else { 0 };
        BrokenStore {
            inner: self.store.clone(),
            defect: self.defect,
            shared: Arc::clone(&self.shared),
            replica,
            source: format!("memory-{of}"),
            streak: Mutex::default(),
            alive: Arc::default(),
        }
    }

    async fn write(&self, rows: &[NewMessage]) -> BrokenWrite {
        let mut transaction = self.store.begin();
        let mut ids = if self.defect == Defect::ManyRowsAreWrittenBackwards && rows.len() == 200 {
            transaction.append_all(rows.iter().rev().cloned())
        } else {
            transaction.append_all(rows.iter().cloned())
        };
        if self.defect == Defect::IdsStartAgain && locked(&self.shared).purged {
            ids = (1..).map(MessageId::new).take(ids.len()).collect();
        }
        let mut transaction = Some(transaction);
        if self.defect == Defect::UncommittedIsSeen && rows.len() == 3 {
            transaction.take().into_iter().for_each(MemoryTransaction::commit);
        }
        BrokenWrite { defect: self.defect, transaction, ids }
    }

    async fn write_beside(&self, rows: &[NewMessage]) -> Result<BrokenWrite, Unsupported> {
        Ok(self.write(rows).await)
    }

    async fn kill_sessions(&self) -> Result<(), Unsupported> {
        self.store.kill_sessions();
        locked(&self.shared).killed = true;
        Ok(())
    }

    async fn leftovers(&self) -> Result<Leftovers, Unsupported> {
        Ok(Leftovers::new(locked(&self.shared).leaked, self.store.held().len(), 0))
    }

    async fn write_hostile(&self, tenant: &TenantId) -> Result<MessageId, Unsupported> {
        let id = self.store.append_unreadable(tenant.clone());
        locked(&self.shared).hostile.push((tenant.clone(), id));
        Ok(id)
    }

    async fn set_read_only(&self) -> Result<(), Unsupported> {
        self.store.set_read_only(true);
        locked(&self.shared).read_only = true;
        Ok(())
    }

    async fn another_table(&self) -> Result<Self, Unsupported> {
        let store = match self.defect {
            Defect::AnotherTableIsTheSame => self.store.clone(),
            _ => MemoryStore::new(),
        };
        Ok(Self { store, defect: self.defect, shared: Arc::default() })
    }

    async fn delete_published(&self) -> Result<(), Unsupported> {
        self.store.purge_published();
        locked(&self.shared).purged = true;
        Ok(())
    }

    async fn skip_ids(&self, next: MessageId) -> Result<(), Unsupported> {
        self.store.skip_ids(next);
        Ok(())
    }
}
