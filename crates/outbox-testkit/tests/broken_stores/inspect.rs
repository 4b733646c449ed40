//! What a broken store answers to who looks at it.

use std::num::NonZeroU32;

use outbox_core::{
    ClaimOutcome, ClaimRequest, Inspect, OutboxMessage, PendingRequest, Store as _, StoreError, TenantId,
    async_trait,
};

use crate::defect::Defect;
use crate::message;
use crate::store::{BrokenStore, LeakWhenDropped};

#[async_trait]
impl Inspect for BrokenStore {
    async fn pending(&self, request: &PendingRequest) -> Result<Vec<OutboxMessage>, StoreError> {
        self.shared().pending_calls += 1;
        let tenant = &request.tenant_id;
        let again = self.again(format!("pending {tenant} {}", request.limit));
        let mut asked = request.clone();
        match self.defect {
            Defect::PendingIgnoresTheLimit => asked.limit = NonZeroU32::MAX,
            Defect::ThreeIsTwo if request.limit.get() == 3 => {
                asked.limit = NonZeroU32::new(2).expect("not zero");
            }
            Defect::TenantsArePadded => {
                asked.tenant_id = TenantId::new(tenant.as_str().trim_end()).unwrap_or(asked.tenant_id);
            }
            Defect::PendingKeepsTheTenant
                if (self.count(tenant), request.limit.get()) == (2, 10_000)
                    && self.shared().said_held == 0
                    && self.inner.published().is_empty() =>
            {
                self.keep(tenant).await;
            }
            Defect::CancelledReadKeepsTheTenant => {
                let request = ClaimRequest::new(tenant.clone(), NonZeroU32::MIN);
                if let Ok(ClaimOutcome::Claimed(claimed)) = self.inner.claim(&request).await {
                    let leak = LeakWhenDropped(Some(claimed), &self.shared, |_| {});
                    tokio::task::yield_now().await;
                    leak.take();
                }
            }
            _ => {}
        }
        let mut messages = self.inner.pending(&asked).await?;
        match self.defect {
            Defect::PendingMixesTenants if messages.len() == 3 => {
                let all = self.inner.unpublished();
                let others: Vec<_> = all.into_iter().filter(|message| message.tenant_id != *tenant).collect();
                if others.len() == 3 {
                    messages.extend(others);
                }
            }
            Defect::PendingForgets if again >= 3 && !messages.is_empty() => {
                messages.remove(0);
            }
            Defect::PendingHidesWhatIsHeld if self.is_held(tenant) && self.shared().limit == 2 => {
                messages.clear();
            }
            _ => {}
        }
        for message in &mut messages {
            message::alter(self.defect, message);
        }
        Ok(messages)
    }
}
