//! Options on their way: from code and from the environment, to a checked configuration.

use std::collections::HashSet;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use super::{ConfigError, ConfigProblem, MAX_LAG_VARIABLE, POLL_VARIABLE, RelayConfig, TENANTS_VARIABLE};
use crate::store::{DEFAULT_MAX_BYTES, DEFAULT_STORE_TIMEOUT};
use crate::{TenantId, Tenants};

#[derive(Debug, Clone)]
enum TenantList {
    Named(Vec<String>),
    Discovered,
}

/// Options on their way to a [`RelayConfig`]. A value given here wins over the environment's.
#[derive(Debug, Clone, Default)]
pub struct RelayConfigBuilder {
    tenants: Option<TenantList>,
    poll_interval: Option<Duration>,
    max_lag: Option<Duration>,
    concurrency: Option<usize>,
    initial_batch: Option<u32>,
    max_batch: Option<u32>,
    max_batch_bytes: Option<usize>,
    max_batch_time: Option<Duration>,
    publish_timeout: Option<Duration>,
    store_timeout: Option<Duration>,
    stop_timeout: Option<Duration>,
    max_back_off: Option<Duration>,
    health_timeout: Option<Duration>,
}

macro_rules! setters {
    ($($name:ident: $kind:ty),* $(,)?) => {$(
        #[doc = concat!("Sets [`", stringify!($name), "`](RelayConfig::", stringify!($name), ").")]
        pub fn $name(mut self, $name: $kind) -> Self {
            self.$name = Some($name);
            self
        }
    )*};
}

impl RelayConfigBuilder {
    /// Serves these tenants. Names that the variable's syntax cannot hold (commas, spaces at the ends) work.
    pub fn tenants(mut self, tenants: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tenants = Some(TenantList::Named(tenants.into_iter().map(Into::into).collect()));
        self
    }

    /// Serves whichever tenants have unpublished messages.
    pub fn discover_tenants(mut self) -> Self {
        self.tenants = Some(TenantList::Discovered);
        self
    }

    setters! {
        poll_interval: Duration,
        max_lag: Duration,
        concurrency: usize,
        initial_batch: u32,
        max_batch: u32,
        max_batch_bytes: usize,
        max_batch_time: Duration,
        publish_timeout: Duration,
        store_timeout: Duration,
        stop_timeout: Duration,
        max_back_off: Duration,
        health_timeout: Duration,
    }

    /// Checks the options; the environment is not read.
    ///
    /// # Errors
    /// [`ConfigError`] with every bad field.
    pub fn build(self) -> Result<RelayConfig, ConfigError> {
        self.check(Vec::new())
    }

    /// Takes what was not set from the environment, and checks the options.
    ///
    /// # Errors
    /// [`ConfigError`] with every bad field.
    pub fn build_from_env(self) -> Result<RelayConfig, ConfigError> {
        self.read(|variable| match std::env::var(variable) {
            Ok(value) => Ok(Some(value)),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(()),
        })
    }

    /// As [`build_from_env`](Self::build_from_env), with a look-up of your own in place of the environment.
    ///
    /// # Errors
    /// [`ConfigError`] with every bad field.
    pub fn build_from_lookup(
        self,
        mut lookup: impl FnMut(&str) -> Option<String>,
    ) -> Result<RelayConfig, ConfigError> {
        self.read(|variable| Ok(lookup(variable)))
    }

