//! `load`: one load to a disk that somebody serves.

use super::disk::{Disk, Opening};
use super::pace::Rate;
use super::plan::Load;
use super::report::Figures;
use super::run::{Watched, measure};
use super::versions::Versions;
use super::{Blocks, Pattern};
use crate::arguments::Generate;
use crate::failure::{Failure, Result, While};
use crate::screen::{Progress, thousands};
use std::sync::Arc;
use units::format_bytes;

/// Bytes and depth of the writes that fill a range.
const FILL_BYTES: u32 = 256 << 10;
const FILL_DEPTH: u16 = 8;
/// A fill that takes longer than a day is given up.
const FILL_SECONDS: u64 = 86_400;
/// Bytes of a unit that is checked, where blocks are multiples of it; else a sector.
const UNIT: u32 = 4096;
const SECTOR: u32 = 512;
/// Data of all slots together at most, in bytes.
const DATA_MAX: u64 = 4 << 30;

/// Refuses what cannot be, and says what can.
fn check(with: &Generate) -> Result<()> {
    if (with.reads < 100 || with.fill || with.verify) && !with.overwrite {
        return Err(Failure::new(
            "this writes over what is on the disk: say --overwrite when nothing there is needed any more",
        ));
    }
    if with.threads > with.queues {
        return Err(Failure::new(format!(
            "{} threads have nothing to do with {} queues: take as many queues or more",
            with.threads, with.queues
        )));
    }
    let slots = u64::from(with.queues) * u64::from(with.depth);
    let data = slots * u64::from(with.blocks.largest());
    if data > DATA_MAX {
        return Err(Failure::new(format!(
            "the data of {slots} requests take {}, more than {}: take fewer or smaller ones",
            format_bytes(data),
            format_bytes(DATA_MAX)
        )));
    }
    Ok(())
}

/// Size of the range that is used, in bytes: a multiple of the largest block.
fn range(with: &Generate) -> Result<u64> {
    let opening = Opening {
        queues: with.queues,
        slots: 1,
        slot_bytes: with.blocks.largest(),
        polling: false,
        writes: with.overwrite,
        looks: false,
    };
    let size = with.disk.open(&opening)?.1;
    let wanted = with.range.unwrap_or(size);
    if wanted > size {
        return Err(Failure::new(format!(
            "{} is more than the disk has, {}: take a smaller --range",
            format_bytes(wanted),
            format_bytes(size)
        )));
    }
    let largest = u64::from(with.blocks.largest());
    match wanted / largest * largest {
        0 => Err(Failure::new(format!(
            "a range of {} has no room for a request of {}",
            format_bytes(wanted),
            format_bytes(largest)
        ))),
        usable => Ok(usable),
    }
}

impl Generate {
    fn rate(&self) -> Option<Rate> {
        self.rate.map(|per_second| Rate {
            per_second: per_second as f64,
            arrivals: self.arrivals,
        })
    }

    /// The load on so many bytes.
    fn load(&self, bytes: u64, versions: Option<Arc<Versions>>) -> Load {
        Load {
            disks: vec![self.disk.clone()],
            first: 1.0,
            blocks: self.blocks.clone(),
            read_percent: self.reads,
            aim: self
                .pattern
                .aim(0..bytes, self.blocks.smallest(), self.seed),
            queues: self.queues,
            depth: self.depth,
            threads: self.threads,
            cores: self.cores.clone(),
            polling: self.polling,
            rate: self.rate(),
            versions,
            warm_up: self.warm_up,
            seconds: self.seconds,
            requests: None,
            seed: self.seed,
        }
    }
}

/// Writes all of the first `bytes` of a disk once.
///
/// # Errors
/// As [`measure`].
pub fn fill(disk: &Disk, bytes: u64, versions: Option<Arc<Versions>>) -> Result<()> {
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
            versions: versions.clone(),
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

/// Runs the load and prints its figures.
///
/// # Errors
/// When it cannot be, a request fails, or something wrong is read.
pub fn command(with: &Generate) -> Result<()> {
    check(with)?;
    let bytes = range(with)?;
    let unit = match with.blocks.are_multiples_of(UNIT) {
        true => UNIT,
        false => SECTOR,
    };
    let versions = with.verify.then(|| Arc::new(Versions::new(0..bytes, unit)));
    if with.fill || with.verify {
        fill(&with.disk, bytes, versions.clone())
            .during(|| "while the disk is filled".to_owned())?;
    }
    let load = with.load(bytes, versions);
    let watched = Watched {
        server: with.server_pid,
    };
    let mut progress = Progress::new();
    let outcome = measure(&load, watched, |second, iops| {
        if progress.is_due() && !with.json {
            progress.draw(&format!(
                "  {:>4} s {:>9} IOPS",
                second + 1,
                thousands(iops)
            ));
        }
        Ok(true)
    })?;
    progress.clear();
    let figures = Figures::from(&outcome);
    match with.json {
        true => println!(
            "{}",
            serde_json::to_string_pretty(&figures).during(String::new)?
        ),
        false => print!("{}", figures.table()),
    }
    Ok(())
}
