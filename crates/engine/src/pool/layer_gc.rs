//! Unreferenced layers are freed or merged in the background, one after the other; what
//! makes it durable, a checkpoint and a label, is done once for many.

use super::shards::{ask_all, code_of, try_all};
use super::{Pool, Result, lock};
use crate::control::types::{EngineError, ErrorCode};
use crate::shard::Progress;
use format::Reap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::mutation::{Mutation, is_on};

/// Kind of the job.
const KIND: &str = "reclaim";
const NOT_GIVEN_BACK: &str = "the space of deleted data cannot be reclaimed";
/// Most layers per checkpoint and label.
const TOGETHER: usize = 256;

impl Pool {
    /// Starts to reclaim unreferenced layers, unless that is in progress.
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
        self.start_job((KIND, "snapshots"), (0, 0), work)?;
        *reaping = true;
        Ok(())
    }

    /// False when it was cancelled. Errors are reported at the end, after the rest.
    fn reap_all(&self, progress: &Arc<Progress>) -> Result<bool> {
        let mut failed: BTreeMap<Reap, EngineError> = BTreeMap::new();
        loop {
            let next = {
                let mut reaping = lock(&self.reaping);
                let all = self.config().reap();
                failed.retain(|reap, _| all.contains(reap));
                let next = apart(all.into_iter().filter(|reap| !failed.contains_key(reap)));
                // Additions from here on start it again.
                *reaping = !next.is_empty();
                next
            };
            if next.is_empty() {
                return failed.into_values().next().map_or(Ok(true), Err);
            }
            let emptied = self.empty_layers(next, progress, &mut failed)?;
            if let Err(error) = self.forget_layers(&emptied, &mut failed) {
                failed.extend(emptied.into_iter().map(|reap| (reap, error.clone())));
            }
            if progress.is_cancelled() {
                return Ok(false);
            }
        }
    }

    /// Frees their pages in every shard, or merges them into the layer beneath. Returns the layers without any pages left;
    /// for the others the error is logged.
    fn empty_layers(
        &self,
        layers: Vec<Reap>,
        progress: &Arc<Progress>,
        failed: &mut BTreeMap<Reap, EngineError>,
    ) -> Result<Vec<Reap>> {
        let (progress, wanted) = (progress.clone(), layers.clone());
        let results = ask_all(&self.shards, move |shard| {
            let (progress, wanted) = (progress.clone(), wanted.clone());
            async move { shard.empty_layers(&wanted, &progress).await }
        })?;
        for (reap, result) in results.iter().flat_map(|of| layers.iter().zip(of)) {
            if let Err(error) = result {
                failed.insert(*reap, not_given_back(error));
            }
        }
        // Its volume may have been deleted meanwhile: then other work is due.
        let emptied = layers.into_iter().filter(|reap| !failed.contains_key(reap));
        Ok(emptied.collect())
    }

    /// Frees everything that a layer has, in every shard, durably; nothing may refer to it any longer.
    pub(super) fn free_content(&self, layer: u32, progress: &Arc<Progress>) -> Result<()> {
        let mut failed = BTreeMap::new();
        self.empty_layers(vec![Reap::Free(layer)], progress, &mut failed)?;
        match failed.into_values().next() {
            Some(error) => Err(error),
            None => try_all(&self.shards, NOT_GIVEN_BACK, |shard| async move {
                shard.checkpoint().await
            }),
        }
    }

    /// Removes emptied layers: one checkpoint and one label for all of them.
    fn forget_layers(
        &self,
        emptied: &[Reap],
        failed: &mut BTreeMap<Reap, EngineError>,
    ) -> Result<()> {
        if emptied.is_empty() {
            return Ok(());
        }
        try_all(&self.shards, NOT_GIVEN_BACK, |shard| async move {
            // From here on no journal refers to the layers.
            match is_on(Mutation::MergeForgotten) {
                true => Ok(()),
                false => shard.checkpoint().await,
            }
        })?;
        let mut gone = Vec::new();
        for reap in emptied.iter().copied() {
            match self.is_empty(reap)? {
                true => gone.push(reap),
                false => drop(failed.insert(reap, not_whole())),
            }
        }
        let _changing = lock(&self.changing);
        let config = self.config();
        let due = config.reap();
        gone.retain(|reap| due.contains(reap));
        self.update_soon(|config| {
            gone.iter().for_each(|reap| config.reaped(*reap));
            Ok(())
        })?;
        self.tell_holders()?;
        self.shared.space.full.store(false, Ordering::Relaxed);
        let mut readers = lock(&self.readers);
        for reap in &gone {
            if let Reap::Merge { upper, lower } = reap
                && let Some(id) = readers.0.remove(upper)
            {
                readers.0.insert(*lower, id);
            }
        }
        drop(readers);
        let volumes: BTreeSet<u32> = config.volumes.iter().map(|volume| volume.id).collect();
        ask_all(&self.shards, move |shard| {
            let (gone, volumes) = (gone.clone(), volumes.clone());
            async move {
                for reap in gone {
                    match reap {
                        Reap::Free(layer) => shard.remove_layer(layer).await,
                        Reap::Merge { upper, lower } => {
                            shard.adopt(upper, lower, volumes.contains(&upper)).await;
                        }
                    }
                }
            }
        })
        .map(drop)
    }

    /// Whether a merged layer is empty in all shards. Freed ones are known to be.
    fn is_empty(&self, reap: Reap) -> Result<bool> {
        let Reap::Merge { upper, .. } = reap else {
            return Ok(true);
        };
        let empty = ask_all(
            &self.shards,
            move |shard| async move { shard.is_empty(upper) },
        )?;
        Ok(!empty.contains(&false))
    }
}

fn not_given_back(failed: &block::IoError) -> EngineError {
    EngineError::new(code_of(failed), format!("{NOT_GIVEN_BACK}: {failed}"))
}

fn not_whole() -> EngineError {
    let text = "a snapshot was not merged completely: some of its chunks remain";
    EngineError::new(ErrorCode::Busy, text)
}

/// A set that can be done together: each layer takes part in only one.
fn apart(all: impl Iterator<Item = Reap>) -> Vec<Reap> {
    let mut taken = BTreeSet::new();
    let free = |reap: &Reap| match *reap {
        Reap::Free(layer) => taken.insert(layer),
        Reap::Merge { upper, lower } => {
            let free = !taken.contains(&upper) && !taken.contains(&lower);
            if free {
                taken.extend([upper, lower]);
            }
            free
        }
    };
    all.filter(free).take(TOGETHER).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layer_has_a_part_in_one_alone() {
        let merge = |upper, lower| Reap::Merge { upper, lower };
        let all = [
            merge(2, 1),
            merge(3, 2),
            merge(4, 3),
            Reap::Free(3),
            Reap::Free(7),
        ];
        let together = apart(all.into_iter());
        assert_eq!(together, [merge(2, 1), merge(4, 3), Reap::Free(7)]);
        let many = apart((0..1000).map(Reap::Free));
        assert_eq!(many.len(), TOGETHER);
    }
}
