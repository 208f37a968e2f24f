//! The guests, and the table.

use super::arguments::Guests;
use super::client::{Guest, drive};
use crate::chance::Chance;
use crate::failure::{Failure, Result};
use crate::load::{Arrivals, Blocks, Disk, Opening, Pace, Pattern, Rate, Series};
use crate::machine;
use crate::memory_pool::MemoryPool;
use crate::scratch::Scratch;
use crate::screen::{self, thousands};
use crate::withheld;
use std::path::Path;
use std::time::{Duration, Instant};

/// The most that a request may take beyond the drives' time, of 99 in 100, in microseconds.
const ADDED_US: f64 = 30.0;
/// Requests that a guest may have outstanding.
const SLOTS: u16 = 32;
/// Seconds that do not count.
const WARM_UP: u64 = 1;
/// Room for sockets and logs.
const ROOM: u64 = 64 << 20;
/// What places are multiples of.
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

fn guest(shape: &Shape, number: u64, disk: &Disk, with: &Guests) -> Result<Guest> {
    let blocks: Blocks = shape.blocks.parse().map_err(Failure::new)?;
    let opening = Opening {
        queues: 1,
        slots: SLOTS,
        slot_bytes: blocks.largest(),
        polling: true,
        writes: shape.reads < 100,
        looks: false,
    };
    let port = disk.open(&opening)?.0.pop();
    let mut port = port.ok_or_else(|| Failure::new("the disk has no queue"))?;
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
        open: vec![(0, 0); usize::from(SLOTS)],
        series: Series::with_room((WARM_UP + with.seconds + 1) as usize),
    })
}

/// Lets these run together; gives the cores that the daemon took.
fn together(guests: &mut [Guest], pid: u32, with: &Guests) -> Result<f64> {
    let (begun, before) = (Instant::now(), machine::processor_seconds(pid)?);
    let time = Duration::from_secs(WARM_UP + with.seconds);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            machine::bind_to_core(with.client_core)?;
            drive(guests, time)
        });
        let broken = |_| Failure::new("the client's thread panicked");
        thread.join().map_err(broken)?
    })?;
    let used = machine::processor_seconds(pid)? - before;
    Ok(used / begun.elapsed().as_secs_f64())
}

fn line(name: &str, series: &mut Series, with: &Guests) -> (Vec<String>, f64) {
    series.cut(WARM_UP as usize, with.seconds as usize);
    let whole = series.whole();
    let us = |percent| whole.percentile_ns(percent) as f64 / 1e3;
    let mut line = vec![name.to_owned(), thousands(series.mean())];
    line.extend([50.0, 99.0, 99.9].map(|percent| format!("{:.1}", us(percent))));
    (line, us(99.0))
}

fn measure(pool: &MemoryPool, with: &Guests) -> Result<()> {
    let mut disks = Vec::new();
    for shape in &SHAPES {
        let disk = pool.export(shape.name, with.size)?;
        pool.set_polling(shape.name, &with.polling)?;
        pool.fill(&disk, with.size)?;
        disks.push(disk);
    }
    let mut guests = Vec::new();
    for (number, (shape, disk)) in SHAPES.iter().zip(&disks).enumerate() {
        guests.push(guest(shape, number as u64, disk, with)?);
    }
    let cores = together(&mut guests, pool.daemon.pid(), with)?;
    let mut lines = Vec::new();
    let mut missed = Vec::new();
    for (shape, guest) in SHAPES.iter().zip(&mut guests) {
        let (mut line, p99) = line(shape.name, &mut guest.series, with);
        line.insert(1, format!("{}, {} % reads", shape.blocks, shape.reads));
        lines.push(line);
        if p99 > ADDED_US {
            missed.push(format!("{} ({p99:.1} us)", shape.name));
        }
    }
    println!("  {}", machine::describe());
    let head = ["", "", "IOPS", "p50 us", "p99 us", "p99.9 us"];
    print!("{}", screen::table(&head, &lines));
    println!(
        "  the daemon took {cores:.2} cores; drives in memory: all of a latency counts as the engine's"
    );
    drop(guests);
    tell_withheld([with.server_core, with.client_core])?;
    match missed.is_empty() {
        true => println!("  met:    99 of 100 requests of each take at most {ADDED_US} us"),
        false => println!(
            "  MISSED: more than {ADDED_US} us at p99: {}",
            missed.join(", ")
        ),
    }
    Ok(())
}

/// What of that is no doing of the engine's: requests are due whatever the machine does meanwhile.
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
