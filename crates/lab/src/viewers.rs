//! The cost of viewers of live data and of a scrape each second for hosts: 4 KiB random requests with and without them, turn
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
use std::os::fd::AsRawFd;
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
const COLUMNS: usize = 9;

/// Data received by viewers.
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
    /// The same of those who look, who would be elsewhere: part of what they cost here.
    clients: f64,
}

/// Processor time at a moment: of the daemon, and of this process, which is that of those who look.
struct Clock {
    begun: Instant,
    daemon: f64,
    clients: f64,
}

impl Clock {
    fn start(scene: &Scene) -> Result<Self> {
        Ok(Self {
            begun: Instant::now(),
            daemon: machine::processor_seconds(scene.daemon.pid())?,
            clients: machine::own_processor_seconds(),
        })
    }

    /// Seconds a second since then: of the daemon, and of those who look.
    fn stop(&self, scene: &Scene) -> Result<(f64, f64)> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let daemon = machine::processor_seconds(scene.daemon.pid())? - self.daemon;
        let clients = machine::own_processor_seconds() - self.clients;
        Ok((daemon / seconds, clients / seconds))
    }
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

/// A number of viewers of the state and the volume's map, as the page does: all on one thread, which sleeps until
/// something comes, so that they take as little as can be of the processors that they share with what is measured.
fn view(socket: &Path, viewers: u32, seen: &Seen) -> Result<()> {
    let path = format!("/v1/live?maps={VOLUME}&cells=1024");
    let streams: Result<Vec<_>> = (0..viewers).map(|_| ask(socket, &path)).collect();
    let mut streams = streams?;
    let mut polled: Vec<libc::pollfd> = streams
        .iter()
        .map(|stream| libc::pollfd {
            fd: stream.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let mut buffer = vec![0; 64 << 10];
    let patience = PATIENCE.as_millis() as libc::c_int;
    while !seen.leave.load(Ordering::Relaxed) {
        // SAFETY: the entries live through the call and are as many as is said; the streams keep their descriptors open.
        let ready =
            unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, patience) };
        if ready <= 0 {
            continue;
        }
        for (stream, polled) in streams.iter_mut().zip(&polled) {
            if polled.revents == 0 {
                continue;
            }
            let length = stream.read(&mut buffer)?;
            if length == 0 {
                return Err(Failure::new("the daemon ended a viewer"));
            }
            let part = &buffer[..length];
            let looks = part.windows(12).filter(|at| at == b"event: state").count();
            seen.looks.fetch_add(looks as u64, Ordering::Relaxed);
            seen.bytes.fetch_add(length as u64, Ordering::Relaxed);
        }
    }
    Ok(())
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
    let clock = Clock::start(scene)?;
    let mut progress = Progress::new();
    let figures = fio::run(&load, scene.scratch.path(), || {
        if progress.is_due() {
            let went = clock.begun.elapsed().as_secs_f64();
            let bar = screen::bar(went / with.seconds as f64, 30);
            progress.draw(&format!("  {pattern:?} {name} {bar} {went:.0} s"));
        }
        Ok(())
    })?;
    progress.clear();
    let (used, clients) = clock.stop(scene)?;
    Ok(Round {
        iops: figures.iops,
        p99_ns: figures.p99_ns,
        used,
        clients,
    })
}

/// Processor time of viewers in the daemon without hosts: an upper bound of their cost for hosts, also
/// on a machine that is too busy for their rates to tell.
fn idle(scene: &Scene, seconds: u64) -> Result<(f64, f64)> {
    let clock = Clock::start(scene)?;
    interrupt::pause(Duration::from_secs(seconds))?;
    clock.stop(scene)
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
        let others = [
            scope.spawn(|| view(&socket, with.viewers, seen)),
            scope.spawn(|| scrape(&socket, seen)),
        ];
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

/// The 95 % confidence interval of the median of some values, whatever
/// their distribution is: by rank.
fn bounds_of_median(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    // Half of the values are below it, give or take 1.96 standard deviations of this many throws of a coin.
    let rank = (count / 2.0 - 0.98 * count.sqrt()).max(0.0) as usize;
    let bounds = sorted.get(rank).zip(sorted.iter().rev().nth(rank));
    bounds.map_or((f64::NAN, f64::NAN), |(least, most)| (*least, *most))
}

/// Rounds in pairs, of which every other begins with the viewers.
fn measure(scene: &Scene, with: &Viewers, seen: &Seen) -> Result<Vec<Vec<String>>> {
    scene.fill(with.volume)?;
    // What was written is demoted first.
    interrupt::wait_for(SINK_TIME, || Ok(idle(scene, 1)?.0 < QUIET))?;
    let (alone, _) = idle(scene, with.seconds)?;
    let (beside, clients) = looked_at(scene, with, seen, || idle(scene, with.seconds))?;
    let mut rows = vec![vec![String::new(); COLUMNS]];
    rows[0][0] = "nothing".to_owned();
    rows[0][COLUMNS - 3] = format!("{:.2} %", 100.0 * alone);
    rows[0][COLUMNS - 2] = format!("{:.2} %", 100.0 * beside);
    rows[0][COLUMNS - 1] = format!("{:.2} %", 100.0 * clients);
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
        let row = |name: String, alone: [f64; 4], beside: [f64; 4], change: String| {
            vec![
                name,
                thousands(alone[0]),
                thousands(beside[0]),
                change,
                format!("{:.3}", alone[1] / 1e6),
                format!("{:.3}", beside[1] / 1e6),
                format!("{:.1} %", 100.0 * alone[2]),
                format!("{:.1} %", 100.0 * beside[2]),
                format!("{:.1} %", 100.0 * beside[3]),
            ]
        };
        let figures = |round: &Round| [round.iops, round.p99_ns, round.used, round.clients];
        let change = |(alone, beside): &(Round, Round)| beside.iops / alone.iops.max(1.0) - 1.0;
        for (number, pair) in pairs.iter().enumerate() {
            let name = format!("{name} {}", number + 1);
            let change = format!("{:+.2} %", 100.0 * change(pair));
            rows.push(row(name, figures(&pair.0), figures(&pair.1), change));
        }
        let middle = |of: fn(&(Round, Round)) -> &Round| {
            [0, 1, 2, 3].map(|figure| {
                let all: Vec<f64> = pairs.iter().map(|pair| figures(of(pair))[figure]).collect();
                median(&all)
            })
        };
        let changes: Vec<f64> = pairs.iter().map(change).collect();
        let (least, most) = bounds_of_median(&changes);
        let medians = (middle(|pair| &pair.0), middle(|pair| &pair.1));
        rows.push(row(
            format!("{name}, median"),
            medians.0,
            medians.1,
            format!(
                "{:+.2} % ({:+.2} to {:+.2})",
                100.0 * median(&changes),
                100.0 * least,
                100.0 * most
            ),
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
        "theirs",
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

#[cfg(test)]
mod tests {
    use super::bounds_of_median;

    #[test]
    fn a_median_is_bounded_by_values_of_which_more_are_needed_to_bound_it_narrowly() {
        let values: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        assert_eq!(bounds_of_median(&values), (6.0, 15.0));
        assert_eq!(bounds_of_median(&values[..6]), (15.0, 20.0));
        assert!(bounds_of_median(&[]).0.is_nan());
    }
}
