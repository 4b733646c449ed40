//! How an ORM's stores and pools are made.

use std::sync::Arc;
use std::time::Duration;

use super::database::ServerDatabase;
use super::pool::{Pool, StorePool};
use crate::Setting;

/// A pool to be made.
#[derive(Debug, Clone)]
pub struct Open<O> {
    /// How its sessions connect: sqlx's options.
    pub options: O,
    /// How many it has at most.
    pub size: u32,
    /// Whether it keeps one, and so may have something to do when it loses it.
    pub keeps_one: bool,
    /// The age at which they are too old, if there is one; half of that, unused, is too.
    pub retires: Option<Duration>,
    /// The statement that a session begins with, as an application's may; empty is none. MySQL's tests
    /// alone ask for one.
    pub begin: &'static str,
}

/// How the stores and the pools of an ORM are made. `O` is how sqlx connects to the server.
pub trait ServerDriver<O>: Send + Sync + 'static {
    /// A pool that connects when it is used.
    fn open(&self, open: Open<O>) -> Arc<dyn Pool>;

    /// What else can be chosen about a store that changes what it sends. Default: nothing.
    fn variants(&self) -> Vec<Setting> {
        Vec::new()
    }

    /// A part of what the driver says where nobody listens. PostgreSQL's tests alone ask for it.
    fn unreachable(&self) -> Option<&'static str> {
        None
    }
}

/// A driver, and where in a test binary its tests are.
pub struct Driver<D: ServerDatabase> {
    driver: &'static dyn ServerDriver<D::Options>,
    pub(crate) place: &'static str,
}

#[expect(clippy::expl_impl_clone_on_copy, reason = "a derived one would ask that of the database")]
impl<D: ServerDatabase> Clone for Driver<D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: ServerDatabase> Copy for Driver<D> {}

impl<D: ServerDatabase> Driver<D> {
    /// The driver, where `module_path!()` says `place`.
    pub fn of<T: ServerDriver<D::Options> + Default>(place: &'static str) -> Self {
        // A driver has no fields, so that nothing is kept.
        Self { driver: Box::leak(Box::<T>::default()), place }
    }

    /// A pool of at most so many connections.
    pub fn pool(self, options: D::Options, size: u32) -> StorePool {
        self.open(Open { options, size, keeps_one: false, retires: None, begin: "" })
    }

    /// One that keeps a connection.
    pub(crate) fn pool_that_keeps_one(self, options: D::Options, size: u32) -> StorePool {
        self.open(Open { options, size, keeps_one: true, retires: None, begin: "" })
    }

    /// One whose connections are old after this time.
    pub(crate) fn pool_that_retires(self, options: D::Options, size: u32, after: Duration) -> StorePool {
        self.open(Open { options, size, keeps_one: false, retires: Some(after), begin: "" })
    }

    /// One whose sessions begin with this statement.
    pub(crate) fn pool_that_begins(self, options: D::Options, size: u32, begin: &'static str) -> StorePool {
        self.open(Open { options, size, keeps_one: false, retires: None, begin })
    }

    fn open(self, open: Open<D::Options>) -> StorePool {
        StorePool::new(self.driver.open(open))
    }

    /// What can be chosen about a store, and changes what it sends: nothing, and each of those.
    pub(crate) fn variants(self) -> Vec<Option<Setting>> {
        std::iter::once(None).chain(self.driver.variants().into_iter().map(Some)).collect()
    }

    /// A part of what the driver says where nobody listens.
    pub(crate) fn unreachable(self) -> &'static str {
        self.driver.unreachable().expect("the driver tells what it says where nobody listens")
    }
}
