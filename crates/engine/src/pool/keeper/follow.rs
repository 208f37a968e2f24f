//! Labels of drives that missed the latest generations: they follow the others.
//!
//! Responsible for: bringing them up to date a little later, and before a generation goes to all
//! drives, never over the newest label that a drive has.

use super::{FOLLOW_AFTER_NS, Keeper, Scope, Taken, Target, leads, take};
use crate::pool::lock;
use reactor::Handle;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Keeper {
    /// Whether a drive's label is older than the pool's.
    pub fn has_older(&self) -> bool {
        !self.older().is_empty()
    }

    /// Updates those labels a second later, and again until none is left.
    pub(super) async fn follow(self: Arc<Self>, handle: Handle) {
        while !self.members.is_closed() {
            handle.sleep(FOLLOW_AFTER_NS).await;
            let _following = take(&self.following).await;
            if !self.follow_once(&handle).await || !self.has_older() {
                break;
            }
        }
        self.will_follow.store(false, Ordering::Release);
    }

    /// The right to write to every drive, with no drive's label older than the pool's: the next
    /// generation is not written over the newest one of a drive.
    pub(super) async fn level(&self, handle: &Handle) -> (Taken<'_>, Taken<'_>) {
        let following = take(&self.following).await;
        // Twice, since those with an even and those with an odd generation do not go together.
        for _ in 0..2 {
            if self.has_older() {
                self.follow_once(handle).await;
            }
        }
        (following, take(&self.turn).await)
    }

    /// Drives of the pool whose labels are older than the pool's.
    fn older(&self) -> Vec<(Target, u64)> {
        let generation = self.generation.load(Ordering::Acquire);
        let (pool_drives, _) = self.targets();
        let labelled = lock(&self.labelled);
        let with_own = pool_drives
            .into_iter()
            .filter_map(|pool_drive| Some((labelled.get(&pool_drive.0).copied()?, pool_drive)));
        with_own
            .filter(|(own, pool_drive)| {
                *own < generation && !pool_drive.2.silent.load(Ordering::Relaxed)
            })
            .map(|(own, pool_drive)| (pool_drive, own))
            .collect()
    }

    /// Writes the pool's label to drives that have an older one. The caller must have the right to. False
    /// if one failed: it is retried with the next generation.
    async fn follow_once(&self, handle: &Handle) -> bool {
        let writing = take(&self.turn).await;
        let older = self.older();
        if self.members.is_closed() || older.is_empty() {
            return true;
        }
        let over = |generation: u64, own: u64| generation % 2 == own % 2;
        let generation = self.generation.load(Ordering::Acquire);
        if older.iter().any(|(_, own)| over(generation, *own)) {
            let config = lock(&self.config).clone();
            self.write_round(handle, &config, false, Scope::Leading)
                .await;
        }
        let generation = self.generation.load(Ordering::Acquire);
        let label = self.label(generation, false, lock(&self.config).clone());
        let Ok(bytes) = label.encode() else {
            return false;
        };
        let due = older.iter().filter(|(_, own)| !over(generation, *own));
        let targets: Vec<Target> = due.map(|(target, _)| target.clone()).collect();
        // Urgent labels go to drives with metadata: never to one that is written here.
        let leads = targets.iter().any(|(id, ..)| leads(&label.config, *id));
        let _writing = leads.then_some(writing);
        let results = self.write_to(handle, &targets, generation, &bytes).await;
        let all = results.iter().all(|(_, result)| result.is_ok());
        for (id, result) in results {
            match result {
                Ok(()) => self.note(id, generation),
                Err(failed) => {
                    tracing::warn!(pool = self.name, error = %failed.error, "a label was not written");
                    self.members
                        .take_drive_out(id, &failed.error.message, failed.flush);
                }
            }
        }
        all
    }
}
