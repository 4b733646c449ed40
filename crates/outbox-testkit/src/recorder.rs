//! A publisher that writes down what happens in which order, and judges it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outbox_core::{Accepted, Delivery, MessageId, PublishError, Publisher, TenantId, async_trait};
use tokio::sync::watch;

/// Records every publish: when it starts, and how it ends. A clone writes into the same record, so that the
/// order across several relays shows.
///
/// It accepts every message, or hands it to the publisher that it is put [`around`](Self::around).
#[derive(Clone)]
pub struct Recorder {
    inner: Option<Arc<dyn Publisher>>,
    order: Order,
    record: Arc<Mutex<Record>>,
    accepted: Arc<watch::Sender<usize>>,
}

#[derive(Debug, Default)]
struct Record {
    deliveries: Vec<Delivered>,
    running: BTreeMap<Line, MessageId>,
    most_in_flight: usize,
    violations: Vec<Violation>,
    /// The highest id accepted so far in each line.
    highest: BTreeMap<Line, MessageId>,
}

/// Within what order is judged.
#[derive(Clone, Copy)]
enum Order {
    Tenant,
    Subject,
    None,
}

/// Messages that must stay in order: a tenant's, or those of one of its subjects; or a single one.
type Line = (TenantId, Option<String>);

/// One publish.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivered {
    /// Whose message it was.
    pub tenant_id: TenantId,
    /// Which one.
    pub id: MessageId,
    /// What it is about.
    pub subject_id: String,
    /// Which attempt, as the relay said.
    pub attempt: u32,
    /// Whether it was accepted; `None` if its future has not ended, or was dropped.
    pub accepted: Option<bool>,
}

/// What must not happen in a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A publish started while another one of its tenant (or of its subject) was running.
    Overlap {
        /// Whose.
        tenant_id: TenantId,
        /// What was running.
        running: MessageId,
        /// What started.
        started: MessageId,
    },
    /// A message was accepted for the first time after a higher one was.
    Overtaken {
        /// Whose.
        tenant_id: TenantId,
        /// The message that came too late.
        late: MessageId,
        /// The higher one that was accepted before.
        higher: MessageId,
    },
}

impl Recorder {
    /// A recorder that accepts every message.
    pub fn new() -> Self {
        Self {
            inner: None,
            order: Order::Tenant,
            record: Arc::default(),
            accepted: Arc::new(watch::Sender::new(0)),
        }
    }

    /// A recorder of what this publisher answers.
    pub fn around(publisher: impl Publisher) -> Self {
        Self { inner: Some(Arc::new(publisher)), ..Self::new() }
    }

    /// Judges the order within each subject of a tenant, instead of within the whole tenant.
    pub fn by_subject(mut self) -> Self {
        self.order = Order::Subject;
        self
    }

    /// Judges no order between messages, but only that none runs twice at once.
    pub fn unordered(mut self) -> Self {
        self.order = Order::None;
        self
    }

    /// In how many lines (tenants, subjects or messages, as the order is judged) publishes ran at the same time, at most.
    pub fn most_in_flight(&self) -> usize {
        self.lock().most_in_flight
    }

    /// Everything so far, in the order of the starts.
    pub fn deliveries(&self) -> Vec<Delivered> {
        self.lock().deliveries.clone()
    }

    /// A tenant's accepted ids, duplicates included, in the order of the starts.
    pub fn accepted(&self, tenant: &TenantId) -> Vec<MessageId> {
        let record = self.lock();
        let accepted =
            record.deliveries.iter().filter(|d| d.accepted == Some(true) && d.tenant_id == *tenant);
        accepted.map(|delivery| delivery.id).collect()
    }

    /// What was accepted more than once, and how often.
    pub fn duplicates(&self) -> BTreeMap<(TenantId, MessageId), usize> {
        let mut counts = BTreeMap::new();
        for delivery in self.lock().deliveries.iter().filter(|delivery| delivery.accepted == Some(true)) {
            *counts.entry((delivery.tenant_id.clone(), delivery.id)).or_insert(0) += 1;
        }
        counts.retain(|_, count| *count > 1);
        counts
    }

