//! Garbage collection of layers: the space of unreferenced layers is freed, at a rate that does not disturb hosts.

use super::progress::Progress;
use super::upkeep::Throttle;
use crate::shard::state::Shard;
use block::{ErrorKind, IoError};
use format::Reap;
use std::sync::atomic::Ordering;
use units::CHUNK;

/// Time of the next chunk's turn.
pub(crate) struct Turns<'a> {
    throttle: Throttle<'a>,
    /// Called after each chunk; returns whether to continue.
    progress: &'a Progress,
}

impl<'a> Turns<'a> {
    pub fn new(shard: &'a Shard, progress: &'a Progress) -> Self {
        Self {
            throttle: Throttle::reclaim(&shard.upkeep),
            progress,
        }
    }

    /// A chunk is done; waits for the next one's turn. If hosts wait for space, the turn is
    /// immediate, also while it is paused.
    ///
    /// # Errors
    /// `Gone` if it was cancelled.
    pub async fn next(&mut self, shard: &Shard) -> Result<(), IoError> {
        self.progress
            .done
            .fetch_add(CHUNK as u64, Ordering::Relaxed);
        self.rest(shard).await;
        if self.progress.is_cancelled() {
            return Err(IoError::new(
                ErrorKind::Gone,
                "it continues when the pool is opened again",
            ));
        }
        match shard.space_waiters.are_any() || shard.lifecycle.is_closing() {
            true => shard.handle.yield_now().await,
            false => self.throttle.wait(1).await,
        }
        Ok(())
    }

    /// Waits while it is paused, and no host waits for space.
    async fn rest(&self, shard: &Shard) {
        let may = || !shard.lifecycle.is_closing() && !shard.space_waiters.are_any();
        self.progress.rest(&shard.handle, may).await;
    }
}

impl Shard {
    /// Empties layers, one after the other: frees what they have, or merges it into the one beneath.
    /// Reports each chunk that is done, and can be paused and cancelled. Durable with the next checkpoint.
    ///
    /// # Errors
    /// A drive's error, or `Gone` if it was cancelled, for each; calling again continues.
    pub async fn empty_layers(
        &self,
        layers: &[Reap],
        progress: &Progress,
    ) -> Vec<Result<(), IoError>> {
        let mut turns = Turns::new(self, progress);
        turns.rest(self).await;
        let mut results = Vec::new();
        for reap in layers {
            results.push(match *reap {
                Reap::Free(layer) => self.free_layer(layer, &mut turns).await,
                Reap::Merge { upper, .. } => self.merge_layer(upper, &mut turns).await,
            });
        }
        results
    }

    async fn free_layer(&self, layer: u32, turns: &mut Turns<'_>) -> Result<(), IoError> {
        self.end_volume(layer);
        self.free_chunks(layer, turns).await?;
        self.forget_volume(layer)
    }
}
