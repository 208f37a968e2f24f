//! The pools of these measurements, and loads on their volumes.

use super::arguments::{Medium, Pool};
use crate::chance::Chance;
use crate::failure::{Failure, Result};
use crate::load::{Arrivals, Blocks, Content, Disk, Pace, Pattern, Rate, scatter};
use crate::tenants::{
    Attained, Closed, Crowd, Drives, Open, Outcome, Session, Shape, Source, Stage, Tenant,
};
use std::path::Path;
use std::time::Duration;

/// Windows at a beginning that do not count: policies have been given a moment before.
const SETTLE: usize = 5;
/// Fast space for each byte of a volume: writes go to free places.
const FAST_TIMES: u64 = 2;
/// Additional space of a pool.
pub const POOL_BYTES: u64 = 512 << 20;

/// A load of 4 KiB requests, or of others.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Sizes, as `--blocks` of a load has them.
    pub blocks: &'static str,
    /// Reads of a hundred requests.
    pub read_percent: u8,
    /// Requests outstanding.
    pub depth: u16,
}

/// 4 KiB, 70 % reads, as many outstanding as keep the pool busy.
pub const USUAL: Kind = Kind {
    blocks: "4k",
    read_percent: 70,
    depth: 32,
};

/// A volume and the way to it.
#[derive(Clone)]
pub struct Volume {
    pub name: String,
    pub disk: Disk,
    pub bytes: u64,
}

/// A pool with a number of filled volumes.
///
/// # Errors
/// When the pool cannot be made, or filled.
pub fn pool(
    convect: &Path,
    purpose: &str,
    with: &Pool,
    names: &[&str],
) -> Result<(Stage, Vec<Volume>)> {
    let size = with.volume_bytes();
    let bytes = size * names.len() as u64;
    let drives = Drives {
        fast: FAST_TIMES * bytes + POOL_BYTES,
        slow: bytes + POOL_BYTES,
    };
    let mut stage = match with.drives {
        Medium::Memory => Stage::in_memory(convect, purpose, drives)?,
        Medium::File => Stage::new(convect, purpose, drives, &with.behind)?,
    };
    let filled = names.iter().map(|name| {
        let disk = stage.filled_guest(name, size)?;
        if with.drives == Medium::Memory {
            // Until each place was written once, the system has to find memory for it and clear it.
            scatter(&disk, size, FAST_TIMES * size, Content::Random)?;
        }
        Ok(Volume {
            name: (*name).to_owned(),
            disk,
            bytes: size,
        })
    });
    let filled: Result<Vec<Volume>> = filled.collect();
    let volumes = stage.explain(filled)?;
    Ok((stage, volumes))
}

impl Kind {
    fn blocks(self) -> Result<Blocks> {
        self.blocks.parse().map_err(Failure::new)
    }

    fn shape(self, volume: &Volume) -> Result<Shape> {
        let blocks = self.blocks()?;
        Ok(Shape {
            aim: Pattern::Random.aim(0..volume.bytes, blocks.smallest(), 1),
            read_percent: self.read_percent,
            blocks,
        })
    }
}

fn session(volume: &Volume, kind: Kind, thread: usize, source: Box<dyn Source>) -> Result<Tenant> {
    let blocks = kind.blocks()?;
    let content = Stage::content(blocks.largest() as usize);
    let session = Session::connect(&volume.disk, kind.depth, &blocks, &content, source)?;
    Ok(Tenant {
        name: volume.name.clone(),
        thread,
        sessions: vec![session],
    })
}

/// A tenant with a closed loop on a volume.
///
/// # Errors
/// When the volume cannot be opened.
pub fn tenant(volume: &Volume, kind: Kind, thread: usize) -> Result<Tenant> {
    let source = Closed {
        shape: kind.shape(volume)?,
        chance: Chance::new(1),
    };
    session(volume, kind, thread, Box::new(source))
}

/// A tenant whose requests are due at a rate a second, by chance.
///
/// # Errors
/// When the volume cannot be opened.
pub fn paced(volume: &Volume, kind: Kind, per_second: f64, thread: usize) -> Result<Tenant> {
    let rate = Rate {
        per_second,
        arrivals: Arrivals::Poisson,
    };
    let source = Open {
        shape: kind.shape(volume)?,
        chance: Chance::new(1),
        pace: Pace::new(rate, 0, 1),
    };
    session(volume, kind, thread, Box::new(source))
}

/// Runs them for a number of seconds, after half a second that does not count.
///
/// # Errors
/// If a request fails, or after an interrupt.
pub fn measure(tenants: Vec<Tenant>, seconds: u64) -> Result<Outcome> {
    let time = Duration::from_secs(seconds) + Duration::from_millis(100 * SETTLE as u64);
    let outcome = Crowd::start(tenants, time)?.finish(|_| Ok(()))?;
    settled(outcome)
}

/// Leaves out the beginning.
///
/// # Errors
/// After an interrupt.
pub fn settled(mut outcome: Outcome) -> Result<Outcome> {
    if outcome.interrupted {
        return Err(Failure::interrupted());
    }
    for tenant in &mut outcome.tenants {
        tenant.windows.drain(..SETTLE.min(tenant.windows.len()));
    }
    Ok(outcome)
}

/// IOPS of one volume with a load without competition.
///
/// # Errors
/// As [`measure`].
pub fn alone(volume: &Volume, kind: Kind, seconds: u64) -> Result<f64> {
    let outcome = measure(vec![tenant(volume, kind, 0)?], seconds)?;
    Ok(outcome.tenants.iter().map(Attained::iops).sum())
}

/// A line that says whether a bar is met.
pub fn verdict(met: bool, bar: &str, seen: &str) {
    let word = if met { "met:   " } else { "MISSED:" };
    println!("  {word} {bar}: {seen}");
}

/// A line for a bar of which nothing could be seen, and why.
pub fn not_told(bar: &str, why: &str) {
    println!("  not told: {bar}: {why}");
}
