//! What the suite needs to run a publisher: a receiver that tells what it has.

use std::fmt;

use outbox_core::{Headers, MessageId, Payload, Publisher};

use crate::Unsupported;

/// A publisher under test, with a receiver of its own: a topic, a queue, an endpoint.
///
/// A method that fails panics: then the law fails, with the panic's message.
pub trait PublisherHarness: Send + Sync + Sized + 'static {
    /// The publisher under test.
    type Publisher: Publisher;

    /// What this harness cannot do. Laws that need it are reported as not checked, on the standard error and
    /// in the file that `OUTBOX_TEST_REPORT` names; its hook is checked to be refused. Default: everything.
    const CANNOT: &'static [PublisherCapability] = PublisherCapability::ALL;

    /// How many publishes the law of cancellation drops. Default 50; `OUTBOX_TEST_CANCELLATIONS` says
    /// otherwise.
    const CANCELLATIONS: u32 = 50;

    /// The harness's name in reports. Default: the name of its type.
    fn name() -> &'static str {
        std::any::type_name::<Self>()
    }

    /// A fresh receiver, that has nothing. Laws run at the same time, each with a receiver of its own.
    fn open() -> impl Future<Output = Self> + Send;

    /// A publisher to that receiver.
    fn publisher(&self) -> impl Future<Output = Self::Publisher> + Send;

    /// What the receiver has at this moment, in the order in which it came: all of it, duplicates included,
    /// unless the receiver itself removes them. It does not wait for more.
    fn received(&self) -> impl Future<Output = Vec<Received>> + Send;

    /// The law is over, kept or broken: removes what `open` made. Default: drops the harness.
    fn close(self) -> impl Future<Output = ()> + Send {
        async move { drop(self) }
    }

    /// Takes the receiver down, or up again. Ends itself when that is so.
    fn set_down(&self, down: bool) -> impl Future<Output = Result<(), Unsupported>> + Send {
        let _ = down;
        async { Err(Unsupported) }
    }

    /// Lets the receiver take messages and hold their acknowledgements back, or send them again, the held
    /// ones first.
    fn hold_acknowledgements(&self, hold: bool) -> impl Future<Output = Result<(), Unsupported>> + Send {
        let _ = hold;
        async { Err(Unsupported) }
    }
}

/// A message as the receiver has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Received {
    /// The source: with the id, what a subscriber deduplicates on.
    pub source: String,
    /// The id.
    pub id: MessageId,
    /// The content; `None` is the tombstone.
    pub payload: Option<Payload>,
    /// The headers that came with it, without those that the publisher or the transport adds.
    pub headers: Headers,
}

impl Received {
    /// A message as the receiver has it.
    pub fn new(source: impl Into<String>, id: MessageId, payload: Option<Payload>, headers: Headers) -> Self {
        Self { source: source.into(), id, payload, headers }
    }
}

/// Something that a law needs of a publisher's harness and that not every receiver offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PublisherCapability {
    /// [`PublisherHarness::set_down`].
    TakeDown,
    /// [`PublisherHarness::hold_acknowledgements`].
    HoldAcknowledgements,
}

impl PublisherCapability {
    /// Every one: what a harness cannot do that has the necessary methods only.
    pub const ALL: &'static [Self] = &[Self::TakeDown, Self::HoldAcknowledgements];
}

impl fmt::Display for PublisherCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TakeDown => "take the receiver down (set_down)",
            Self::HoldAcknowledgements => "hold acknowledgements back (hold_acknowledgements)",
        })
    }
}
