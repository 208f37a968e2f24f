//! Snapshot transfers: snapshots sent and received as streams (docs/stream.md).

mod receive;
mod send;

use super::exports::Exports;
use super::jobs::Jobs;
use super::registry::PoolRegistry;
use super::uses::Uses;
use std::sync::Arc;

pub use receive::Receiving;
pub use send::Sending;

/// Streams in progress. Each is a job that the daemon itself runs.
pub struct Transfers {
    registry: Arc<PoolRegistry>,
    exports: Arc<Exports>,
    jobs: Arc<Jobs>,
    uses: Uses,
}

impl Transfers {
    /// No streams; `uses`: locks of volumes and snapshots in use.
    pub(super) fn new(
        registry: &Arc<PoolRegistry>,
        exports: &Arc<Exports>,
        jobs: &Arc<Jobs>,
        uses: &Uses,
    ) -> Self {
        Self {
            registry: Arc::clone(registry),
            exports: Arc::clone(exports),
            jobs: Arc::clone(jobs),
            uses: uses.clone(),
        }
    }
}
