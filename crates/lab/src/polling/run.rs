//! The rounds.

use super::arguments::Waiting;
use super::table::{Cell, Row, show};
use crate::failure::{Failure, Result, While};
use crate::interrupt;
use crate::load::{
    Arrivals, Blocks, Content, Disk, Figures, Load, Opening, Pattern, Port, Rate, Request, Watched,
    measure,
};
use crate::machine;
use crate::memory_pool::MemoryPool;
use crate::scratch::Scratch;
use std::path::Path;
use std::time::{Duration, Instant};

/// The ways, as exports have them; others are held against the first.
pub const MODES: [&str; 3] = ["busy", "adaptive", "interrupt"];
const BLOCK: u32 = 4096;
/// Seconds that do not count.
const WARM_UP: u64 = 1;
/// The part of busy polling's rate at which requests come where it is given.
const PART: f64 = 0.3;
/// The queue depth of that rate.
const PART_DEPTH: u16 = 8;
/// The size of an idle volume.
const IDLE_BYTES: u64 = 16 << 20;
/// Room for sockets and logs.
const ROOM: u64 = 64 << 20;
/// How long an answer may take.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Work after a connection belongs to it, and is left out.
const SETTLE: Duration = Duration::from_secs(1);

fn load(with: &Waiting, disk: &Disk, depth: u16, rate: Option<f64>) -> Load {
    let per_second = |per_second| Rate {
        per_second,
        arrivals: Arrivals::Poisson,
    };
    Load {
        disks: vec![disk.clone()],
        first: 1.0,
        blocks: Blocks::of(BLOCK),
        read_percent: 100,
        aim: Pattern::Random.aim(0..with.size, BLOCK, 1),
        queues: 1,
        depth,
        threads: 1,
        cores: vec![with.client_core],
        polling: true,
        rate: rate.map(per_second),
        content: Content::Random,
        warm_up: WARM_UP,
        seconds: with.seconds,
        requests: None,
        seed: 1,
    }
}

/// The same load with each way of polling, round by round.
fn row(pool: &MemoryPool, with: &Waiting, name: String, load: &Load) -> Result<Row> {
    let mut rounds: [Vec<Cell>; MODES.len()] = Default::default();
    for _ in 0..with.rounds {
        for (mode, cells) in MODES.iter().zip(&mut rounds) {
            pool.set_polling("loaded", mode)?;
            let watched = Watched {
                server: Some(pool.daemon.pid()),
            };
            let figures = Figures::from(&measure(load, watched, |_, _| Ok(true))?);
            cells.push(Cell {
                iops: figures.all.iops,
                p50_us: figures.all.latency.p50_us,
                p99_us: figures.all.latency.p99_us,
                cores: figures.server_cores.unwrap_or(0.0),
            });
        }
    }
    Ok(Row { name, rounds })
}

/// Sends one request and waits for its answer: a ring that sleeps goes by its export's way of polling from the next
/// one on.
fn wake(port: &mut dyn Port) -> Result<()> {
    port.begin()?;
    let request = Request {
        length: BLOCK,
        ..Request::default()
    };
    port.queue(0, request)?;
    port.send()?;
    let mut answered = Vec::with_capacity(1);
    let done = interrupt::wait_for(ANSWER_TIME, || {
        port.take(&mut answered)?;
        Ok(!answered.is_empty())
    })?;
    match done {
        true => Ok(()),
        false => Err(Failure::new(
            "a request is not answered: look at the server's log",
        )),
    }
}

/// Cores that the daemon takes with clients that have sent a request each and send no other.
fn idle(pool: &MemoryPool, with: &Waiting) -> Result<Row> {
    let opening = Opening {
        queues: 1,
        slots: 8,
        slot_bytes: BLOCK,
        polling: false,
        writes: false,
        looks: false,
    };
    let names: Vec<String> = (0..with.exports)
        .map(|number| format!("idle{number}"))
        .collect();
    let mut connected: Vec<Box<dyn Port>> = Vec::new();
    for name in &names {
        let disk = pool.export(name, IDLE_BYTES)?;
        connected.extend(disk.open(&opening)?.0);
    }
    let mut rounds: [Vec<Cell>; MODES.len()] = Default::default();
    for (mode, cells) in MODES.iter().zip(&mut rounds) {
        for name in names.iter().map(String::as_str).chain(["loaded"]) {
            pool.set_polling(name, mode)?;
        }
        connected
            .iter_mut()
            .try_for_each(|port| wake(&mut **port))?;
        interrupt::pause(SETTLE)?;
        let pid = pool.daemon.pid();
        let (begun, before) = (Instant::now(), machine::processor_seconds(pid)?);
        interrupt::pause(Duration::from_secs(3 * with.seconds))?;
        let used = machine::processor_seconds(pid)? - before;
        cells.push(Cell {
            cores: used / begun.elapsed().as_secs_f64(),
            ..Cell::default()
        });
    }
    Ok(Row {
        name: format!("idle, {} exports", with.exports),
        rounds,
    })
}

fn rows(pool: &MemoryPool, with: &Waiting) -> Result<Vec<Row>> {
    let disk = pool.export("loaded", with.size)?;
    pool.fill(&disk, with.size)?;
    let mut rows = Vec::new();
    for depth in [1, 8, 32] {
        let name = format!("QD {depth}");
        let load = load(with, &disk, depth, None);
        rows.push(row(pool, with, name, &load)?);
    }
    let rate = PART * rows[1].median(0).iops;
    let name = format!("30 %, QD {PART_DEPTH}");
    let load = load(with, &disk, PART_DEPTH, Some(rate));
    rows.push(row(pool, with, name, &load)?);
    rows.push(idle(pool, with)?);
    Ok(rows)
}

/// Measures, and prints the table and what of it is as it is to be.
///
/// # Errors
/// When something cannot be measured.
pub fn run(convect: &Path, with: &Waiting) -> Result<()> {
    let scratch = Scratch::new("polling", ROOM)?;
    let bytes = with.size + u64::from(with.exports) * IDLE_BYTES;
    let mut pool = MemoryPool::new(convect, scratch.path(), with.server_core, bytes)?;
    let measured = rows(&pool, with);
    let rows = pool
        .daemon
        .explain(measured)
        .during(|| "polling".to_owned())?;
    pool.daemon.stop()?;
    println!("  {}", machine::describe());
    print!("{}", show(&rows));
    Ok(())
}
