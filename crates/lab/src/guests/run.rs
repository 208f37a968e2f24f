//! The guests, and the table.

use super::arguments::Guests;
use super::bare::Bare;
use super::client::{Guest, drive};
use super::windows::{WINDOW, Windows};
use crate::chance::Chance;
use crate::failure::{Failure, Result};
use crate::load::{Arrivals, Blocks, Disk, Opening, Pace, Pattern, Port, Rate};
use crate::machine;
use crate::memory_pool::MemoryPool;
use crate::scratch::Scratch;
use crate::screen::{self, thousands};
use crate::scrub_cost::median;
use crate::withheld;
use std::path::Path;
use std::time::{Duration, Instant};

/// The most that a request may take beyond the drives' time, of 99 in 100, in microseconds.
const ADDED_US: f64 = 30.0;
/// Maximum p99 of the copying loop, on a machine that is quiet enough.
const QUIET_US: f64 = 100.0;
/// Requests that a guest may have outstanding.
const SLOTS: u16 = 32;
/// Time that does not count.
const WARM_UP: Duration = Duration::from_secs(1);
/// How often all is written before.
const FILLS: usize = 4;
/// Room for sockets and logs.
const ROOM: u64 = 64 << 20;
/// Alignment of offsets.
const GRAIN: u32 = 4096;

/// A kind of server.
struct Shape {
    name: &'static str,
    /// As `--blocks` of a load has it.
    blocks: &'static str,
    reads: u8,
    /// Requests a second, coming by chance.
    rate: f64,
}

const SHAPES: [Shape; 4] = [
    Shape {
        name: "web",
        blocks: "20k",
        reads: 100,
        rate: 8_000.0,
    },
    Shape {
        name: "oltp",
        blocks: "8k",
        reads: 97,
        rate: 10_000.0,
    },
    Shape {
        name: "mail",
        blocks: "32k",
        reads: 53,
        rate: 2_500.0,
    },
    Shape {
        name: "files",
        blocks: "32k:50,64k:50",
        reads: 3,
        rate: 1_500.0,
    },
];

/// Where requests go in turn.
const SIDES: [&str; 2] = ["Convect", "a loop that copies"];

/// Results of one guest in one round.
struct Seen {
    iops: f64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    /// The p99 of each window.
    windows_us: Vec<f64>,
}

fn opening(blocks: &Blocks, shape: &Shape) -> Opening {
    Opening {
        queues: 1,
        slots: SLOTS,
        slot_bytes: blocks.largest(),
        polling: true,
        writes: shape.reads < 100,
        looks: false,
    }
}

fn blocks(shape: &Shape) -> Result<Blocks> {
    shape.blocks.parse().map_err(Failure::new)
}

fn port(shape: &Shape, disk: &Disk) -> Result<Box<dyn Port>> {
    let port = disk.open(&opening(&blocks(shape)?, shape))?.0.pop();
    port.ok_or_else(|| Failure::new("the disk has no queue"))
}

fn guest(shape: &Shape, number: u64, mut port: Box<dyn Port>, with: &Guests) -> Result<Guest> {
    let blocks = blocks(shape)?;
    let mut chance = Chance::new(number + 1);
    let content = (0..blocks.largest() / 8).flat_map(|_| chance.next().to_le_bytes());
    let content: Vec<u8> = content.collect();
    (0..SLOTS).for_each(|slot| port.fill(slot, 0, &content));
    let rate = Rate {
        per_second: shape.rate * f64::from(with.rates) / 100.0,
        arrivals: Arrivals::Poisson,
    };
    Ok(Guest {
        port,
        read_percent: shape.reads,
        aim: Pattern::Random.aim(0..with.size, GRAIN, number + 1),
        blocks,
        pace: Pace::new(rate, 0, 1),
        chance,
        free: (0..SLOTS).rev().collect(),
        open: vec![0; usize::from(SLOTS)],
        windows: Windows::new(WARM_UP, Duration::from_secs(with.seconds)),
    })
}

/// Lets guests run together by these ports; what each of them saw.
fn together(ports: Vec<Box<dyn Port>>, with: &Guests) -> Result<Vec<Seen>> {
    let mut guests = Vec::new();
    for ((shape, port), number) in SHAPES.iter().zip(ports).zip(0..) {
        guests.push(guest(shape, number, port, with)?);
    }
    let time = WARM_UP + Duration::from_secs(with.seconds);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            machine::bind_to_core(with.client_core)?;
            drive(&mut guests, time)
        });
        let broken = |_| Failure::new("the client's thread panicked");
        thread.join().map_err(broken)?
    })?;
    Ok(guests.iter().map(|guest| seen(guest, with)).collect())
}

fn seen(guest: &Guest, with: &Guests) -> Seen {
    let whole = guest.windows.whole();
    let us = |percent| whole.percentile(percent) as f64 / 1e3;
    Seen {
        iops: whole.count() as f64 / with.seconds as f64,
        p50_us: us(50.0),
        p99_us: us(99.0),
        p999_us: us(99.9),
        windows_us: guest.windows.percentiles_us(99.0),
    }
}

/// The middle of what a guest saw in all rounds, figure by figure; the last is of all windows.
fn medians(rounds: &[Vec<Seen>], guest: usize) -> [f64; 5] {
    let of = |figure: fn(&Seen) -> f64| {
        let figures: Vec<f64> = rounds.iter().map(|round| figure(&round[guest])).collect();
        median(&figures)
    };
    let windows = rounds.iter().flat_map(|round| &round[guest].windows_us);
    let windows: Vec<f64> = windows.copied().collect();
    [
        of(|seen| seen.iops),
        of(|seen| seen.p50_us),
        of(|seen| seen.p99_us),
        of(|seen| seen.p999_us),
        median(&windows),
    ]
}

