//! What viewers of live data and a scrape each second cost hosts: 4 KiB random requests with and without them, turn
//! about.

use crate::arguments::Viewers;
use crate::failure::{Failure, Result, While};
use crate::fio::{self, Load, Pattern};
use crate::interrupt;
use crate::machine;
use crate::scene::{POOL, Scene, Sizes, VOLUME};
use crate::screen::{self, Progress, thousands};
use crate::scrub_cost::median;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use units::format_bytes;

/// Size of the raw file that a scene has beside the pool; nothing is measured on it here.
const RAW: u64 = 1 << 20;
/// Requests outstanding.
const DEPTH: u32 = 16;
/// How long a viewer waits for something before it looks whether it is to leave.
const PATIENCE: Duration = Duration::from_millis(200);
/// From one scrape to the next.
const PERIOD: Duration = Duration::from_secs(1);
/// Viewers come, and get their first look, before the load begins.
const SETTLE: Duration = Duration::from_secs(2);

/// The daemon does nothing of its own any more when it takes less than this of a core, which is waited for so long.
const QUIET: f64 = 0.02;
const SINK_TIME: Duration = Duration::from_secs(60);
/// Columns of the table.
const COLUMNS: usize = 8;

/// What came to those who look.
#[derive(Default)]
struct Seen {
    leave: AtomicBool,
    looks: AtomicU64,
    bytes: AtomicU64,
    scrapes: AtomicU64,
    scraped: AtomicU64,
}

/// One round with or without those who look.
struct Round {
    iops: f64,
    p99_ns: f64,
    /// Seconds of processor time that the daemon took a second.
    used: f64,
}

fn ask(socket: &Path, path: &str) -> Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = format!(
        "GET {path} HTTP/1.0\r\nHost: convect\r\nAccept: application/openmetrics-text\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    Ok(stream)
}

