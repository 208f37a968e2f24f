//! Placement settings of this shard that are not looked up by layer: whether its volumes have settings at
//! all, and the promotion budget of the whole pool.
//!
//! Most pools have neither, and then nothing is looked up: [`Limits::has_settings`] is asked before a layer's own settings
//! (`Volume::settings`) are. Invariant: the settings here are those that layers have, each once; `Shard::set_settings`
//! gives both in one borrow of the state. Budgets are shared with the pool's other shards, and taken by promotions alone.

use super::settings::VolumeSettings;
use super::write_budget::Budget;
use format::TierConfig;
use std::sync::Arc;

/// Settings and budgets.
#[derive(Default)]
pub(crate) struct Limits {
    settings: Vec<Arc<VolumeSettings>>,
    /// The promotion budget of the pool, if there is one.
    budget: Option<Arc<Budget>>,
}

impl Limits {
    /// Replaces the layers' settings, each given once.
    pub(super) fn set_settings(&mut self, settings: Vec<Arc<VolumeSettings>>) {
        self.settings = settings;
    }

    /// Sets the promotion budget of the pool.
    pub(super) fn set_budget(&mut self, budget: Option<Arc<Budget>>) {
        self.budget = budget;
    }

    /// Whether any layer has settings.
    #[inline]
    pub(super) fn has_settings(&self) -> bool {
        !self.settings.is_empty()
    }

    /// Whether any volume has more on the fast tier than it may.
    pub(super) fn is_any_over(&self) -> bool {
        self.settings.iter().any(|settings| settings.is_over())
    }

    /// Whether anything is pinned to the fast tier.
    pub(super) fn has_fast_pins(&self) -> bool {
        let mut settings = self.settings.iter();
        settings.any(|settings| settings.pins(TierConfig::Fast).next().is_some())
    }

    /// The promotion budget of the pool, if there is one.
    pub fn budget(&self) -> Option<&Arc<Budget>> {
        self.budget.as_ref()
    }

    /// Whether it is used up at present.
    pub(super) fn is_spent(&self, now_ns: u64) -> bool {
        let budget = self.budget.as_ref();
        budget.is_some_and(|budget| budget.is_empty(now_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_budget_nothing_is_spent() {
        let mut limits = Limits::default();
        assert!(!limits.is_spent(1) && !limits.has_settings() && !limits.is_any_over());
        limits.set_budget(Some(Arc::new(Budget::new(1 << 30))));
        assert!(limits.is_spent(1), "a budget begins empty");
        limits.set_budget(None);
        assert!(limits.budget().is_none() && !limits.is_spent(1));
    }
}
