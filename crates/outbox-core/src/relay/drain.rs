//! Publishing what is pending, once, and saying what came of it.

use std::sync::Arc;

use super::engine::DrainReport;
use super::error::RelayError;
use super::handle::runtime;
use super::run;
use super::shared::Shared;
use super::stop::{Stop, StopOnDrop};

pub(super) async fn drain(shared: Arc<Shared>) -> Result<DrainReport, RelayError> {
    let runtime = runtime(&shared)?;
    let stop = StopOnDrop(Stop::default());
    runtime.spawn(run::drain(shared, stop.0.clone())).await.map_err(RelayError::died)?
}