    /// `Err` from `lookup` is a value that is not Unicode.
    pub(super) fn read(
        mut self,
        mut lookup: impl FnMut(&str) -> Result<Option<String>, ()>,
    ) -> Result<RelayConfig, ConfigError> {
        let mut problems = Vec::new();
        let mut value = |variable: &'static str, problems: &mut Vec<ConfigProblem>| {
            lookup(variable).unwrap_or_else(|()| {
                problems.push(ConfigProblem::NotUnicode { variable });
                None
            })
        };
        if self.tenants.is_none() {
            let before = problems.len();
            if let Some(list) = value(TENANTS_VARIABLE, &mut problems) {
                self = self.tenants(list.split(',').map(str::trim));
            } else if problems.len() > before {
                // Its problem is named already: do not call it missing too.
                self = self.discover_tenants();
            }
        }
        for (field, variable) in
            [(&mut self.poll_interval, POLL_VARIABLE), (&mut self.max_lag, MAX_LAG_VARIABLE)]
        {
            if field.is_some() {
                continue;
            }
            if let Some(text) = value(variable, &mut problems) {
                match text.trim().parse() {
                    Ok(millis) => *field = Some(Duration::from_millis(millis)),
                    Err(_) => problems.push(ConfigProblem::NotANumber { variable, value: text }),
                }
            }
        }
        self.check(problems)
    }

    fn check(self, mut problems: Vec<ConfigProblem>) -> Result<RelayConfig, ConfigError> {
        let tenants = check_tenants(self.tenants, &mut problems);
        let seconds = Duration::from_secs;
        let poll_interval = self.poll_interval.unwrap_or(Duration::from_millis(200));
        let concurrency = self.concurrency.map(|number| (NonZeroUsize::new(number), number));
        if let Some((None, _)) = concurrency {
            problems.push(ConfigProblem::Zero { field: "concurrency" });
        }
        let mut batch = |field, value: Option<u32>, default: u32| {
            NonZeroU32::new(value.unwrap_or(default)).unwrap_or_else(|| {
                problems.push(ConfigProblem::Zero { field });
                NonZeroU32::MIN
            })
        };
        let initial_batch = batch("initial_batch", self.initial_batch, 32.min(self.max_batch.unwrap_or(32)));
        let max_batch = batch("max_batch", self.max_batch, initial_batch.get().max(1_000));
        let config = RelayConfig {
            // Without tenants there is a problem, and no configuration.
            tenants: tenants.unwrap_or(Tenants::Discovered),
            poll_interval,
            max_lag: self.max_lag.unwrap_or(seconds(60)),
            concurrency: concurrency.and_then(|(number, _)| number),
            initial_batch,
            max_batch,
            max_batch_bytes: self.max_batch_bytes.unwrap_or(DEFAULT_MAX_BYTES),
            max_batch_time: self.max_batch_time.unwrap_or(seconds(1)),
            publish_timeout: self.publish_timeout.unwrap_or(seconds(30)),
            store_timeout: self.store_timeout.unwrap_or(DEFAULT_STORE_TIMEOUT),
            stop_timeout: self.stop_timeout.unwrap_or(seconds(10)),
            max_back_off: self.max_back_off.unwrap_or(seconds(30)),
            health_timeout: self.health_timeout.unwrap_or(seconds(5)),
        };
        problems.extend(config.problems());
        if problems.is_empty() { Ok(config) } else { Err(ConfigError::new(problems)) }
    }
}

/// `None` comes with at least one problem.
fn check_tenants(list: Option<TenantList>, problems: &mut Vec<ConfigProblem>) -> Option<Tenants> {
    let before = problems.len();
    let names = match list {
        Some(TenantList::Discovered) => return Some(Tenants::Discovered),
        Some(TenantList::Named(names)) => names,
        None => Vec::new(),
    };
    if names.is_empty() {
        problems.push(ConfigProblem::NoTenants);
    }
    let (mut seen, mut tenants) = (HashSet::new(), Vec::new());
    for (index, name) in names.into_iter().enumerate() {
        match TenantId::new(name) {
            Err(source) => problems.push(ConfigProblem::InvalidTenant { place: index + 1, source }),
            Ok(tenant) if !seen.insert(tenant.clone()) => {
                problems.push(ConfigProblem::DuplicateTenant { tenant });
            }
            Ok(tenant) => tenants.push(tenant),
        }
    }
    (problems.len() == before).then(|| Tenants::Named(tenants.into()))
}
