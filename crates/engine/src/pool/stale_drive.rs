//! Drives of a pool that are present without a label: their other records may show that the
//! drives that still have labels are old.

use super::labels::{self, on_loop};
use super::pool_drives::PoolDrive;
use super::{Result, error};
use crate::control::types::ErrorCode;
use block::{DriveError, DriveQueueExt};
use drives::OpenDrive;
use format::{Checkpoint, JournalHeader, PartConfig, PoolConfig, checkpoint_block, journal_start};
use reactor::Remote;
use std::sync::Arc;
use units::{BLOCK, PoolId, ShardId};

/// Blocks of a journal read together.
const READ: u64 = 256;

/// The newest state of a shard on a member of the metadata region.
#[derive(Clone, Copy, Default, Debug)]
struct Told {
    /// Generation of the checkpoint.
    generation: u64,
    /// Openings so far.
    epoch: u64,
    /// First missing page of the journal, in that epoch.
    next: u64,
    /// Pages of the journal below this one were durable, in that epoch.
    durable: u64,
    /// Some of it cannot be read: its content is unknown.
    unknown: bool,
}

impl Told {
    fn page(&mut self, header: &JournalHeader) {
        if header.epoch > self.epoch {
            (self.epoch, self.next, self.durable) = (header.epoch, 0, 0);
        }
        if header.epoch == self.epoch {
            self.next = self.next.max(header.sequence + 1);
            self.durable = self.durable.max(header.durable_below);
        }
    }

    /// Whether this has durable changes that `other` lacks.
    fn is_beyond(&self, other: &Self) -> bool {
        let later = (self.generation, self.epoch) > (other.generation, other.epoch);
        later || self.epoch == other.epoch && self.durable > other.next
    }
}

/// Refuses to open a pool without drives that are present, have lost their labels, and record changes
/// that the drives with labels lack. Members without a drive are missing.
pub(super) fn refuse_older(
    remote: &Remote,
    pool: PoolId,
    config: &PoolConfig,
    pool_drives: &[PoolDrive],
) -> Result<()> {
    let mut here = vec![Told::default(); usize::from(config.shards)];
    let mut unlabelled = Vec::new();
    for part in &config.meta.parts {
        let pool_drive = pool_drives
            .iter()
            .find(|it| it.id.to_string() == part.drive);
        let Some(pool_drive) = pool_drive else {
            continue;
        };
        if let Some(drive) = &pool_drive.drive {
            let told = told(remote, drive, pool, config, part);
            if !part.out {
                here.iter_mut()
                    .zip(told)
                    .for_each(|(known, told)| known.join(&told));
            }
        } else if let Ok(drive) = drives::open(&pool_drive.spec)
            && matches!(labels::read(remote, &drive), Ok(None))
        {
            // One with a label was left out by the caller.
            unlabelled.push((pool_drive, told(remote, &drive, pool, config, part)));
        }
    }
    for (pool_drive, told) in unlabelled {
        let mut both = told.iter().zip(&here);
        let spec = &pool_drive.spec;
        if told.iter().any(|told| told.unknown) {
            return error(
                ErrorCode::Refused,
                format!(
                    "pool {} is not opened without {spec}: that drive has lost its labels, and its other records \
                     cannot be read; take an image of it first, then detach it (or move its file) and import with \
                     --degraded to go on without it",
                    config.name
                ),
            );
        }
        if both.any(|(told, known)| told.is_beyond(known)) {
            return error(
                ErrorCode::Refused,
                format!(
                    "pool {} is not opened without {spec}: that drive has lost its labels, and \
                     records changes that the other drives lack; take an image of it first, then \
                     detach it (or move its file) and import with --degraded to continue without them",
                    config.name
                ),
            );
        }
    }
    Ok(())
}

impl Told {
    fn join(&mut self, other: &Self) {
        self.generation = self.generation.max(other.generation);
        if other.epoch > self.epoch {
            (self.epoch, self.next, self.durable) = (other.epoch, other.next, other.durable);
        } else if other.epoch == self.epoch {
            self.next = self.next.max(other.next);
            self.durable = self.durable.max(other.durable);
        }
    }
}

/// The states on a member, by shard, and whether they are complete.
fn told(
    remote: &Remote,
    drive: &Arc<dyn OpenDrive>,
    pool: PoolId,
    config: &PoolConfig,
    part: &PartConfig,
) -> Vec<Told> {
    let (drive, offset, end) = (drive.clone(), part.offset, part.blocks);
    let (shards, journal) = (config.shards, config.meta.journal_blocks);
    let read = on_loop(remote, move |handle| async move {
        let mut all = vec![Told::default(); usize::from(shards)];
        let Ok(queue) = drive.queue(&handle) else {
            all.iter_mut().for_each(|told| told.unknown = true);
            return all;
        };
        for (shard, told) in (0..shards).zip(&mut all) {
            let read = |block: u64, count: u64| {
                let buf = handle.dma().get(count as usize * BLOCK);
                let bounds = block.checked_add(count).is_some_and(|last| last <= end);
                let queue = &queue;
                async move {
                    if !bounds {
                        return Err(DriveError::Bounds);
                    }
                    queue.read(offset + block * BLOCK as u64, buf).await
                }
            };
            for generation in 0..2 {
                let bytes = read(checkpoint_block(shard, generation), 1).await;
                told.unknown |= bytes.is_err();
                let record = bytes.ok();
                let record =
                    record.and_then(|bytes| Checkpoint::decode(&bytes, pool, ShardId(shard)));
                if let Some(record) = record {
                    told.generation = told.generation.max(record.generation);
                    told.epoch = told.epoch.max(record.epoch);
                }
            }
            let first = journal_start(shards, shard, journal);
            let mut at = 0;
            while at < journal {
                let count = READ.min(journal - at);
                let pages = read(first + at, count).await.ok();
                for index in 0..count {
                    // One that cannot be read does not hide the others.
                    let page = match &pages {
                        Some(pages) => Ok(pages.slice(index as usize * BLOCK, BLOCK)),
                        None => read(first + at + index, 1).await,
                    };
                    told.unknown |= page.is_err();
                    let header = page.ok();
                    let header =
                        header.and_then(|page| JournalHeader::read(&page, pool, ShardId(shard)));
                    header.iter().for_each(|header| told.page(header));
                }
                at += count;
            }
        }
        all
    });
    read.unwrap_or_else(|_| {
        let unknown = Told {
            unknown: true,
            ..Told::default()
        };
        vec![unknown; usize::from(shards)]
    })
}
