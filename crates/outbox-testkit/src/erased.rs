//! A harness without its type, so that the laws are compiled once, and not for every harness.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{BoxFuture, Inspect, MessageId, NewMessage, TenantId};

use crate::{Capability, Harness, Leftovers, Unsupported, Write};

/// What a harness says of itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) name: &'static str,
    pub(crate) cannot: &'static [Capability],
    pub(crate) at_once: Duration,
    pub(crate) free_within: Duration,
    pub(crate) cancellations: u32,
    pub(crate) cases: u32,
}

impl Facts {
    fn of<H: Harness>() -> Self {
        Self {
            name: H::name(),
            cannot: H::CANNOT,
            at_once: H::AT_ONCE,
            free_within: H::FREE_WITHIN,
            cancellations: H::CANCELLATIONS,
            cases: H::CASES,
        }
    }
}

/// A hook's answer.
type Answer<'a, T> = BoxFuture<'a, Result<T, Unsupported>>;

/// [`Harness`], method by method.
pub(crate) trait ErasedHarness: Send + Sync {
    fn facts(&self) -> Facts;
    fn connect(&self) -> BoxFuture<'_, Arc<dyn Inspect>>;
    fn write<'a>(&'a self, rows: &'a [NewMessage]) -> BoxFuture<'a, Box<dyn ErasedWrite>>;
    fn close(self: Box<Self>) -> BoxFuture<'static, ()>;
    fn write_beside<'a>(&'a self, rows: &'a [NewMessage]) -> Answer<'a, Box<dyn ErasedWrite>>;
    fn kill_sessions(&self) -> Answer<'_, ()>;
    fn leftovers(&self) -> Answer<'_, Leftovers>;
    fn write_hostile<'a>(&'a self, tenant: &'a TenantId) -> Answer<'a, MessageId>;
    fn set_read_only(&self) -> Answer<'_, ()>;
    fn another_table(&self) -> Answer<'_, Box<dyn ErasedHarness>>;
    fn delete_published(&self) -> Answer<'_, ()>;
    fn skip_ids(&self, next: MessageId) -> Answer<'_, ()>;
}

impl<H: Harness> ErasedHarness for H {
    fn facts(&self) -> Facts {
        Facts::of::<H>()
    }

    fn connect(&self) -> BoxFuture<'_, Arc<dyn Inspect>> {
        Box::pin(async { Arc::new(Harness::connect(self).await) as Arc<dyn Inspect> })
    }

    fn write<'a>(&'a self, rows: &'a [NewMessage]) -> BoxFuture<'a, Box<dyn ErasedWrite>> {
        Box::pin(async { Box::new(Harness::write(self, rows).await) as Box<dyn ErasedWrite> })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(Harness::close(*self))
    }

    fn write_beside<'a>(&'a self, rows: &'a [NewMessage]) -> Answer<'a, Box<dyn ErasedWrite>> {
        Box::pin(async { Ok(Box::new(Harness::write_beside(self, rows).await?) as Box<dyn ErasedWrite>) })
    }

    fn kill_sessions(&self) -> Answer<'_, ()> {
        Box::pin(Harness::kill_sessions(self))
    }

    fn leftovers(&self) -> Answer<'_, Leftovers> {
        Box::pin(Harness::leftovers(self))
    }

    fn write_hostile<'a>(&'a self, tenant: &'a TenantId) -> Answer<'a, MessageId> {
        Box::pin(Harness::write_hostile(self, tenant))
    }

    fn set_read_only(&self) -> Answer<'_, ()> {
        Box::pin(Harness::set_read_only(self))
    }

    fn another_table(&self) -> Answer<'_, Box<dyn ErasedHarness>> {
        Box::pin(async { Ok(Box::new(Harness::another_table(self).await?) as Box<dyn ErasedHarness>) })
    }

    fn delete_published(&self) -> Answer<'_, ()> {
        Box::pin(Harness::delete_published(self))
    }

    fn skip_ids(&self, next: MessageId) -> Answer<'_, ()> {
        Box::pin(Harness::skip_ids(self, next))
    }
}

/// [`Write`], method by method.
pub(crate) trait ErasedWrite: Send {
    fn ids(&self) -> &[MessageId];
    fn commit(self: Box<Self>) -> BoxFuture<'static, ()>;
    fn rollback(self: Box<Self>) -> BoxFuture<'static, ()>;
}

impl<W: Write> ErasedWrite for W {
    fn ids(&self) -> &[MessageId] {
        Write::ids(self)
    }

    fn commit(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(Write::commit(*self))
    }

    fn rollback(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(Write::rollback(*self))
    }
}
