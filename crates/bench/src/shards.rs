//! The same load on each shard of a pool on null drives, each made on its shard's own loop.

use crate::callgrind;
use crate::failure::{Result, while_doing};
use crate::generator::{Generator, Span};
use crate::scene::{BLOCK, MIB, Scene, sweep};
use block::OpKind;
use format::{REGION, shard_of};
use std::sync::mpsc::channel;

/// MiB that each shard's load lies in.
const EACH_MIB: u64 = 16;
/// Requests of each shard: while instructions are counted, and for a rate.
const COUNTED: u64 = 8_192;
const TIMED: u64 = 2_000_000;
const DEPTH: u64 = 32;
/// Rounds in which the pools take their turn where rates are measured.
const ROUNDS: usize = 5;
/// GiB of each drive for each shard.
const GIB: u64 = 2;

/// A pool and what each of its loops sends.
struct Pool {
    scene: Scene,
    loads: Vec<Generator>,
}

impl Pool {
    fn new(shards: u16) -> Result<Self> {
        let scene = Scene::new(shards, "null", GIB * u64::from(shards))?;
        let count = u64::from(shards);
        let (id, device) = scene.volume("all", count * REGION / MIB)?;
        let mut loads = Vec::new();
        for (shard, remote) in scene.remotes().enumerate() {
            let region =
                (0..count).find(|region| shard_of(id, *region, usize::from(shards)) == shard);
            let first = region.ok_or("a shard has no region")? * REGION;
            // Null drives give zeroes back, and only these have the right checksums.
            sweep(
                remote,
                &device,
                OpKind::Write,
                first..first + EACH_MIB * MIB,
                0,
            )?;
            loads.push(Generator {
                device: device.clone(),
                kind: OpKind::Read,
                range: (first, EACH_MIB * MIB / BLOCK),
                requests: COUNTED,
                depth: DEPTH,
            });
        }
        Ok(Self { scene, loads })
    }

    /// Lets every loop do so many; gives the seconds from the first request of any to the last answer.
    fn run(&self, kind: OpKind, requests: u64) -> Result<f64> {
        let (give, take) = channel();
        for (remote, load) in self.scene.remotes().zip(&self.loads) {
            let (give, load) = (
                give.clone(),
                Generator {
                    kind,
                    requests,
                    ..load.clone()
                },
            );
            remote.spawn(move |handle| async move {
                // Whoever asked has gone.
                let _ = give.send(load.run(handle).await);
            });
        }
        drop(give);
        let mut all: Span = (u64::MAX, 0);
        for _ in &self.loads {
            let ended = take.recv().map_err(while_doing("a loop has ended"))?;
            let (began, ended) = ended.map_err(while_doing("a request"))?;
            all = (all.0.min(began), all.1.max(ended));
        }
        Ok((all.1 - all.0) as f64 / 1e9)
    }
}

const KINDS: [(&str, OpKind); 2] = [("read", OpKind::Read), ("write", OpKind::Write)];

fn count(counts: &[u16]) -> Result<()> {
    for shards in counts {
        let pool = Pool::new(*shards)?;
        for (name, kind) in KINDS {
            pool.run(kind, COUNTED / 4)?;
            callgrind::begin();
            pool.run(kind, COUNTED)?;
            callgrind::end(
                &format!("{name}-{shards}-shards"),
                COUNTED * u64::from(*shards),
            );
        }
    }
    Ok(())
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Pools of so many shards in turn; prints requests a second and how many times those of the first they are.
fn time(counts: &[u16]) -> Result<()> {
    println!(
        "{:<8} {:>7} {:>12} {:>30}",
        "", "shards", "IOPS", "times the first (of the rounds)"
    );
    for (name, kind) in KINDS {
        let mut rates = vec![Vec::new(); counts.len()];
        for _ in 0..ROUNDS {
            for (shards, rates) in counts.iter().zip(&mut rates) {
                let pool = Pool::new(*shards)?;
                pool.run(kind, TIMED / 10)?;
                let requests = TIMED / 2 * u64::from(*shards);
                rates.push(requests as f64 / pool.run(kind, TIMED / 2)?);
            }
        }
        for (shards, of_these) in counts.iter().zip(&rates) {
            let ratios = of_these.iter().zip(&rates[0]);
            let mut ratios: Vec<f64> = ratios.map(|(this, first)| this / first).collect();
            ratios.sort_by(f64::total_cmp);
            let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
            let times = format!("{:.2} ({least:.2}-{most:.2})", median(ratios));
            println!(
                "{name:<8} {shards:>7} {:>12.0} {times:>30}",
                median(of_these.clone())
            );
        }
    }
    Ok(())
}

/// Counts instructions under callgrind, and measures rates elsewhere.
///
/// # Errors
/// When something fails.
pub fn run(counts: &[u16]) -> Result<()> {
    match callgrind::is_counting() {
        true => count(counts),
        false => time(counts),
    }
}