/// Reads until the other side ends, or one is to leave; gives each part.
fn follow(mut stream: UnixStream, seen: &Seen, mut part: impl FnMut(&[u8])) -> Result<()> {
    let mut buffer = vec![0; 64 << 10];
    while !seen.leave.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => part(&buffer[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Looks at the state and at the volume's map, as the page does.
fn view(socket: &Path, seen: &Seen) -> Result<()> {
    let stream = ask(socket, &format!("/v1/live?maps={VOLUME}&cells=1024"))?;
    follow(stream, seen, |part| {
        let events = part.windows(12).filter(|at| at == b"event: state");
        seen.looks
            .fetch_add(events.count() as u64, Ordering::Relaxed);
        seen.bytes.fetch_add(part.len() as u64, Ordering::Relaxed);
    })
}

fn scrape(socket: &Path, seen: &Seen) -> Result<()> {
    let mut due = Instant::now();
    while !seen.leave.load(Ordering::Relaxed) {
        follow(ask(socket, "/metrics")?, seen, |part| {
            seen.scraped.fetch_add(part.len() as u64, Ordering::Relaxed);
        })?;
        seen.scrapes.fetch_add(1, Ordering::Relaxed);
        due += PERIOD;
        while Instant::now() < due && !seen.leave.load(Ordering::Relaxed) {
            thread::sleep(PATIENCE.min(due.saturating_duration_since(Instant::now())));
        }
    }
    Ok(())
}

fn load(scene: &Scene, pattern: Pattern, with: &Viewers, name: &str) -> Result<Round> {
    let mut load = Load::random(scene.target(), pattern, 0, with.volume, with.seconds);
    load.depth = DEPTH;
    let (begun, before) = (
        Instant::now(),
        machine::processor_seconds(scene.daemon.pid())?,
    );
    let mut progress = Progress::new();
    let figures = fio::run(&load, scene.scratch.path(), || {
        if progress.is_due() {
            let went = begun.elapsed().as_secs_f64();
            let bar = screen::bar(went / with.seconds as f64, 30);
            progress.draw(&format!("  {pattern:?} {name} {bar} {went:.0} s"));
        }
        Ok(())
    })?;
    progress.clear();
    let used = machine::processor_seconds(scene.daemon.pid())? - before;
    Ok(Round {
        iops: figures.iops,
        p99_ns: figures.p99_ns,
        used: used / begun.elapsed().as_secs_f64(),
    })
}

/// What those who look cost the daemon by themselves, in processor time: it says what they can cost hosts at most, also
/// on a machine that is too busy for their rates to tell.
fn idle(scene: &Scene, seconds: u64) -> Result<f64> {
    let (begun, before) = (
        Instant::now(),
        machine::processor_seconds(scene.daemon.pid())?,
    );
    interrupt::pause(Duration::from_secs(seconds))?;
    let used = machine::processor_seconds(scene.daemon.pid())? - before;
    Ok(used / begun.elapsed().as_secs_f64())
}

/// Does something while they look.
fn looked_at<T>(
    scene: &Scene,
    with: &Viewers,
    seen: &Seen,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let socket = scene.daemon.socket();
    seen.leave.store(false, Ordering::Relaxed);
    let (done, others) = thread::scope(|scope| {
        let mut others: Vec<_> = (0..with.viewers)
            .map(|_| scope.spawn(|| view(&socket, seen)))
            .collect();
        others.push(scope.spawn(|| scrape(&socket, seen)));
        thread::sleep(SETTLE);
        let done = work();
        seen.leave.store(true, Ordering::Relaxed);
        let ended = others.into_iter().map(|other| other.join());
        (done, ended.collect::<Vec<_>>())
    });
    for other in others {
        let ended = other.unwrap_or_else(|_| Err(Failure::new("a viewer ended unexpectedly")));
        ended.during(|| "looking at the daemon".to_owned())?;
    }
    done
}

/// Rounds in pairs, of which every other begins with the viewers.
fn measure(scene: &Scene, with: &Viewers, seen: &Seen) -> Result<Vec<Vec<String>>> {
    scene.fill(with.volume)?;
    // What was written sinks first.
    interrupt::wait_for(SINK_TIME, || Ok(idle(scene, 1)? < QUIET))?;
    let alone = idle(scene, with.seconds)?;
    let beside = looked_at(scene, with, seen, || idle(scene, with.seconds))?;
    let mut rows = vec![vec![String::new(); COLUMNS]];
    rows[0][0] = "nothing".to_owned();
    rows[0][COLUMNS - 2] = format!("{:.2} %", 100.0 * alone);
    rows[0][COLUMNS - 1] = format!("{:.2} %", 100.0 * beside);
    for (pattern, name) in [
        (Pattern::RandomRead, "random reads"),
        (Pattern::RandomWrite, "random writes"),
    ] {
        // The first one warms up and does not count.
        load(scene, pattern, with, "without")?;
        let mut pairs = Vec::new();
        let beside = || {
            let work = || load(scene, pattern, with, "with viewers");
            looked_at(scene, with, seen, work)
        };
        for number in 0..with.rounds {
            let pair = match number % 2 {
                0 => {
                    let alone = load(scene, pattern, with, "without")?;
                    (alone, beside()?)
                }
                _ => {
                    let beside = beside()?;
                    (load(scene, pattern, with, "without")?, beside)
                }
            };
            pairs.push(pair);
        }
        let row = |name: String, alone: [f64; 3], beside: [f64; 3], change: f64| {
            vec![
                name,
                thousands(alone[0]),
                thousands(beside[0]),
                format!("{:+.2} %", 100.0 * change),
                format!("{:.3}", alone[1] / 1e6),
                format!("{:.3}", beside[1] / 1e6),
                format!("{:.1} %", 100.0 * alone[2]),
                format!("{:.1} %", 100.0 * beside[2]),
            ]
        };
        let figures = |round: &Round| [round.iops, round.p99_ns, round.used];
        let change = |(alone, beside): &(Round, Round)| beside.iops / alone.iops.max(1.0) - 1.0;
        for (number, pair) in pairs.iter().enumerate() {
            let name = format!("{name} {}", number + 1);
            rows.push(row(name, figures(&pair.0), figures(&pair.1), change(pair)));
        }
        let middle = |of: fn(&(Round, Round)) -> &Round| {
            [0, 1, 2].map(|figure| {
                let all: Vec<f64> = pairs.iter().map(|pair| figures(of(pair))[figure]).collect();
                median(&all)
            })
        };
        let changes: Vec<f64> = pairs.iter().map(change).collect();
        let medians = (middle(|pair| &pair.0), middle(|pair| &pair.1));
        rows.push(row(
            format!("{name}, median"),
            medians.0,
            medians.1,
            median(&changes),
        ));
    }
    Ok(rows)
}

/// Fills a volume and measures.
pub fn run(convect: &Path, with: &Viewers) -> Result<()> {
    println!(
        "4 KiB random requests, {DEPTH} outstanding, to a volume of {}, with {} viewers of {POOL} and of the volume's \
         map and a scrape each second, and without; {} pairs of rounds of {} s",
        format_bytes(with.volume),
        with.viewers,
        with.rounds,
        with.seconds
    );
    let mut scene = Scene::new(
        convect,
        "viewers",
        Sizes::whole(with.volume, with.fast, RAW),
        &with.behind,
    )?;
    let seen = Seen::default();
    let measured = measure(&scene, with, &seen);
    let rows = scene.daemon.explain(measured)?;
    let head = [
        "",
        "IOPS",
        "with viewers",
        "change",
        "p99 ms",
        "with viewers",
        "daemon's CPU",
        "with viewers",
    ];
    println!("{}", screen::table(&head, &rows));
    let [looks, bytes, scrapes, scraped] = [&seen.looks, &seen.bytes, &seen.scrapes, &seen.scraped]
        .map(|count| count.load(Ordering::Relaxed));
    println!(
        "{looks} looks of {} in all, {scrapes} scrapes of {}",
        format_bytes(bytes),
        format_bytes(scraped)
    );
    scene.daemon.stop()
}
