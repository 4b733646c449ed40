//! The application: places orders, each in a transaction with its message, and remembers what became of each.

use anyhow::Result;
use outbox_core::{NewMessage, TenantId};

use super::database::{Database, Transaction};

/// The shop's tenants.
pub const TENANTS: [&str; 3] = ["acme", "globex", "initech"];

/// What became of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Committed,
    /// Committed after later orders of its tenant had been.
    CommittedLate,
    RolledBack,
}

/// An order, as the application knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) number: i64,
    pub(super) id: i64,
    pub(super) tenant: &'static str,
    pub(super) fate: Fate,
}

impl Order {
    /// What its message is about.
    pub(super) fn subject(&self) -> String {
        subject(self.number)
    }
}

/// What an order's message is about.
pub fn subject(number: i64) -> String {
    format!("order-{number}")
}

/// Places orders.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    database: &'a dyn Database,
    orders: Vec<Order>,
    next: i64,
}

impl<'a> Writer<'a> {
    pub(super) fn new(database: &'a dyn Database) -> Self {
        Self { database, orders: Vec::new(), next: 1 }
    }

    /// Every order whose transaction has ended.
    pub(super) fn orders(&self) -> &[Order] {
        &self.orders
    }

    /// The number that the next order will have.
    pub(super) fn next_number(&self) -> i64 {
        self.next
    }

    /// Places orders of a tenant in one transaction and commits it.
    pub(super) async fn commit(&mut self, tenant: &'static str, count: usize) -> Result<Vec<Order>> {
        let mut transaction = self.database.begin().await?;
        let mut placed = Vec::with_capacity(count);
        for _ in 0..count {
            placed.push(self.place(&mut *transaction, tenant, Fate::Committed).await?);
        }
        transaction.commit().await?;
        self.orders.extend(placed.iter().cloned());
        Ok(placed)
    }

    /// Places an order and takes it back, with the transaction that it is in.
    pub(super) async fn roll_back(&mut self, tenant: &'static str) -> Result<Order> {
        let mut transaction = self.database.begin().await?;
        let order = self.place(&mut *transaction, tenant, Fate::RolledBack).await?;
        transaction.roll_back().await?;
        self.orders.push(order.clone());
        Ok(order)
    }

    /// Places an order and leaves its transaction open.
    pub(super) async fn open(&mut self, tenant: &'static str) -> Result<(Order, Box<dyn Transaction>)> {
        let mut transaction = self.database.begin().await?;
        let order = self.place(&mut *transaction, tenant, Fate::CommittedLate).await?;
        Ok((order, transaction))
    }

    /// Commits an order that was left open.
    pub(super) async fn commit_late(
        &mut self,
        (order, transaction): (Order, Box<dyn Transaction>),
    ) -> Result<()> {
        transaction.commit().await?;
        self.orders.push(order);
        Ok(())
    }

    async fn place(
        &mut self,
        transaction: &mut dyn Transaction,
        tenant: &'static str,
        fate: Fate,
    ) -> Result<Order> {
        let number = self.next;
        self.next += 1;
        let payload = format!(r#"{{"order":{number},"customer":"{tenant}"}}"#);
        let message = NewMessage::new(TenantId::new(tenant)?, "order.placed", subject(number), payload);
        let id = transaction.place(number, &message).await?.get();
        Ok(Order { number, id, tenant, fate })
    }
}
