//! Wear: bytes written to drives, stored in their labels every ten minutes, and daily rates.

use crate::Control;
use crate::clock::now_s;
use crate::mapping::ToApi;
use crate::sync::lock;
use api::v1;
use engine::{DriveStatus, PoolStatus};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Interval of label updates, in seconds.
const KEEP_S: u64 = 600;
/// Minimum observation time of a daily rate, in seconds.
const LEAST_S: u64 = 60;
const DAY_S: u64 = 86_400;

/// Observations of pools and drives, by id; times are seconds of a monotonic clock.
#[derive(Default)]
struct WearSamples {
    /// When a drive was first seen, and its bytes written by then.
    drives: BTreeMap<(String, String), (u64, u64)>,
    /// When a pool's labels were last updated.
    kept: BTreeMap<String, u64>,
}

/// Bytes per day; none if the time is too short.
fn daily(bytes: u64, time_s: u64) -> Option<u64> {
    let daily = u128::from(bytes) * u128::from(DAY_S) / u128::from(time_s.max(1));
    (time_s >= LEAST_S).then(|| u64::try_from(daily).unwrap_or(u64::MAX))
}

fn drives(pool: &PoolStatus) -> impl Iterator<Item = &DriveStatus> {
    pool.vdrives.iter().flat_map(|vdrive| &vdrive.drives)
}

impl WearSamples {
    /// Wear of a drive at `up_s` and `now_s` (seconds since 1970).
    fn told(&self, pool: &str, drive: &DriveStatus, up_s: u64, now_s: u64) -> v1::Wear {
        let wear = drive.wear;
        let total = wear.total();
        let since_s = Some(wear.since_s).filter(|since_s| *since_s > 0);
        let first = self.drives.get(&(pool.to_owned(), drive.id.clone()));
        v1::Wear {
            since_s,
            total,
            hosts: wear.hosts,
            promotion: wear.promotion,
            upkeep: wear.upkeep,
            metadata: wear.metadata,
            daily: since_s.and_then(|since_s| daily(total, now_s.saturating_sub(since_s))),
            daily_since_start: first.and_then(|(seen_s, before)| {
                daily(total.saturating_sub(*before), up_s.saturating_sub(*seen_s))
            }),
        }
    }

    /// Records the present counters, and returns the pools whose labels are due.
    fn look(&mut self, pools: &[PoolStatus], up_s: u64) -> Vec<String> {
        let before = std::mem::take(self);
        let mut due = Vec::new();
        for pool in pools {
            for drive in drives(pool) {
                let key = (pool.id.clone(), drive.id.clone());
                let first = before.drives.get(&key).copied();
                let first = first.unwrap_or((up_s, drive.wear.total()));
                self.drives.insert(key, first);
            }
            let kept = before.kept.get(&pool.id).copied().unwrap_or(up_s);
            let new = drives(pool).any(|drive| drive.wear.since_s == 0);
            let is_due = new || up_s.saturating_sub(kept) >= KEEP_S;
            self.kept
                .insert(pool.id.clone(), if is_due { up_s } else { kept });
            if is_due {
                due.push(pool.name.clone());
            }
        }
        due
    }
}

/// Wear of the drives of open pools, and its storage in the labels.
pub struct WearMonitor {
    control: Arc<dyn Control>,
    began: Instant,
    /// Locked briefly.
    watched: Mutex<WearSamples>,
}

impl WearMonitor {
    /// A monitor without drives; `began`: the daemon's start.
    pub(super) fn new(control: &Arc<dyn Control>, began: Instant) -> Self {
        Self {
            control: Arc::clone(control),
            began,
            watched: Mutex::default(),
        }
    }

    /// Wear of a drive of a pool.
    pub(super) fn of(&self, pool: &str, drive: &DriveStatus) -> v1::Wear {
        let up_s = self.began.elapsed().as_secs();
        lock(&self.watched).told(pool, drive, up_s, now_s())
    }

    /// Samples the counters at `up_s`, seconds of a monotonic clock, and updates the labels that
    /// are due; `now_s` is seconds since 1970.
    pub fn watch(&self, up_s: u64, now_s: u64) {
        let pools = match self.control.pool_list() {
            Ok(pools) => pools,
            Err(error) => {
                tracing::error!("cannot read the wear of drives: {error}");
                return;
            }
        };
        let due = lock(&self.watched).look(&pools, up_s);
        for pool in due {
            if let Err(error) = self.control.pool_keep_wear(&pool, now_s) {
                tracing::warn!("cannot store the wear of pool {pool}'s drives: {error}");
            }
        }
    }

    /// Samples the counters now.
    pub fn watch_now(&self) {
        self.watch(self.began.elapsed().as_secs(), now_s());
    }
}

impl ToApi for engine::BudgetStatus {
    type Api = v1::PromotionBudget;
    fn to_api(self) -> v1::PromotionBudget {
        v1::PromotionBudget {
            daily: self.daily,
            today: self.today,
            left: self.left,
        }
    }
}