/// Both sides' rounds, in turn, and the cores that the daemon took.
fn rounds(pool: &MemoryPool, with: &Guests) -> Result<([Vec<Vec<Seen>>; 2], f64)> {
    let mut disks = Vec::new();
    for shape in &SHAPES {
        let disk = pool.export(shape.name, with.size)?;
        pool.set_polling(shape.name, &with.polling)?;
        disks.push(disk);
    }
    // Writes go to free places: until each was written once, the system has to find memory for them and clear it.
    for _ in 0..FILLS {
        disks
            .iter()
            .try_for_each(|disk| pool.fill(disk, with.size))?;
    }
    let mut slot_bytes = Vec::new();
    for shape in &SHAPES {
        slot_bytes.push(blocks(shape)?.largest());
    }
    let (mut all, mut cores): ([Vec<Vec<Seen>>; 2], _) = (Default::default(), Vec::new());
    for _ in 0..with.rounds {
        let ports = SHAPES.iter().zip(&disks);
        let ports: Result<Vec<_>> = ports.map(|(shape, disk)| port(shape, disk)).collect();
        let ports = ports?;
        let pid = pool.daemon.pid();
        let (begun, before) = (Instant::now(), machine::processor_seconds(pid)?);
        all[0].push(together(ports, with)?);
        let used = machine::processor_seconds(pid)? - before;
        cores.push(used / begun.elapsed().as_secs_f64());
        let memories = [with.size; SHAPES.len()];
        let (bare, ports) = Bare::start(with.server_core, &memories, SLOTS, &slot_bytes);
        all[1].push(together(ports, with)?);
        bare.stop()?;
    }
    Ok((all, median(&cores)))
}

fn measure(pool: &MemoryPool, with: &Guests) -> Result<()> {
    let (rounds, cores) = rounds(pool, with)?;
    let (mut lines, mut missed, mut is_quiet) = (Vec::new(), Vec::new(), true);
    for (number, shape) in SHAPES.iter().enumerate() {
        let seen = rounds.each_ref().map(|rounds| medians(rounds, number));
        for ([iops, us @ ..], side) in seen.iter().zip(SIDES) {
            let mut line = match side == SIDES[0] {
                true => vec![
                    shape.name.to_owned(),
                    format!("{}, {} % reads", shape.blocks, shape.reads),
                ],
                false => vec![String::new(); 2],
            };
            line.extend([side.to_owned(), thousands(*iops)]);
            line.extend(us.iter().map(|us| format!("{us:.1}")));
            lines.push(line);
        }
        let [[.., ours_us], [.., bare_us]] = seen;
        is_quiet &= bare_us <= QUIET_US;
        let added_us = ours_us - bare_us;
        if added_us > ADDED_US {
            missed.push(format!("{} ({added_us:.1} us)", shape.name));
        }
    }
    println!(
        "{} rounds of {} s each in turn; medians\n  {}",
        with.rounds,
        with.seconds,
        machine::describe()
    );
    let window = format!("p99 of {} ms, us", WINDOW.as_millis());
    let head = ["", "", "", "IOPS", "p50 us", "p99 us", "p99.9 us", &window];
    print!("{}", screen::table(&head, &lines));
    println!("  the daemon took {cores:.2} cores; drives in memory");
    tell_withheld([with.server_core, with.client_core])?;
    match missed.is_empty() {
        true if !is_quiet => println!(
            "  undecided: the copy itself takes more than {QUIET_US} us at p99; try again when the machine is quiet"
        ),
        true => {
            println!("  met:    the engine adds at most {ADDED_US} us at p99 to what a copy takes")
        }
        false => println!(
            "  MISSED: the engine adds more than {ADDED_US} us at p99 to what a copy takes: {}",
            missed.join(", ")
        ),
    }
    Ok(())
}

/// The part that is not due to the engine: requests are due whatever the machine does meanwhile.
fn tell_withheld(cores: [usize; 2]) -> Result<()> {
    let limit = Duration::from_nanos((ADDED_US * 1000.0) as u64);
    let found = withheld::of_cores(cores, limit)?;
    for (core, found) in cores.iter().zip(&found) {
        println!(
            "  the machine withholds core {core}: {:.2} % of what is due at a moment by chance waits more than {ADDED_US} us \
             for that alone, at most {:.1} ms",
            100.0 * found.share,
            1e3 * found.longest.as_secs_f64()
        );
    }
    Ok(())
}

/// Measures, and prints the table.
///
/// # Errors
/// When something cannot be measured.
pub fn run(convect: &Path, with: &Guests) -> Result<()> {
    let scratch = Scratch::new("guests", ROOM)?;
    let bytes = SHAPES.len() as u64 * with.size;
    let mut pool = MemoryPool::new(convect, scratch.path(), with.server_core, bytes)?;
    let measured = measure(&pool, with);
    pool.daemon.explain(measured)?;
    pool.daemon.stop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_can_be_sent() {
        for shape in &SHAPES {
            let blocks: Blocks = shape.blocks.parse().expect(shape.name);
            assert!(blocks.are_multiples_of(GRAIN), "{}", shape.name);
            assert!(shape.rate > 0.0 && shape.reads <= 100);
        }
    }
}
