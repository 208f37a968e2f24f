//! The key cases of the path from a guest's ring to the drives and back, on drives in memory.

use crate::callgrind;
use crate::failure::Result;
use crate::guest::Guest;
use crate::scene::{BLOCK, MIB, Scene, sweep};
use block::OpKind;
use vhost_client::Command;

/// MiB of the volume on the fast tier, and of the one that comes to lie in RAM.
const FAST_MIB: u64 = 64;
const COLD_MIB: u64 = 16;
const SECTOR: u64 = 512;
const LARGE: usize = 64 << 10;
/// Batches that are not counted: they fill pools of memory.
const WARM_UP: u64 = 64;

/// What a case does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// Reads 4 KiB anywhere.
    Read,
    /// Writes 4 KiB anywhere.
    Write,
    /// Reads 64 KiB, one place after the other.
    Sequence,
    /// Writes 4 KiB and has it made durable.
    Flush,
}

/// Where its blocks are read from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Ram,
    Fast,
    Nowhere,
}

struct Case {
    name: &'static str,
    what: What,
    from: From,
    /// Requests of a batch.
    depth: u64,
    batches: u64,
}

const CASES: [Case; 7] = [
    case("read-fast", What::Read, From::Fast, 32, 512),
    case("read-fast-alone", What::Read, From::Fast, 1, 4096),
    case("write-fast", What::Write, From::Nowhere, 32, 512),
    case("write-fast-alone", What::Write, From::Nowhere, 1, 4096),
    case("read-ram", What::Read, From::Ram, 32, 512),
    case("read-64k", What::Sequence, From::Fast, 32, 128),
    case("write-and-flush", What::Flush, From::Nowhere, 1, 4096),
];

const fn case(name: &'static str, what: What, from: From, depth: u64, batches: u64) -> Case {
    Case {
        name,
        what,
        from,
        depth,
        batches,
    }
}

impl Case {
    /// Requests of `number`, of which each is the same in every run, into `batch`.
    fn batch(&self, number: u64, batch: &mut Vec<Command>) {
        batch.clear();
        let mib = if self.from == From::Ram {
            COLD_MIB
        } else {
            FAST_MIB
        };
        let places = mib * MIB / BLOCK;
        for request in number * self.depth..(number + 1) * self.depth {
            let sector = reactor::mix(request) % places * (BLOCK / SECTOR);
            let len = BLOCK as usize;
            match self.what {
                What::Read => batch.push(Command::Read { sector, len }),
                What::Write | What::Flush => batch.push(Command::Write { sector, len }),
                What::Sequence => batch.push(Command::Read {
                    sector: request * LARGE as u64 % (mib * MIB) / SECTOR,
                    len: LARGE,
                }),
            }
        }
    }

    fn run(&self, guest: &mut Guest, batches: std::ops::Range<u64>) -> Result<()> {
        let mut batch = Vec::new();
        for number in batches {
            self.batch(number, &mut batch);
            guest.batch(&batch)?;
            if self.what == What::Flush {
                guest.batch(&[Command::Flush])?;
            }
        }
        Ok(())
    }

    /// Runs it, and says what it took.
    fn measure(&self, scene: &Scene, guest: &mut Guest) -> Result<()> {
        self.run(guest, 0..WARM_UP)?;
        let requests = self.batches * self.depth;
        let before = scene.blocks()?;
        let began = processor_ns();
        callgrind::begin();
        self.run(guest, WARM_UP..WARM_UP + self.batches)?;
        callgrind::end(self.name, requests);
        let ns = (processor_ns() - began) as f64 / requests as f64;
        if !callgrind::is_counting() {
            println!("{} {ns:.1}", self.name);
        }
        self.check(before, scene.blocks()?)
    }

    /// Whether it was what it says: the blocks came from where they were to.
    fn check(&self, before: [u64; 3], after: [u64; 3]) -> Result<()> {
        let size = if self.what == What::Sequence {
            LARGE as u64
        } else {
            BLOCK
        };
        let all = self.batches * self.depth * size / BLOCK;
        let wanted = match self.from {
            From::Ram => [all, 0, 0],
            From::Fast => [0, all, 0],
            From::Nowhere => [0, 0, 0],
        };
        let seen: Vec<u64> = after
            .iter()
            .zip(before)
            .map(|(after, before)| after - before)
            .collect();
        if seen != wanted {
            return Err(format!(
                "{}: blocks came from RAM, the fast tier and elsewhere {seen:?} times instead of {wanted:?}: \
                 it does not measure what it is there for",
                self.name
            ));
        }
        Ok(())
    }
}

/// Nanoseconds of processor time of all threads but the guest's, which calls.
fn processor_ns() -> u64 {
    let clock = |clock| {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the time lives through the call, which cannot fail for the clocks of this process.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    clock(libc::CLOCK_PROCESS_CPUTIME_ID) - clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Runs the cases of these names, or all, one after the other.
///
/// # Errors
/// When there is no such case, or something fails.
pub fn run(only: &[String]) -> Result<()> {
    if let Some(unknown) = only
        .iter()
        .find(|name| !CASES.iter().any(|case| case.name == **name))
    {
        let names = CASES.map(|case| case.name).join(", ");
        return Err(format!(
            "no case is called '{unknown}': take some of {names}"
        ));
    }
    let scene = Scene::new(1, "ram", 1)?;
    let remotes: Vec<_> = scene.remotes().cloned().collect();
    let range = |mib: u64| 0..mib * MIB;
    let (_, cold) = scene.volume("cold", COLD_MIB)?;
    sweep(&remotes[0], &cold, OpKind::Write, range(COLD_MIB), 1)?;
    scene.cool()?;
    sweep(&remotes[0], &cold, OpKind::Read, range(COLD_MIB), 0)?;
    let (_, fast) = scene.volume("fast", FAST_MIB)?;
    sweep(&remotes[0], &fast, OpKind::Write, range(FAST_MIB), 2)?;
    let mut in_ram = Guest::new("cold", cold, remotes.clone())?;
    let mut on_fast = Guest::new("fast", fast, remotes)?;
    for case in CASES {
        if only.is_empty() || only.iter().any(|name| name == case.name) {
            let guest = if case.from == From::Ram {
                &mut in_ram
            } else {
                &mut on_fast
            };
            case.measure(&scene, guest)?;
        }
    }
    Ok(())
}
