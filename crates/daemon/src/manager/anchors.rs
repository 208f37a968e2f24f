//! The end of the audit log, stored in the pools' labels so that a log that was cut short is noticed.

use crate::Control;
use crate::sync::lock;

use crate::access::Access;
use std::sync::{Arc, Mutex};

/// The end of the log of changes, as pools keep it.
pub struct AuditAnchors {
    control: Arc<dyn Control>,
    access: Arc<Access>,
    /// Number of the entry that pools keep as its end.
    kept: Mutex<u64>,
}

impl AuditAnchors {
    pub(super) fn new(control: &Arc<dyn Control>, access: &Arc<Access>) -> Self {
        Self {
            control: Arc::clone(control),
            access: Arc::clone(access),
            kept: Mutex::default(),
        }
    }

    /// Holds the log of changes against its end as a pool keeps it.
    pub(super) fn check(&self, pool: &str) {
        if let Ok(Some(anchor)) = self.control.pool_anchor(pool) {
            self.access.check_anchor(&anchor);
        }
    }

    /// Keeps the end of the log of changes in all pools, if it has grown since.
    pub fn keep(&self) {
        let Some((number, anchor)) = self.access.anchor() else {
            return;
        };
        let mut kept = lock(&self.kept);
        if *kept == number {
            return;
        }
        let Ok(pools) = self.control.pool_list() else {
            return;
        };
        for pool in pools {
            if let Err(error) = self.control.pool_set_anchor(&pool.name, &anchor) {
                let name = &pool.name;
                tracing::warn!("pool {name} does not keep the end of the log of changes: {error}");
            }
        }
        *kept = number;
    }
}
