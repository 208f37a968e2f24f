//! The end of the audit log, anchored in the pools' labels so that truncation is detected.

use crate::Control;
use crate::sync::lock;

use crate::access::Access;
use std::sync::{Arc, Mutex};

/// The anchor of the audit log in the pools.
pub struct AuditAnchors {
    control: Arc<dyn Control>,
    access: Arc<Access>,
    /// Number of the entry that is anchored.
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

    /// Compares the audit log with the anchor in a pool.
    pub(super) fn check(&self, pool: &str) {
        if let Ok(Some(anchor)) = self.control.pool_anchor(pool) {
            self.access.check_anchor(&anchor);
        }
    }

    /// Anchors the end of the audit log in all pools, if it has grown.
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
                tracing::warn!("cannot anchor the audit log in pool {name}: {error}");
            }
        }
        *kept = number;
    }
}
