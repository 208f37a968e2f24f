//! Writing to a disk before it is measured.

use super::aim::{Aim, Pattern};
use super::blocks::Blocks;
use super::disk::Disk;
use super::plan::{Content, Load};
use super::run::{Watched, measure};
use crate::failure::Result;
use crate::screen::Progress;

/// Bytes and depth of the writes.
const FILL_BYTES: u32 = 256 << 10;
const FILL_DEPTH: u16 = 8;
/// Timeout: a day.
const FILL_SECONDS: u64 = 86_400;
/// Bytes of the writes of what is left.
const UNIT: u32 = 4096;
const SECTOR: u32 = 512;

/// Writes all of the first `bytes` of a disk once.
///
/// # Errors
/// As [`measure`].
pub fn fill(disk: &Disk, bytes: u64, content: Content) -> Result<()> {
    let part = |from: u64, to: u64, block: u32| {
        let aim = Pattern::Sequential.aim(from..to, block, 0);
        let requests = (to - from) / u64::from(block);
        write(disk, (aim, block, requests), content.clone(), "filling")
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

/// Writes `bytes` to blocks anywhere in the first `size` bytes of a disk.
///
/// # Errors
/// As [`measure`].
pub fn scatter(disk: &Disk, size: u64, bytes: u64, content: Content) -> Result<()> {
    let aim = Pattern::Random.aim(0..size, UNIT, 0);
    let requests = bytes / u64::from(UNIT);
    write(disk, (aim, UNIT, requests), content, "writing anywhere")
}

fn write(
    disk: &Disk,
    (aim, block, requests): (Aim, u32, u64),
    content: Content,
    doing: &str,
) -> Result<()> {
    let mut progress = Progress::new();
    let load = Load {
        disks: vec![disk.clone()],
        first: 1.0,
        blocks: Blocks::of(block),
        read_percent: 0,
        aim,
        queues: 1,
        depth: FILL_DEPTH,
        threads: 1,
        cores: Vec::new(),
        polling: false,
        rate: None,
        content,
        warm_up: 0,
        seconds: FILL_SECONDS,
        requests: Some(requests),
        seed: requests,
    };
    measure(&load, Watched::default(), |second, _| {
        if progress.is_due() {
            progress.draw(&format!("  {doing} for {second} s"));
        }
        Ok(true)
    })?;
    Ok(())
}
