//! What the suite needs to run a store: a fresh table, replicas and a writer.

use std::fmt;
use std::time::Duration;

use outbox_core::{BoxFuture, Inspect, MessageId, NewMessage, TenantId};

use crate::{Capability, Unsupported};

/// A fresh, empty outbox table of one store, for one law.
///
/// Three methods are necessary: [`open`](Self::open), [`connect`](Self::connect) and [`write`](Self::write).
/// The others are hooks for laws that need more; what a harness cannot do it lists in
/// [`CANNOT`](Self::CANNOT), which names everything by default.
///
/// A method that fails panics: then the law fails, with the panic's message.
pub trait Harness: Send + Sync + Sized + 'static {
    /// The store under test.
    type Store: Inspect;
    /// An open transaction of a writer.
    type Write: Write;

    /// What this harness cannot do. Laws that need it are reported as not checked, on the standard error and
    /// in the file that `OUTBOX_TEST_REPORT` names; its hook is checked to be refused. Default: everything.
    const CANNOT: &'static [Capability] = Capability::ALL;

    /// How long a law may take; past it, it fails. Default 60 s.
    const DEADLINE: Duration = Duration::from_secs(60);

    /// What `at once` means: within it, a claim on a held tenant must have said so. It has to be shorter than
    /// any lock or busy timeout of the database. Default 2 s.
    const AT_ONCE: Duration = Duration::from_secs(2);

    /// How long an abandoned claim may keep its tenant, at the most: the bound that the store states.
    /// Default 5 s.
    const FREE_WITHIN: Duration = Duration::from_secs(5);

    /// How many futures each law of cancellation drops at random awaits. Default 100;
    /// `OUTBOX_TEST_CANCELLATIONS` says otherwise.
    const CANCELLATIONS: u32 = 100;

    /// How many random stories are replayed against the model. Default 32; `OUTBOX_TEST_CASES` says otherwise.
    const CASES: u32 = 32;

    /// The harness's name in reports. Default: the name of its type.
    fn name() -> &'static str {
        std::any::type_name::<Self>()
    }

    /// A fresh table. Laws run at the same time, each on a table of its own.
    fn open() -> impl Future<Output = Self> + Send;

    /// A store on the table. Each call stands for another process: nothing is shared but the database.
    fn connect(&self) -> impl Future<Output = Self::Store> + Send;

    /// Begins a transaction and writes these rows, in this order, with the append that the application uses.
    /// It stays open until the answer is committed, rolled back or dropped.
    fn write(&self, rows: &[NewMessage]) -> impl Future<Output = Self::Write> + Send;

    /// The law is over, kept or broken: removes what `open` made. Default: drops the harness.
    fn close(self) -> impl Future<Output = ()> + Send {
        async move { drop(self) }
    }

    /// [`write`](Self::write), while another write is still open. A harness that can answers
    /// `Ok(self.write(rows).await)`.
    fn write_beside(
        &self,
        rows: &[NewMessage],
    ) -> impl Future<Output = Result<Self::Write, Unsupported>> + Send {
        let _ = rows;
        async { Err(Unsupported) }
    }

    /// Ends every session that holds a claim on the table, as an operator or a fail-over would. Ends itself
    /// when those sessions are gone.
    fn kill_sessions(&self) -> impl Future<Output = Result<(), Unsupported>> + Send {
        async { Err(Unsupported) }
    }

    /// Counts what the stores of this harness hold at this moment.
    fn leftovers(&self) -> impl Future<Output = Result<Leftovers, Unsupported>> + Send {
        async { Err(Unsupported) }
    }

    /// Commits a row whose time cannot be read (an infinite one), or else whose headers cannot, past the
    /// append, which would refuse it. Answers its id.
    fn write_hostile(
        &self,
        tenant: &TenantId,
    ) -> impl Future<Output = Result<MessageId, Unsupported>> + Send {
        let _ = tenant;
        async { Err(Unsupported) }
    }

    /// Makes the server read-only, as a standby is, for sessions that begin later.
    fn set_read_only(&self) -> impl Future<Output = Result<(), Unsupported>> + Send {
        async { Err(Unsupported) }
    }

    /// Another, empty outbox table in the same database.
    fn another_table(&self) -> impl Future<Output = Result<Self, Unsupported>> + Send {
        async { Err(Unsupported) }
    }

    /// Deletes every row that is marked as published, as a purge would.
    fn delete_published(&self) -> impl Future<Output = Result<(), Unsupported>> + Send {
        async { Err(Unsupported) }
    }

    /// Lets the next id be `next` or higher, as a table has it that lived for long.
    fn skip_ids(&self, next: MessageId) -> impl Future<Output = Result<(), Unsupported>> + Send {
        let _ = next;
        async { Err(Unsupported) }
    }
}

/// An open transaction of a writer, with the rows it wrote. Dropped, it is rolled back.
pub trait Write: Send + 'static {
    /// The ids of the rows, in the order in which they were given.
    fn ids(&self) -> &[MessageId];

    /// Commits. When it answers, everybody sees the rows.
    fn commit(self) -> impl Future<Output = ()> + Send;

    /// Rolls back.
    fn rollback(self) -> impl Future<Output = ()> + Send;
}

/// A [`Write`] made of ids and a future: committing runs the future, rolling back drops it, with the
/// transaction that it owns.
///
/// For transactions that are rolled back by their drop before anybody else looks; others implement [`Write`].
pub struct OpenWrite {
    ids: Vec<MessageId>,
    commit: BoxFuture<'static, ()>,
}

impl OpenWrite {
    /// The open transaction that wrote the rows with these ids and that `commit` commits.
    pub fn new(ids: Vec<MessageId>, commit: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { ids, commit: Box::pin(commit) }
    }
}

impl fmt::Debug for OpenWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenWrite").field("ids", &self.ids).finish_non_exhaustive()
    }
}

impl Write for OpenWrite {
    fn ids(&self) -> &[MessageId] {
        &self.ids
    }

    async fn commit(self) {
        self.commit.await;
    }

    async fn rollback(self) {}
}

/// What stores hold of the database. After everything was settled, dropped or cancelled, all are zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftovers {
    /// Open transactions.
    pub transactions: usize,
    /// Locks that exclude other replicas, or the application.
    pub locks: usize,
    /// Connections beyond those that the stores' pools may keep.
    pub connections: usize,
}

impl Leftovers {
    /// Nothing is left over.
    pub const NONE: Self = Self { transactions: 0, locks: 0, connections: 0 };

    /// So many open transactions, locks and connections too many.
    pub const fn new(transactions: usize, locks: usize, connections: usize) -> Self {
        Self { transactions, locks, connections }
    }
}
