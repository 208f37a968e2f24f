//! `load`: one load to a disk of any server.

use super::arguments::Generate;
use super::disk::Opening;
use super::fill::fill;
use super::pace::Rate;
use super::plan::{Content, Load};
use super::report::Figures;
use super::run::{Watched, measure};
use super::versions::Versions;
use crate::failure::{Failure, Result, While};
use crate::screen::{Progress, thousands};
use std::sync::Arc;
use units::format_bytes;

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

    /// The load on a number of bytes.
    fn load(&self, bytes: u64, content: Content) -> Load {
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
            content,
            warm_up: self.warm_up,
            seconds: self.seconds,
            requests: None,
            seed: self.seed,
        }
    }
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
    let content = match with.verify {
        true => Content::Checked(Arc::new(Versions::new(0..bytes, unit))),
        false => Content::Random,
    };
    if with.fill || with.verify {
        fill(&with.disk, bytes, content.clone())
            .during(|| "while the disk is filled".to_owned())?;
    }
    let load = with.load(bytes, content);
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
