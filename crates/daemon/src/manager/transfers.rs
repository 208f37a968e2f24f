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

/// Snapshots that are being sent and received. Each is a job of the daemon's own.
pub struct Transfers {
    registry: Arc<PoolRegistry>,
    exports: Arc<Exports>,
    jobs: Arc<Jobs>,
    uses: Uses,
}

impl Transfers {
    /// None; `uses`: what is kept from others meanwhile.
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
