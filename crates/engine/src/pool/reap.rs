//! Layers that nobody names any more are freed or merged, one after the other, in the background.

use super::shards::{ask_all, try_all};
use super::{Pool, Result, error, lock};
use crate::control::types::{EngineError, ErrorCode};
use crate::shard::Progress;
use format::Reap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::CHUNK;
use units::mutation::{Mutation, is_on};

/// Kind of the job.
const KIND: &str = "reclaim";

impl Pool {
    /// Starts to reclaim what no snapshot and no volume has any more, unless that is under way.
    pub(super) fn start_reaping(self: &Arc<Self>) -> Result<()> {
        let mut reaping = lock(&self.reaping);
        if *reaping || self.config().reap().is_empty() {
            return Ok(());
        }
        let pool = self.clone();
        let work = move |progress| {
            let ended = pool.reap_all(&progress);
            if !matches!(ended, Ok(true)) {
                *lock(&pool.reaping) = false;
            }
            ended
        };
        self.jobs.start(KIND, &self.name, "snapshots", 0, work)?;
        *reaping = true;
        Ok(())
    }

    /// False when it was cancelled. What cannot be done is told of at the end, after the rest.
    fn reap_all(&self, progress: &Arc<Progress>) -> Result<bool> {
        let mut failed: BTreeMap<Reap, EngineError> = BTreeMap::new();
        loop {
            let next = {
                let mut reaping = lock(&self.reaping);
                let all = self.config().reap();
                failed.retain(|reap, _| all.contains(reap));
                let next = all.into_iter().find(|reap| !failed.contains_key(reap));
                // Who adds to it from here on starts it anew.
                *reaping = next.is_some();
                next
            };
            let Some(next) = next else {
                return failed.into_values().next().map_or(Ok(true), Err);
            };
            if progress.cancel.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let done = match next {
                Reap::Free(layer) => self.free_layer(layer, progress),
                Reap::Merge { upper, lower } => self.merge_layer(upper, lower, progress),
            };
            match done {
                Ok(()) => {}
                Err(_) if progress.cancel.load(Ordering::Relaxed) => return Ok(false),
                // Its volume may have been deleted meanwhile: then something else is to be done.
                Err(error) => drop(failed.insert(next, error)),
            }
        }
    }

    /// Frees everything that a layer has, in every shard; nothing may see it any more.
    pub(super) fn free_content(
        &self,
        layer: u32,
        progress: &Arc<Progress>,
        failed: &str,
    ) -> Result<()> {
        let watched = progress.clone();
        try_all(&self.shards, failed, move |shard| {
            let watched = watched.clone();
            async move {
                shard.end_volume(layer);
                shard.free_chunks(layer, go_on(&watched)).await?;
                shard.forget_volume(layer)?;
                shard.checkpoint().await
            }
        })
    }

    fn free_layer(&self, layer: u32, progress: &Arc<Progress>) -> Result<()> {
        self.free_content(layer, progress, "a snapshot's space cannot be freed")?;
        let _changing = lock(&self.changing);
        self.update_soon(|config| {
            config.reaped(Reap::Free(layer));
            Ok(())
        })?;
        self.tell_allowances()?;
        self.shared.space.full.store(false, Ordering::Relaxed);
        ask_all(&self.shards, move |shard| async move {
            shard.remove_layer(layer).await
        })
        .map(drop)
    }

    fn merge_layer(&self, upper: u32, lower: u32, progress: &Arc<Progress>) -> Result<()> {
        let watched = progress.clone();
        try_all(&self.shards, "a snapshot cannot be merged", move |shard| {
            let watched = watched.clone();
            async move {
                shard.merge_layer(upper, go_on(&watched)).await?;
                // From here on no journal tells of the layer.
                match is_on(Mutation::MergeForgotten) {
                    true => Ok(()),
                    false => shard.checkpoint().await,
                }
            }
        })?;
        let merged = ask_all(
            &self.shards,
            move |shard| async move { shard.is_empty(upper) },
        )?;
        if merged.contains(&false) {
            let text = "a snapshot was not merged whole: its chunks are still there";
            return error(ErrorCode::Busy, text);
        }
        let _changing = lock(&self.changing);
        self.update_soon(|config| {
            config.reaped(Reap::Merge { upper, lower });
            Ok(())
        })?;
        self.tell_allowances()?;
        self.shared.space.full.store(false, Ordering::Relaxed);
        let is_volume = lock(&self.config)
            .volumes
            .iter()
            .any(|volume| volume.id == upper);
        let mut readers = lock(&self.readers);
        if let Some(id) = readers.0.remove(&upper) {
            readers.0.insert(lower, id);
        }
        drop(readers);
        ask_all(&self.shards, move |shard| async move {
            shard.adopt(upper, lower, is_volume).await
        })
        .map(drop)
    }
}

/// Counts a chunk that is done; whether the next one is to follow.
fn go_on(progress: &Progress) -> impl Fn(u32) -> bool {
    |_| {
        progress.done.fetch_add(CHUNK as u64, Ordering::Relaxed);
        !progress.cancel.load(Ordering::Relaxed)
    }
}
