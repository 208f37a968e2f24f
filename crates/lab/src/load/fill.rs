//! Writing all of a disk once.

use super::aim::Pattern;
use super::blocks::Blocks;
use super::disk::Disk;
use super::plan::{Content, Load};
use super::run::{Watched, measure};
use crate::failure::Result;
use crate::screen::Progress;

/// Bytes and depth of the writes.
const FILL_BYTES: u32 = 256 << 10;
const FILL_DEPTH: u16 = 8;
/// One that takes longer than a day is given up.
const FILL_SECONDS: u64 = 86_400;
/// Bytes of the writes of what is left.
const UNIT: u32 = 4096;
const SECTOR: u32 = 512;

/// Writes all of the first `bytes` of a disk once.
///
/// # Errors
/// As [`measure`].
pub fn fill(disk: &Disk, bytes: u64, content: Content) -> Result<()> {
    let mut progress = Progress::new();
    let mut part = |from: u64, to: u64, block: u32| {
        let load = Load {
            disks: vec![disk.clone()],
            first: 1.0,
            blocks: Blocks::of(block),
            read_percent: 0,
            aim: Pattern::Sequential.aim(from..to, block, 0),
            queues: 1,
            depth: FILL_DEPTH,
            threads: 1,
            cores: Vec::new(),
            polling: false,
            rate: None,
            content: content.clone(),
            warm_up: 0,
            seconds: FILL_SECONDS,
            requests: Some((to - from) / u64::from(block)),
            seed: from,
        };
        measure(&load, Watched::default(), |second, _| {
            if progress.is_due() {
                progress.draw(&format!("  filling for {second} s"));
            }
            Ok(true)
        })
    };
    let whole = bytes / u64::from(FILL_BYTES) * u64::from(FILL_BYTES);
    if whole > 0 {
        part(0, whole, FILL_BYTES)?;
    }
    if whole < bytes {
        let rest = if bytes.is_multiple_of(u64::from(UNIT)) {
            UNIT
        } else {
            SECTOR
        };
        part(whole, bytes, rest)?;
    }
    Ok(())
}
