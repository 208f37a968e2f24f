//! Space that a promotion claims before it writes: in its volume's ceiling, and in the budgets of its volume and
//! of its pool.

use super::settings::VolumeSettings;
use super::write_budget::Budget;
use crate::control::explain::Cause;
use crate::shard::state::Shard;
use std::sync::Arc;
use units::BLOCK;

/// Space and budget claimed by a promotion in progress. Unused budget is returned on drop.
#[derive(Default)]
pub(crate) struct Claim {
    /// The volume's settings, and blocks.
    settings: Option<(Arc<VolumeSettings>, i64)>,
    /// Budgets that bytes were taken from.
    budgets: [Option<Arc<Budget>>; 2],
    /// Claimed bytes that are not written yet.
    unwritten: u64,
}

/// A promotion is rejected, or postponed, with the reason.
pub(crate) struct NotNow(pub Cause);

impl Claim {
    /// Takes bytes from the budgets of a volume and of its pool, or from neither.
    fn take(
        &mut self,
        volume: Option<&Arc<Budget>>,
        pool: Option<&Arc<Budget>>,
        bytes: u64,
        now_ns: u64,
    ) -> Result<(), NotNow> {
        self.unwritten = bytes;
        let budgets = [(volume, Cause::StayedKnobs), (pool, Cause::StayedBudget)];
        for (taken, (budget, cause)) in self.budgets.iter_mut().zip(budgets) {
            let Some(budget) = budget else { continue };
            if !budget.take(bytes, now_ns) {
                return Err(NotNow(cause));
            }
            *taken = Some(budget.clone());
        }
        Ok(())
    }

    /// The bytes were sent to the drive.
    pub fn wrote(&mut self) {
        self.unwritten = 0;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // The map counts promoted blocks.
        if let Some((settings, blocks)) = &self.settings {
            settings.note(-blocks);
        }
        if self.unwritten > 0 {
            let budgets = self.budgets.iter().flatten();
            budgets.for_each(|budget| budget.give_back(self.unwritten));
        }
    }
}

impl Shard {
    /// Sets the promotion budget, shared with the pool's other shards.
    pub fn set_budget(&self, budget: Option<Arc<Budget>>) {
        self.state.borrow_mut().limits.set_budget(budget);
        self.raise_soon();
    }

    /// Claims space for blocks of an extent to promote; nothing is claimed without settings.
    ///
    /// # Errors
    /// If the volume's settings or the pool's budget do not permit it, or not yet.
    pub(super) fn claim_fast(
        &self,
        chunk: (u32, u32),
        extent: usize,
        blocks: usize,
    ) -> Result<Claim, NotNow> {
        let now_ns = self.handle.now_ns();
        let most = |settings: &VolumeSettings| settings.most(chunk, extent, now_ns);
        self.claim_by(chunk.0, blocks, now_ns, most)
    }

    /// The same for blocks that are pinned there: only the budgets count.
    ///
    /// # Errors
    /// As [`Shard::claim_fast`].
    pub(super) fn claim_pinned(&self, layer: u32, blocks: usize) -> Result<Claim, NotNow> {
        let now_ns = self.handle.now_ns();
        self.claim_by(layer, blocks, now_ns, |_| Some(i64::MAX))
    }

    /// If the volume then has at most `most` blocks on the fast tier.
    fn claim_by(
        &self,
        layer: u32,
        blocks: usize,
        now_ns: u64,
        most: impl Fn(&VolumeSettings) -> Option<i64>,
    ) -> Result<Claim, NotNow> {
        let state = self.state.borrow();
        let settings = state.settings_of(layer);
        let mut claim = Claim::default();
        if let Some(settings) = settings {
            let count = blocks as i64;
            let taken = most(settings).is_some_and(|most| settings.take_room(most, count));
            if !taken {
                return Err(NotNow(Cause::StayedKnobs));
            }
            claim.settings = Some((settings.clone(), count));
        }
        let budget = settings.and_then(|settings| settings.budget.as_ref());
        let bytes = (blocks * BLOCK) as u64;
        claim.take(budget, state.limits.budget(), bytes, now_ns)?;
        Ok(claim)
    }
}
