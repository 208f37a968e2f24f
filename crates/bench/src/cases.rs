//! The key cases of the path from a volume to the drives and back, on drives in memory and on some that answer later.

use crate::callgrind;
use crate::failure::Result;
use crate::generator::Generator;
use crate::loops::Loops;
use crate::scene::{BLOCK, MIB, Scene};
use block::{BlockDevice, OpKind};
use std::sync::Arc;

/// MiB of the volume on the fast tier, and of the one that comes to be in RAM.
const FAST_MIB: u64 = 64;
const COLD_MIB: u64 = 16;
const FAST: &str = "fast";
/// One in so many requests is not counted before the others: these fill pools of memory.
const WARM_UP: u64 = 8;
/// GiB of each drive.
const GIB: u64 = 1;
/// Writes after which every place of the fast drive was written once.
const ALL_PLACES: u64 = GIB << 30 >> 12;

/// Drives that have their data in memory, and ones that are as fast as drives are that have not.
const IN_MEMORY: &str = "ram";
const LATER: &str = "model:ssd-sata:ram";

/// Where its blocks are read from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Ram,
    Fast,
    /// The fast tier, of drives that answer later.
    Later,
    Nowhere,
}

struct Case {
    name: &'static str,
    kind: OpKind,
    from: From,
    length: u64,
    sequential: bool,
    flush: bool,
    depth: u64,
    requests: u64,
    /// The volume has a policy, so that all pass the shard's gate.
    promised: bool,
}

const fn case(name: &'static str, kind: OpKind, from: From, depth: u64, requests: u64) -> Case {
    Case {
        name,
        kind,
        from,
        length: BLOCK,
        sequential: false,
        flush: false,
        depth,
        requests,
        promised: false,
    }
}

/// The same with a policy.
const fn promised(name: &'static str, like: Case) -> Case {
    Case {
        name,
        promised: true,
        ..like
    }
}

const CASES: [Case; 13] = [
    case("read-fast", OpKind::Read, From::Fast, 32, 16_384),
    case("read-fast-alone", OpKind::Read, From::Fast, 1, 8_192),
    case("write-fast", OpKind::Write, From::Nowhere, 32, 16_384),
    case("write-fast-alone", OpKind::Write, From::Nowhere, 1, 8_192),
    case("read-ram", OpKind::Read, From::Ram, 32, 16_384),
    Case {
        length: 16 * BLOCK,
        sequential: true,
        ..case("read-64k", OpKind::Read, From::Fast, 32, 4_096)
    },
    Case {
        flush: true,
        ..case("write-and-flush", OpKind::Write, From::Nowhere, 1, 4_096)
    },
    case("read-drive", OpKind::Read, From::Later, 32, 8_192),
    case("read-drive-alone", OpKind::Read, From::Later, 1, 4_096),
    promised(
        "read-fast-promised",
        case("", OpKind::Read, From::Fast, 32, 16_384),
    ),
    promised(
        "read-fast-alone-promised",
        case("", OpKind::Read, From::Fast, 1, 8_192),
    ),
    promised(
        "write-fast-promised",
        case("", OpKind::Write, From::Nowhere, 32, 16_384),
    ),
    promised(
        "read-drive-promised",
        case("", OpKind::Read, From::Later, 32, 8_192),
    ),
];

impl Case {
    fn load(&self, device: &Arc<dyn BlockDevice>, requests: u64) -> [(usize, Generator); 1] {
        let mib = match self.from {
            From::Ram => COLD_MIB,
            _ => FAST_MIB,
        };
        let load = Generator {
            device: device.clone(),
            kind: self.kind,
            first: 0,
            bytes: mib * MIB,
            length: self.length,
            sequential: self.sequential,
            flush: self.flush,
            requests,
            depth: self.depth,
        };
        [(0, load)]
    }

    /// Runs it, and says what it took.
    fn measure(&self, scene: &Scene, device: &Arc<dyn BlockDevice>) -> Result<()> {
        scene.promise(FAST, self.promised)?;
        scene.run(&self.load(device, self.requests / WARM_UP))?;
        let load = self.load(device, self.requests);
        let before = scene.blocks()?;
        let began = processor_ns();
        callgrind::begin();
        scene.run(&load)?;
        callgrind::end(self.name, self.requests);
        let ns = (processor_ns() - began) as f64 / self.requests as f64;
        if !callgrind::is_counting() {
            println!("{} {ns:.1}", self.name);
        }
        self.check(before, scene.blocks()?)
    }

    /// Whether it was what it says: the blocks came from where they were to.
    fn check(&self, before: [u64; 3], after: [u64; 3]) -> Result<()> {
        let all = self.requests * self.length / BLOCK;
        let wanted = match self.from {
            From::Ram => [all, 0, 0],
            From::Fast | From::Later => [0, all, 0],
            From::Nowhere => [0, 0, 0],
        };
        let pairs = after.iter().zip(before);
        let seen: Vec<u64> = pairs.map(|(after, before)| after - before).collect();
        match seen == wanted {
            true => Ok(()),
            false => Err(format!(
                "{}: {seen:?} blocks came from RAM, the fast tier and elsewhere instead of {wanted:?}: it does \
                 not measure what it is there for",
                self.name
            )),
        }
    }
}

/// Nanoseconds of processor time of the thread that calls.
fn processor_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time lives through the call, which cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Runs the cases of these names, or all, one after the other.
///
/// # Errors
/// When there is no such case, or something fails.
pub fn run(only: &[String]) -> Result<()> {
    let is_case = |name: &String| CASES.iter().any(|case| case.name == *name);
    if let Some(unknown) = only.iter().find(|name| !is_case(name)) {
        let names = CASES.map(|case| case.name).join(", ");
        return Err(format!(
            "no case is called '{unknown}': take some of {names}"
        ));
    }
    let is_wanted = |case: &&Case| only.is_empty() || only.iter().any(|name| name == case.name);
    let scene = Scene::new(Loops::simulated(1)?, IN_MEMORY, GIB)?;
    let (_, cold) = scene.volume("cold", COLD_MIB)?;
    scene.sweep(0, &cold, OpKind::Write, 0..COLD_MIB * MIB)?;
    scene.cool()?;
    scene.sweep(0, &cold, OpKind::Read, 0..COLD_MIB * MIB)?;
    let (_, fast) = scene.volume(FAST, FAST_MIB)?;
    scene.sweep(0, &fast, OpKind::Write, 0..FAST_MIB * MIB)?;
    if !callgrind::is_counting() {
        // The kernel clears memory that a drive uses for the first time.
        let all = CASES[2].load(&fast, ALL_PLACES);
        scene.run(&all)?;
    }
    let is_later = |case: &&Case| case.from == From::Later;
    for case in CASES
        .iter()
        .filter(is_wanted)
        .filter(|case| !is_later(case))
    {
        let device = match case.from {
            From::Ram => &cold,
            _ => &fast,
        };
        case.measure(&scene, device)?;
    }
    drop(scene);
    let scene = Scene::new(Loops::simulated(1)?, LATER, GIB)?;
    let (_, fast) = scene.volume(FAST, FAST_MIB)?;
    scene.sweep(0, &fast, OpKind::Write, 0..FAST_MIB * MIB)?;
    for case in CASES.iter().filter(is_wanted).filter(is_later) {
        case.measure(&scene, &fast)?;
    }
    Ok(())
}
