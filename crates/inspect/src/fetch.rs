//! Reading blocks whose checksum is known, from every drive that should have them.

use crate::pool::{Pool, Vdrive};
use block::{DmaBuf, DriveError};
use format::crc32c;
use futures_util::future::join_all;
use units::{BLOCK, Place};

/// Blocks of one transfer.
const RUN: usize = 64;

/// A block that is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Want {
    /// Where.
    pub place: Place,
    /// CRC32C of its content.
    pub crc: u32,
}

/// Result of reading a block.
#[derive(Default)]
pub struct Got {
    /// Its content, if any drive has it right.
    pub bytes: Option<DmaBuf>,
    /// Parts that are here and up to date and do not have it right. Only complete when every copy
    /// was requested.
    pub wrong: Vec<usize>,
    /// Parts that should have it and are missing or not up to date.
    pub absent: usize,
}

/// Which copies are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Copies {
    /// Until one is right.
    First,
    /// All.
    Every,
}

/// Consecutive blocks on one part (or on all of a mirror): indices of the wants.
struct Run<'a> {
    vdrive: &'a Vdrive,
    first: u64,
    wants: Vec<usize>,
}

impl Pool {
    /// Reads blocks, in runs where they lie together. The answers are in the order of the wants;
    /// a place outside of the pool gives nothing.
    pub async fn fetch(&self, wants: &[Want], copies: Copies) -> Vec<Got> {
        let mut order: Vec<usize> = (0..wants.len()).collect();
        order.sort_by_key(|index| wants[*index].place);
        let mut runs: Vec<Run<'_>> = Vec::new();
        for index in order {
            let place = wants[index].place;
            let Some(vdrive) = self.vdrive_of(place) else {
                continue;
            };
            let fits = runs.last().is_some_and(|run| {
                let length = run.wants.len();
                run.vdrive.id == vdrive.id
                    && run.first + length as u64 == place.block()
                    && length < RUN
                    && run.vdrive.layout.fragment(run.first, length + 1).count > length
            });
            match runs.last_mut() {
                Some(run) if fits => run.wants.push(index),
                _ => runs.push(Run {
                    vdrive,
                    first: place.block(),
                    wants: vec![index],
                }),
            }
        }
        let mut all: Vec<Got> = wants.iter().map(|_| Got::default()).collect();
        let fetched = join_all(runs.iter().map(|run| self.fetch_run(run, wants, copies))).await;
        for (run, found) in runs.iter().zip(fetched) {
            for (index, got) in run.wants.iter().zip(found) {
                all[*index] = got;
            }
        }
        all
    }

    async fn fetch_run(&self, run: &Run<'_>, wants: &[Want], copies: Copies) -> Vec<Got> {
        let mut found: Vec<Got> = run.wants.iter().map(|_| Got::default()).collect();
        let parts: Vec<(usize, u64)> = run.vdrive.copies(run.first).collect();
        let up_to_date = |part: &usize| !run.vdrive.parts[*part].out;
        for (part, byte) in parts.iter().filter(|(part, _)| up_to_date(part)) {
            if copies == Copies::First && found.iter().all(|got| got.bytes.is_some()) {
                break;
            }
            let Some(disk) = run.vdrive.parts[*part].disk else {
                found.iter_mut().for_each(|got| got.absent += 1);
                continue;
            };
            let blocks = self.read_blocks(disk, *byte, run.wants.len()).await;
            for ((got, index), block) in found.iter_mut().zip(&run.wants).zip(blocks) {
                match block {
                    Ok(bytes) if crc32c(&bytes) == wants[*index].crc => got.bytes = Some(bytes),
                    // Behind the end of a drive that was truncated.
                    Err(DriveError::Bounds) => got.absent += 1,
                    _ => got.wrong.push(*part),
                }
            }
        }
        // What a part that was set aside has may still be right: its checksum tells.
        for (part, byte) in parts.iter().filter(|(part, _)| !up_to_date(part)) {
            found.iter_mut().for_each(|got| got.absent += 1);
            let Some(disk) = run.vdrive.parts[*part].disk else {
                continue;
            };
            if found.iter().all(|got| got.bytes.is_some()) {
                continue;
            }
            let blocks = self.read_blocks(disk, *byte, run.wants.len()).await;
            for ((got, index), block) in found.iter_mut().zip(&run.wants).zip(blocks) {
                let right = block
                    .ok()
                    .filter(|bytes| crc32c(bytes) == wants[*index].crc);
                got.bytes = got.bytes.take().or(right);
            }
        }
        found
    }

    /// Consecutive blocks of a drive. When one cannot be read the others still are.
    pub(crate) async fn read_blocks(
        &self,
        disk: usize,
        byte: u64,
        count: usize,
    ) -> Vec<Result<DmaBuf, DriveError>> {
        let disk = &self.disks[disk];
        let whole = disk.size.saturating_sub(byte) / BLOCK as u64 >= count as u64;
        if whole && let Ok(buf) = disk.read(byte, count * BLOCK).await {
            return (0..count)
                .map(|index| Ok(buf.slice(index * BLOCK, BLOCK)))
                .collect();
        }
        let mut blocks = Vec::new();
        for index in 0..count as u64 {
            let byte = byte.saturating_add(index * BLOCK as u64);
            let here = byte.saturating_add(BLOCK as u64) <= disk.size;
            blocks.push(match here {
                true => disk.read(byte, BLOCK).await,
                false => Err(DriveError::Bounds),
            });
        }
        blocks
    }

    /// Blocks of the metadata region that no pointer's checksum covers, on each part that is here
    /// and up to date.
    pub(crate) async fn read_meta(
        &self,
        block: u64,
        count: usize,
    ) -> Vec<(usize, Vec<Result<DmaBuf, DriveError>>)> {
        let meta = self.meta();
        let mut copies = Vec::new();
        for (part, byte) in meta.copies(block) {
            let known = &meta.parts[part];
            if let (Some(disk), false) = (known.disk, known.out) {
                copies.push((part, self.read_blocks(disk, byte, count).await));
            }
        }
        copies
    }
}
