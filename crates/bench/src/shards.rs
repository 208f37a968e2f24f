//! The same load on each shard of a pool on null drives, each made on its shard's own loop.

use crate::callgrind;
use crate::failure::Result;
use crate::generator::Generator;
use crate::loops::Loops;
use crate::scene::{BLOCK, MIB, Running, Scene};
use block::OpKind;
use format::{REGION, shard_of};

/// MiB that each shard's load is in where rates are measured.
const TIMED_MIB: u64 = 16;
/// The same where instructions are counted. The policy's forecasts of other sizes go by one chunk of some thirty: of 16 MiB
/// one shard has such a chunk and the next has none.
const COUNTED_MIB: u64 = 128;
/// Requests of each shard while instructions are counted, enough for several ticks of its policy, and for a rate.
const COUNTED: u64 = 65_536;
const TIMED: u64 = 1_000_000;
const DEPTH: u64 = 32;
/// Rounds in which the pools take their turn where rates are measured.
const ROUNDS: usize = 5;
/// GiB of each drive for each shard.
const GIB: u64 = 2;
const KINDS: [(&str, OpKind); 2] = [("read", OpKind::Read), ("write", OpKind::Write)];

/// A pool and what each of its loops sends.
struct Pool {
    scene: Scene,
    loads: Vec<(usize, Generator)>,
}

impl Pool {
    /// With one volume that all shards have their part of, or `apart` with a volume for each shard.
    fn new(loops: Loops, apart: bool, each_mib: u64) -> Result<Self> {
        let shards = loops.remotes().len();
        let scene = Scene::new(loops, "null", GIB * shards as u64)?;
        let all = scene.volume("all", shards as u64 * REGION / MIB)?;
        let mut loads = Vec::new();
        for region in 0..shards as u64 {
            let ((id, device), region) = match apart {
                true => (scene.volume(&format!("v{region}"), REGION / MIB)?, 0),
                false => (all.clone(), region),
            };
            let (shard, first) = (shard_of(id, region, shards), region * REGION);
            // Null drives give zeroes back, and only these have the right checksums.
            let range = first..first + each_mib * MIB;
            scene.sweep(shard, &device, OpKind::Write, range)?;
            let load = Generator {
                device: device.clone(),
                kind: OpKind::Read,
                first,
                bytes: each_mib * MIB,
                length: BLOCK,
                sequential: false,
                flush: false,
                requests: COUNTED,
                depth: DEPTH,
            };
            loads.push((shard, load));
        }
        Ok(Self { scene, loads })
    }

    /// Lets every loop do so many; returns the seconds that took.
    fn run(&self, kind: OpKind, requests: u64) -> Result<f64> {
        self.start(kind, requests).wait()
    }

    fn start(&self, kind: OpKind, requests: u64) -> Running {
        let change = |(number, load): &(usize, Generator)| {
            let load = Generator {
                kind,
                requests,
                ..load.clone()
            };
            (*number, load)
        };
        let loads: Vec<_> = self.loads.iter().map(change).collect();
        self.scene.start(&loads)
    }
}

fn count(counts: &[u16]) -> Result<()> {
    for shards in counts {
        let pool = Pool::new(Loops::simulated(*shards)?, false, COUNTED_MIB)?;
        for (name, kind) in KINDS {
            pool.run(kind, COUNTED / 4)?;
            callgrind::begin();
            pool.run(kind, COUNTED)?;
            let requests = COUNTED * u64::from(*shards);
            callgrind::end(&format!("{name}-null-{shards}"), requests);
        }
    }
    Ok(())
}

fn sorted(mut figures: Vec<f64>) -> Vec<f64> {
    figures.sort_by(f64::total_cmp);
    figures
}

/// How so many loops share a load.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Shards of a pool, with a part of one volume each.
    Volume,
    /// Shards of a pool, with a volume each.
    Volumes,
    /// Pools of one shard each, which have nothing in common but the machine: the machine's limit for this many.
    Pools,
}

const WAYS: [(&str, Way); 3] = [
    ("one volume", Way::Volume),
    ("a volume each", Way::Volumes),
    ("a pool each", Way::Pools),
];

/// Requests a second of all of them together.
fn rate(way: Way, loops: u16, kind: OpKind) -> Result<f64> {
    let (pools, shards) = match way {
        Way::Pools => (loops, 1),
        Way::Volume | Way::Volumes => (1, loops),
    };
    let pool = |_| Pool::new(Loops::threads(shards)?, way == Way::Volumes, TIMED_MIB);
    let pools: Vec<Pool> = (0..pools).map(pool).collect::<Result<_>>()?;
    let run = |requests| -> Result<f64> {
        let running: Vec<Running> = pools
            .iter()
            .map(|pool| pool.start(kind, requests))
            .collect();
        let each = (requests * u64::from(shards)) as f64;
        running
            .into_iter()
            .try_fold(0.0, |sum, one| Ok(sum + each / one.wait()?))
    };
    run(TIMED / 10)?;
    run(TIMED)
}

/// Prints requests per second for each number of loops, in turn, and the ratio to those of the first.
fn time(counts: &[u16]) -> Result<()> {
    println!(
        "requests of 4 KiB a second, null drives, {DEPTH} outstanding a shard, {ROUNDS} rounds"
    );
    for (named, way) in WAYS {
        for (name, kind) in KINDS {
            let mut rates = vec![Vec::new(); counts.len()];
            for _ in 0..ROUNDS {
                for (loops, rates) in counts.iter().zip(&mut rates) {
                    rates.push(rate(way, *loops, kind)?);
                }
            }
            for (loops, of_these) in counts.iter().zip(&rates) {
                let ratios = of_these.iter().zip(&rates[0]);
                let ratios = sorted(ratios.map(|(this, first)| this / first).collect());
                let rate = sorted(of_these.clone())[ROUNDS / 2];
                let (least, most) = (ratios[0], ratios[ROUNDS - 1]);
                println!(
                    "{name:<6} {named:<14} {loops:>3} shards {rate:>12.0}   {:.2} times the first ({least:.2}-{most:.2})",
                    ratios[ROUNDS / 2]
                );
            }
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
