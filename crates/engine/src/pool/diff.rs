//! Differences between a volume or a snapshot and a snapshot that it is based on.

use super::shards::{ask_all, code_of};
use super::{Pool, Result, ShardHandle, error};
use crate::control::types::{ChangedRange, EngineError, ErrorCode, SnapshotDiff};
use crate::shard::ChangedChunk;
use block::{BlockDevice, ErrorKind, IoError};
use format::VolumeConfig;
use std::collections::BTreeMap;
use units::{BLOCK, CHUNK, CHUNK_BLOCKS};

/// Most ranges in one response.
const RANGES_MAX: usize = 65_536;
/// Most queries to shards for one response, which may therefore have fewer ranges.
const ROUNDS: usize = 64;

/// Ranges that are collected in order.
struct Ranges {
    found: Vec<ChangedRange>,
    limit: usize,
}

impl Ranges {
    /// Adds a block at `offset` (bytes); false if that exceeds the number of ranges.
    fn add(&mut self, offset: u64, data: bool) -> bool {
        let len = BLOCK as u64;
        if let Some(last) = self.found.last_mut()
            && last.offset + last.len == offset
            && last.data == data
        {
            last.len += len;
            return true;
        }
        if self.found.len() >= self.limit {
            return false;
        }
        self.found.push(ChangedRange { offset, len, data });
        true
    }

    /// Adds a chunk's blocks within `start` and `end` (bytes). Returns the first one that has no
    /// room any longer.
    fn add_chunk(&mut self, changed: &ChangedChunk, start: u64, end: u64) -> Option<u64> {
        let first = u64::from(changed.chunk) * CHUNK as u64;
        let of = |block: usize| first + (block * BLOCK) as u64;
        let blocks = (0..CHUNK_BLOCKS).filter(|block| changed.changed.has(*block));
        blocks
            .filter(|block| (start..end).contains(&of(*block)))
            .find(|block| !self.add(of(*block), changed.data.has(*block)))
            .map(of)
    }
}

impl Pool {
    /// The differences between a volume, or its snapshot `to`, and the snapshot `from`, or
    /// an empty volume: from `start` (bytes) on, at most `limit` ranges, perhaps fewer.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if it does not descend from that snapshot, or `start` or `limit` is invalid;
    /// a drive's error.
    pub fn diff(
        &self,
        volume: &str,
        from: Option<&str>,
        to: Option<&str>,
        start: u64,
        limit: usize,
    ) -> Result<SnapshotDiff> {
        let of = self.find_volume(volume)?;
        let device = match to {
            Some(name) => self.open_snapshot(volume, name)?,
            None => self.open_volume(volume)?,
        };
        let size = device.geometry().size;
        if !start.is_multiple_of(BLOCK as u64) || start > size {
            let text = format!(
                "a difference begins at a multiple of 4096 below {size} bytes, not at {start}"
            );
            return error(ErrorCode::Invalid, text);
        }
        if !(1..=RANGES_MAX).contains(&limit) {
            let text = format!("a response has 1 to {RANGES_MAX} ranges, not {limit}");
            return error(ErrorCode::Invalid, text);
        }
        let since = match from {
            Some(from) => self.find_base(&of, from, to, &device.bases())?,
            None => 0,
        };
        let mut ranges = Ranges {
            found: Vec::new(),
            limit,
        };
        let next = self.collect((device.id(), since), start, size, &mut ranges)?;
        Ok(SnapshotDiff {
            size,
            ranges: ranges.found,
            next,
        })
    }

    /// The epoch of a snapshot that something is based on, which is one of `bases`.
    fn find_base(
        &self,
        volume: &VolumeConfig,
        from: &str,
        to: Option<&str>,
        bases: &[(String, u32)],
    ) -> Result<u32> {
        let prefix = format!("{}@", volume.name);
        let name = from.strip_prefix(&prefix).unwrap_or(from);
        if let Some((_, epoch)) = bases.iter().find(|(known, _)| known == name) {
            return Ok(*epoch);
        }
        match name.split_once('@') {
            Some((other, name)) => self.find_snapshot(&self.find_volume(other)?, name)?,
            None => self.find_snapshot(volume, name)?,
        };
        let what = match to {
            Some(to) => format!("snapshot {to} of volume {}", volume.name),
            None => format!("volume {}", volume.name),
        };
        let text = format!(
            "{what} does not descend from snapshot {from}: compare a snapshot with a later \
             one of the same volume, with the volume, or with a clone; see `convect snapshot list`"
        );
        error(ErrorCode::Invalid, text)
    }

    /// Collects from `start` to `size` (bytes) the differences between a device and the snapshot of an
    /// epoch. Returns where to continue, in bytes, unless that was all.
    fn collect(
        &self,
        (id, since): (u32, u32),
        start: u64,
        size: u64,
        ranges: &mut Ranges,
    ) -> Result<Option<u64>> {
        let chunks = size.div_ceil(CHUNK as u64) as u32;
        // Where each shard's queries continue: its chunks before are in `pending`, or done.
        let mut known_to = vec![(start / CHUNK as u64) as u32; self.shards.len()];
        let mut pending: BTreeMap<u32, ChangedChunk> = BTreeMap::new();
        for _ in 0..ROUNDS {
            let from = known_to.iter().copied().min().unwrap_or(chunks);
            if from >= chunks {
                return Ok(None);
            }
            let behind: Vec<usize> = (0..known_to.len())
                .filter(|shard| known_to[*shard] == from)
                .collect();
            let shards: Vec<ShardHandle> = behind
                .iter()
                .map(|shard| self.shards[*shard].clone())
                .collect();
            let answers = ask_all(&shards, move |shard| async move {
                shard.changed_chunks(id, since, from..chunks).await
            })?;
            for (shard, answer) in behind.iter().zip(answers) {
                let (found, next) = answer.map_err(|failed| not_compared(&failed))?;
                known_to[*shard] = next.unwrap_or(chunks);
                pending.extend(found.into_iter().map(|changed| (changed.chunk, changed)));
            }
            let known = known_to.iter().copied().min().unwrap_or(chunks);
            let later = pending.split_off(&known);
            for changed in pending.values() {
                if let Some(next) = ranges.add_chunk(changed, start, size) {
                    return Ok(Some(next));
                }
            }
            pending = later;
        }
        let known = known_to.into_iter().min().unwrap_or(chunks);
        Ok((known < chunks).then(|| start.max(u64::from(known) * CHUNK as u64)))
    }
}

fn not_compared(failed: &IoError) -> EngineError {
    match failed.kind {
        ErrorKind::Gone | ErrorKind::Invalid => {
            let text = "a compared snapshot or volume was deleted or rolled back meanwhile: see \
                        `convect snapshot list`";
            EngineError::new(ErrorCode::NotFound, text)
        }
        _ => EngineError::new(code_of(failed), failed.to_string()),
    }
}
