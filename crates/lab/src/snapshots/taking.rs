//! Taking snapshots under a load of writes, beside the same load without.

use super::run::{DEPTH, RAW, delete, load, millis, round_of_writes, settle, snapshot};
use crate::arguments::Snapshots;
use crate::content::BLOCK;
use crate::failure::{Result, While};
use crate::scene::Scene;
use crate::screen::thousands;
use crate::scrub_cost::median;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time from one snapshot to the next under load.
const EVERY: Duration = Duration::from_millis(250);

/// Alignment of direct I/O.
#[repr(C, align(4096))]
struct Aligned([u8; BLOCK]);

/// A plain file on the file system that the pool's drives are on.
struct Plain {
    file: File,
    block: Box<Aligned>,
    writes: u64,
}

impl Plain {
    fn open(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(libc::O_DIRECT);
        let file = options
            .open(path)
            .during(|| format!("cannot open {}", path.display()))?;
        Ok(Self {
            file,
            block: Box::new(Aligned([0x5a; BLOCK])),
            writes: 0,
        })
    }

    /// Writes the next block and flushes; returns how long that took.
    fn write(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        let at = self.writes * BLOCK as u64 % RAW;
        self.writes += 1;
        self.file
            .write_all_at(&self.block.0, at)
            .and_then(|()| self.file.sync_data())
            .during(|| "cannot write to the plain file".to_owned())?;
        Ok(begun.elapsed())
    }
}

/// That part of them is not larger; of none, NaN.
pub(super) fn percentile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len() as f64 * part) as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
}

/// Snapshots under a load of writes, beside the same load without; and, at the same moments, what
/// the machine's own disk takes for a write and a flush.
pub fn measure(scene: &Scene, with: &Snapshots) -> Result<()> {
    let mut writes = round_of_writes(scene, with);
    let enough = EVERY * with.taken.div_ceil(with.rounds.max(1));
    writes.seconds = writes.seconds.max(enough.as_secs() + 1);
    let mut plain = Plain::open(&scene.raw_file())?;
    load(scene, "warming up", &writes, || Ok(()))?;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    let (mut took, mut flushed) = (Vec::new(), Vec::new());
    for round in 0..with.rounds {
        alone.push(load(scene, "without", &writes, || Ok(()))?.p99_ns);
        let (mut names, mut last) = (Vec::new(), Instant::now());
        let figures = load(scene, "with snapshots", &writes, || {
            if last.elapsed() < EVERY {
                return Ok(());
            }
            last = Instant::now();
            let name = format!("round{round}-{}", names.len());
            took.push(millis(snapshot(scene, &name)?));
            names.push(name);
            flushed.push(millis(plain.write()?));
            Ok(())
        })?;
        beside.push(figures.p99_ns);
        delete(scene, &names)?;
        settle(scene)?;
    }
    println!(
        "taking one under {} random writes, {} times: median {:.1} ms, p99 {:.1} ms",
        thousands(f64::from(DEPTH)),
        took.len(),
        percentile(&mut took, 0.5),
        percentile(&mut took, 0.99),
    );
    println!(
        "  a 4 KiB write and flush of a plain file beside them: median {:.1} ms, p99 {:.1} ms",
        percentile(&mut flushed, 0.5),
        percentile(&mut flushed, 0.99),
    );
    let (alone, beside) = (median(&alone), median(&beside));
    println!(
        "  p99 of the writes: {:.3} ms without, {:.3} ms with one every {} ms: {:.2} times",
        alone / 1e6,
        beside / 1e6,
        EVERY.as_millis(),
        beside / alone.max(1.0)
    );
    Ok(())
}
