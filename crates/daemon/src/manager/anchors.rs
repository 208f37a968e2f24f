//! The end of the log of changes in the pools' labels.

use super::core::{Manager, lock};

impl Manager {
    /// Holds the log of changes against its end as a pool keeps it.
    pub(super) fn check_anchor(&self, pool: &str) {
        if let Ok(Some(anchor)) = self.control.pool_anchor(pool) {
            self.access.check_anchor(&anchor);
        }
    }

    /// Keeps the end of the log of changes in all pools, if it has grown since.
    pub fn keep_anchors(&self) {
        let Some((number, anchor)) = self.access.anchor() else {
            return;
        };
        let mut kept = lock(&self.anchored);
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
