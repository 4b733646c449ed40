//! What a claim has to tell when it ends.

use std::sync::Arc;

use outbox_core::{ClaimRequest, MessageId, StoreError, TenantId};

use super::state::{Start, Watermarks};
use crate::claim::Ending;
use crate::settlement::HandedOut;

/// What a claim has to tell the watermarks when it ends.
#[derive(Debug)]
pub(crate) struct Remembering {
    watermarks: Arc<Watermarks>,
    tenant: TenantId,
    start: Start,
    /// Whether the claim left no subject out.
    is_whole: bool,
    prefix: Vec<MessageId>,
}

impl Remembering {
    /// For a claim that began so.
    pub(crate) fn new(watermarks: &Arc<Watermarks>, request: &ClaimRequest, start: Start) -> Self {
        let (watermarks, tenant) = (Arc::clone(watermarks), request.tenant_id.clone());
        let is_whole = request.excluded_subjects.is_empty();
        Self { watermarks, tenant, start, is_whole, prefix: Vec::new() }
    }
}

impl Ending for Remembering {
    fn settling(&mut self, handed_out: &HandedOut, settled: &[MessageId]) {
        if self.is_whole {
            self.prefix = handed_out.prefix(settled).to_vec();
        }
    }

    fn ended(&self, so: &Result<(), StoreError>) {
        if so.is_ok() {
            self.watermarks.settled(&self.tenant, &self.start, &self.prefix);
        } else {
            self.watermarks.forget();
        }
    }
}
