//! Where the publisher sends to, as far as the observers are told.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::names;

type Destinations = Arc<dyn Fn(&str) -> Option<Cow<'static, str>> + Send + Sync>;

/// Where the publisher sends to. The relay does not know it: tell the observers, all of them the same.
///
/// ```
/// use outbox_otel::Broker;
///
/// let broker = Broker::new("kafka").with_destination(|kind| match kind {
///     "order.placed" | "order.paid" => Some("orders".into()),
///     _ => None,
/// });
/// ```
#[derive(Clone)]
pub struct Broker {
    system: Cow<'static, str>,
    destinations: Option<Destinations>,
}

impl Broker {
    /// A messaging system, in the words of OpenTelemetry's conventions: `kafka`, `rabbitmq`, `nats`.
    pub fn new(system: impl Into<Cow<'static, str>>) -> Self {
        Self { system: system.into(), destinations: None }
    }

    /// Says where messages of a kind go: the topic, the queue or the exchange. `None` is not known.
    ///
    /// It is an attribute of metrics, so let there be few. Asked for each publish. A panic in it costs what
    /// the observer would have told of that publish.
    pub fn with_destination(
        mut self,
        of_kind: impl Fn(&str) -> Option<Cow<'static, str>> + Send + Sync + 'static,
    ) -> Self {
        self.destinations = Some(Arc::new(of_kind));
        self
    }

    /// Not told: the system is `outbox`, and no destination is known.
    pub(crate) const fn untold() -> Self {
        Self { system: Cow::Borrowed(names::OUTBOX), destinations: None }
    }

    pub(crate) fn system(&self) -> Cow<'static, str> {
        self.system.clone()
    }

    pub(crate) fn destination(&self, kind: &str) -> Option<Cow<'static, str>> {
        self.destinations.as_ref()?(kind)
    }
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self.destinations.is_some();
        f.debug_struct("Broker").field("system", &self.system).field("destinations", &told).finish()
    }
}
