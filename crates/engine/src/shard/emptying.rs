//! Layers that nobody names any more give back what they have, at a pace that hosts do not feel.

use super::state::Shard;
use super::throttle::Throttle;
use block::{ErrorKind, IoError};
use format::Reap;

/// When the next chunk's turn is.
pub(super) struct Turns<'a, F> {
    throttle: Throttle<'a>,
    /// Told of each chunk that is done; whether the next one is to follow.
    done: F,
}

impl<'a, F: Fn(u32) -> bool> Turns<'a, F> {
    pub fn new(shard: &'a Shard, done: F) -> Self {
        Self {
            throttle: Throttle::reclaim(&shard.handle, &shard.meters),
            done,
        }
    }

    /// A chunk is done; waits for the next one's turn. Hosts that wait for space wait for this: then it is at
    /// once.
    ///
    /// # Errors
    /// `Gone` when none is to follow.
    pub async fn next(&mut self, shard: &Shard, chunk: u32) -> Result<(), IoError> {
        if !(self.done)(chunk) {
            return Err(IoError::new(
                ErrorKind::Gone,
                "it goes on when the pool is opened again",
            ));
        }
        match shard.starving.get() > 0 || shard.closing.get() {
            true => shard.handle.yield_now().await,
            false => self.throttle.wait(1).await,
        }
        Ok(())
    }
}

impl Shard {
    /// Empties layers, one after the other: frees what they have, or merges it into the one beneath.
    /// Reports each chunk that is done, and ends when told false. Durable with the next checkpoint.
    ///
    /// # Errors
    /// What a drive said, or `Gone` when it was told to end, of each; calling again goes on.
    pub async fn empty_layers(
        &self,
        layers: &[Reap],
        done: impl Fn(u32) -> bool,
    ) -> Vec<Result<(), IoError>> {
        let mut turns = Turns::new(self, done);
        let mut results = Vec::new();
        for reap in layers {
            results.push(match *reap {
                Reap::Free(layer) => self.free_layer(layer, &mut turns).await,
                Reap::Merge { upper, .. } => self.merge_layer(upper, &mut turns).await,
            });
        }
        results
    }

    async fn free_layer<F: Fn(u32) -> bool>(
        &self,
        layer: u32,
        turns: &mut Turns<'_, F>,
    ) -> Result<(), IoError> {
        self.end_volume(layer);
        self.free_chunks(layer, turns).await?;
        self.forget_volume(layer)
    }
}
