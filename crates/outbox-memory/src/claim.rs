//! The claim: a tenant held until it is settled or dropped.

use std::collections::BTreeSet;
use std::sync::Arc;

use outbox_core::{
    Claim, Clock, MessageId, Settlement, Settling, StoreError, StoreOperation, TenantId, async_trait,
};

use crate::table::{Rows, Session, Table};

/// A session that holds a tenant. Its drop gives the tenant back.
#[derive(Debug)]
pub(crate) struct MemoryClaim {
    pub(crate) table: Arc<Table>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tenant: TenantId,
    pub(crate) session: Session,
    pub(crate) settling: Settling,
    pub(crate) handed_out: BTreeSet<MessageId>,
}

impl MemoryClaim {
    fn check_held(&self, table: &Rows, operation: StoreOperation) -> Result<(), StoreError> {
        if table.holds(&self.tenant, self.session) {
            Ok(())
        } else {
            let lost = format!("the session that held tenant {:?} was ended", self.tenant.as_str());
            Err(StoreError::transient(operation, lost))
        }
    }
}

#[async_trait]
impl Claim for MemoryClaim {
    async fn verify(&mut self) -> Result<(), StoreError> {
        self.check_held(&self.table.lock(), StoreOperation::Verify)
    }

    async fn settle(self: Box<Self>, settlement: Settlement) -> Result<(), StoreError> {
        let mut table = self.table.lock();
        self.check_held(&table, StoreOperation::Settle)?;
        if let Some(foreign) = settlement.published.iter().find(|id| !self.handed_out.contains(id)) {
            let refused = format!("message {foreign} was not handed out by this claim; nothing is marked");
            return Err(StoreError::permanent(StoreOperation::Settle, refused));
        }
        if !settlement.published.is_empty() {
            table.check_writable(StoreOperation::Settle)?;
        }
        let now = self.clock.now();
        for id in settlement.published {
            table.mark(&self.tenant, id, now);
            if self.settling == Settling::Delete {
                table.committed.remove(&id);
            }
        }
        table.release(&self.tenant, self.session);
        Ok(())
    }
}

impl Drop for MemoryClaim {
    fn drop(&mut self) {
        self.table.lock().release(&self.tenant, self.session);
    }
}
