//! Bytes written to a pool's drives, recorded in the labels, and the promotion budget.

use super::shards::ask_all;
use super::{Pool, Result, error, lock};
use crate::control::types::ErrorCode;
use crate::control::wear::{BudgetStatus, PoolChange, WearStatus};
use crate::shard::{Budget, ShardStatus};
use format::{PoolConfig, WearConfig};
use std::sync::Arc;

impl Pool {
    /// Records bytes written to drives in the labels. Counters of a drive that are not recorded
    /// yet start at `now_s`, seconds since 1970.
    ///
    /// # Errors
    /// When no label can be written.
    pub fn keep_wear(&self, now_s: u64) -> Result<()> {
        let _changing = lock(&self.changing);
        let pool_drives = lock(&self.pool_drives).clone();
        let begins = lock(&self.config).drives.iter().any(is_uncounted);
        if !begins && !pool_drives.iter().any(has_more) {
            return Ok(());
        }
        let written = pool_drives
            .iter()
            .map(|pool_drive| pool_drive.shared.tally.written());
        let written: Vec<u64> = written.collect();
        self.update_soon(|config| {
            let new = config.drives.iter_mut().filter(|drive| is_uncounted(drive));
            new.for_each(|drive| drive.wear.since_s = now_s.max(1));
            self.tell_wear(config);
            Ok(())
        })?;
        for (pool_drive, written) in pool_drives.iter().zip(written) {
            pool_drive.shared.wear.keep(written);
        }
        Ok(())
    }

    /// Adds the bytes written to the drives to a description, for drives whose counting has started.
    pub(super) fn tell_wear(&self, config: &mut PoolConfig) {
        let pool_drives = lock(&self.pool_drives);
        let counted = config.drives.iter_mut();
        for drive in counted.filter(|drive| !is_uncounted(drive)) {
            let mut pool_drives = pool_drives.iter();
            if let Some(pool_drive) =
                pool_drives.find(|pool_drive| pool_drive.id.to_string() == drive.id)
            {
                drive.wear = pool_drive.shared.worn(drive.wear.since_s);
            }
        }
    }

    /// Sets the promotion budget per day (bytes, rounded up to whole 4 KiB; 0: as many as are worth it).
    ///
    /// # Errors
    /// `Invalid`, or when no drive takes the label.
    pub fn change(&self, change: &PoolChange) -> Result<()> {
        let _changing = lock(&self.changing);
        let Some(asked) = change.promotion_budget else {
            return Ok(());
        };
        let bytes = match format::whole_limit("promotion budget", asked) {
            Ok(bytes) => bytes,
            Err(wrong) => {
                let text = format!(
                    "pool {} would have {wrong}: choose a smaller one",
                    self.name
                );
                return error(ErrorCode::Invalid, text);
            }
        };
        if bytes == lock(&self.config).promotion_budget {
            return Ok(());
        }
        self.update_soon(|config| {
            config.promotion_budget = bytes;
            Ok(())
        })?;
        self.tell_budget()
    }

    /// Gives all shards one new bucket, as the description says; it begins empty. Nothing is sent if there was
    /// no budget, and is not now.
    pub(super) fn tell_budget(&self) -> Result<()> {
        let daily = lock(&self.config).promotion_budget;
        let budget = (daily > 0).then(|| Arc::new(Budget::new(daily)));
        let before = std::mem::replace(&mut *lock(&self.shared.budget), budget.clone());
        if before.is_none() && budget.is_none() {
            return Ok(());
        }
        ask_all(&self.shards, move |shard| {
            let budget = budget.clone();
            async move { shard.set_budget(budget) }
        })
        .map(drop)
    }

    /// The promotion budget, if there is one.
    pub(super) fn budget_status(&self, shards: &[ShardStatus]) -> Option<BudgetStatus> {
        let budget = lock(&self.shared.budget).clone()?;
        let now_ns = shards.iter().map(|shard| shard.now_ns).max().unwrap_or(0);
        Some(BudgetStatus {
            daily: budget.daily(),
            today: budget.today(now_ns),
            left: budget.left_at(now_ns),
        })
    }
}

/// Whether the start of its counting is not recorded yet.
fn is_uncounted(drive: &format::DriveConfig) -> bool {
    drive.wear.since_s == 0
}

/// Whether its labels lack some of the bytes written to it.
fn has_more(pool_drive: &super::pool_drives::PoolDrive) -> bool {
    pool_drive
        .shared
        .wear
        .has_more(&pool_drive.shared.tally.sums())
}

/// Bytes written to a drive.
pub(super) fn status(wear: &WearConfig) -> WearStatus {
    WearStatus {
        since_s: wear.since_s,
        hosts: wear.hosts,
        promotion: wear.promotion,
        upkeep: wear.upkeep,
        metadata: wear.metadata,
    }
}
