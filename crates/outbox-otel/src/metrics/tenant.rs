//! What becomes of the tenant on metrics.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use opentelemetry::KeyValue;
use outbox_core::TenantId;
use outbox_core::text::MAX_NAME;

use crate::names;
use crate::value::value;

/// Answers the attribute of a tenant, or none.
pub type TenantMap = Arc<dyn Fn(&TenantId) -> Option<Cow<'static, str>> + Send + Sync>;

/// What becomes of the tenant on metrics.
///
/// OpenTelemetry's SDK keeps 2,000 sets of attributes of an instrument, and counts what comes beyond as one
/// more. A histogram of publishes has one set for each tenant, kind and error that occurs together: with more
/// than a few hundred tenants, leave the tenant out or map it.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum TenantLabel {
    /// The tenant's id is an attribute.
    #[default]
    Keep,
    /// No attribute: metrics are about all tenants. A gauge of tenants is the highest of them.
    Omit,
    /// This function's answer is the attribute: a plan, a region. Tenants with the same answer are counted
    /// together, a gauge of them is the highest; `None` leaves the attribute out. A panic in it costs the
    /// metrics of that operation.
    Map(TenantMap),
}

impl TenantLabel {
    /// A [`Map`](Self::Map).
    pub fn map(map: impl Fn(&TenantId) -> Option<Cow<'static, str>> + Send + Sync + 'static) -> Self {
        Self::Map(Arc::new(map))
    }

    pub(super) fn label<'a>(&self, tenant: &'a TenantId) -> Option<Cow<'a, str>> {
        match self {
            Self::Keep => Some(value(tenant.as_str(), MAX_NAME)),
            Self::Omit => None,
            Self::Map(map) => map(tenant).map(|label| value(label, MAX_NAME)),
        }
    }

    pub(super) fn attribute(&self, tenant: &TenantId) -> Option<KeyValue> {
        self.label(tenant).map(|label| KeyValue::new(names::TENANT, label.into_owned()))
    }
}

impl fmt::Debug for TenantLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keep => "Keep",
            Self::Omit => "Omit",
            Self::Map(_) => "Map(..)",
        })
    }
}
