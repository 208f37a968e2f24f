//! The checkpoints of a shard, on every member of the metadata region.

use crate::inspection::Inspection;
use crate::report::Verdict;
use format::{Checkpoint, checkpoint_block};
use units::{ShardId, VdriveId};

/// The content of one of the two places of a shard's checkpoints on one member.
pub struct CheckpointCopy {
    /// Block of the metadata region.
    pub block: u64,
    /// Part of the metadata region.
    pub part: usize,
    /// The checkpoint, if it is one that belongs there.
    pub found: Option<Checkpoint>,
    /// Nothing was written there yet.
    pub empty: bool,
    /// A newer version wrote it.
    pub newer: bool,
}

/// Every copy of a shard's checkpoints.
pub async fn copies(inspection: &Inspection<'_>, shard: u16) -> Vec<CheckpointCopy> {
    let pool = inspection.pool;
    let mut copies = Vec::new();
    for generation in 0..2 {
        let block = checkpoint_block(shard, generation);
        for (part, blocks) in pool.read_meta(block, 1).await {
            let bytes = blocks.into_iter().next().and_then(Result::ok);
            let decode = |bytes: &[u8]| Checkpoint::decode(bytes, pool.id, ShardId(shard));
            let found = bytes.as_ref().and_then(|bytes| decode(bytes));
            let newer = |bytes: &[u8]| Checkpoint::is_newer(bytes, pool.id, ShardId(shard));
            copies.push(CheckpointCopy {
                newer: bytes.as_ref().is_some_and(|bytes| newer(bytes)),
                block,
                part,
                found: found.filter(|found| found.generation % 2 == generation),
                empty: bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)),
            });
        }
    }
    copies
}

/// The newest checkpoint of a shard. Members that lack what another one has are repaired.
pub async fn newest(inspection: &Inspection<'_>, shard: u16) -> Option<Checkpoint> {
    let copies = copies(inspection, shard).await;
    if copies.iter().any(|copy| copy.newer) {
        let text = format!(
            "shard {shard}: its checkpoint was written by a newer version of Convect: use that version"
        );
        inspection.find(Verdict::Lost, text);
        return None;
    }
    let mut best: Option<Checkpoint> = None;
    for generation in 0..2 {
        let block = checkpoint_block(shard, generation);
        let here = || copies.iter().filter(|copy| copy.block == block);
        let newest = here().filter_map(|copy| copy.found);
        let Some(newest) = newest.max_by_key(|found| found.generation) else {
            if here().any(|copy| !copy.empty) {
                let text = format!("shard {shard}: one of its two checkpoints is damaged");
                inspection.find(Verdict::Whole, text);
            }
            continue;
        };
        let wrong: Vec<usize> = here()
            .filter(|copy| copy.found != Some(newest))
            .map(|copy| copy.part)
            .collect();
        inspection
            .mend_parts("checkpoint", VdriveId(0), block, &newest.encode(), &wrong)
            .await;
        if best.is_none_or(|best| best.generation < newest.generation) {
            best = Some(newest);
        }
    }
    best
}