    /// What must not have happened, in the order in which it did.
    pub fn violations(&self) -> Vec<Violation> {
        self.lock().violations.clone()
    }

    /// Checks that in each tenant no two publishes overlapped, and that each message was accepted for the
    /// first time after every lower one. Duplicates are allowed: see
    /// [`assert_no_duplicates`](Self::assert_no_duplicates).
    ///
    /// # Panics
    /// With what went wrong.
    pub fn assert_in_order(&self) {
        let violations = self.violations();
        assert!(violations.is_empty(), "{violations:#?}");
    }

    /// Checks that no message was accepted twice.
    ///
    /// # Panics
    /// With the duplicates.
    pub fn assert_no_duplicates(&self) {
        let duplicates = self.duplicates();
        assert!(duplicates.is_empty(), "accepted more than once: {duplicates:?}");
    }

    /// Waits until `count` publishes were accepted, of whichever tenant, duplicates included.
    pub async fn wait_for_accepted(&self, count: usize) {
        // The sender lives as long as this recorder: the wait cannot fail.
        let _ = self.accepted.subscribe().wait_for(|accepted| *accepted >= count).await;
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("record", &*self.lock()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Publisher for Recorder {
    async fn publish(&self, delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        let running = Running::start(self, delivery);
        let answer = match &self.inner {
            None => Ok(Accepted),
            Some(publisher) => publisher.publish(delivery).await,
        };
        running.end(answer.is_ok());
        answer
    }
}

/// A publish under way. Dropped without an end, it is over all the same, with no answer.
struct Running<'a> {
    recorder: &'a Recorder,
    line: Line,
    place: usize,
}

impl<'a> Running<'a> {
    fn start(recorder: &'a Recorder, delivery: &Delivery<'_>) -> Self {
        let (tenant_id, id) = (delivery.message.tenant_id.clone(), delivery.message.id);
        let subject_id = delivery.message.subject_id.clone();
        let within = match recorder.order {
            Order::Tenant => None,
            Order::Subject => Some(subject_id.clone()),
            Order::None => Some(id.to_string()),
        };
        let line = (tenant_id.clone(), within);
        let mut record = recorder.lock();
        if let Some(running) = record.running.insert(line.clone(), id) {
            record.violations.push(Violation::Overlap { tenant_id: tenant_id.clone(), running, started: id });
        }
        record.most_in_flight = record.most_in_flight.max(record.running.len());
        let attempt = delivery.attempt;
        record.deliveries.push(Delivered { tenant_id, id, subject_id, attempt, accepted: None });
        Self { recorder, line, place: record.deliveries.len() - 1 }
    }

    fn end(self, accepted: bool) {
        let mut record = self.recorder.lock();
        let delivery = &mut record.deliveries[self.place];
        delivery.accepted = Some(accepted);
        let id = delivery.id;
        if accepted {
            record.accept(self.line.clone(), id);
            drop(record);
            self.recorder.accepted.send_modify(|accepted| *accepted += 1);
        }
    }
}

impl Record {
    fn accept(&mut self, line: Line, id: MessageId) {
        let higher = self.highest.get(&line).copied().filter(|higher| *higher > id);
        match higher {
            None => {
                self.highest.insert(line, id);
            }
            Some(higher) => {
                let (tenant_id, _) = line;
                let same = |delivery: &&Delivered| delivery.tenant_id == tenant_id && delivery.id == id;
                let times = self.deliveries.iter().filter(same).filter(|d| d.accepted == Some(true)).count();
                if times == 1 {
                    self.violations.push(Violation::Overtaken { tenant_id, late: id, higher });
                }
            }
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut record = self.recorder.lock();
        let id = record.deliveries[self.place].id;
        if record.running.get(&self.line) == Some(&id) {
            record.running.remove(&self.line);
        }
    }
}
