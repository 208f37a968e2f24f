//! A forged pool by its seed, and many of them.

use super::base::{SHAPES, make};
use super::disk::Disk;
use super::forge::Pool;
use super::life::{Life, POOL};
use crate::random::Random;
use drives::OpenDrive;
use inspect::{Inspection, Mode, Options, What, dump, inspect_drives, restore_volume};
use reactor::{Clock, Handle};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Steps that a tool may take.
const STEPS: usize = 5_000_000;
/// Lines of a dump that are taken.
const LINES: usize = 2000;
/// Resident memory that all may take, in bytes.
const MEMORY_MAX: u64 = 1 << 30;

/// Processor time that everything that is done to one pool may take.
const HANG: Duration = Duration::from_secs(10);

thread_local! {
    /// Message and location of the first panic of this thread, if the thread forges.
    static PANICS: RefCell<Option<String>> = const { RefCell::new(None) };
}

struct Still;

impl Clock for Still {
    fn now_ns(&self) -> u64 {
        1
    }
}

/// Results of forged pools.
#[derive(Default, Debug)]
pub struct Tally {
    /// Pools.
    pub pools: AtomicU64,
    /// Pools that opened, as they were, and after their repair.
    pub opened: AtomicU64,
    pub opened_after: AtomicU64,
    /// Pools in which a check found something.
    pub noticed: AtomicU64,
}

/// Runs a tool to its end.
fn tool<T>(work: impl Future<Output = T>, handle: &Handle) -> Result<T, String> {
    let mut work = std::pin::pin!(work);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..STEPS {
        if let std::task::Poll::Ready(done) = work.as_mut().poll(&mut context) {
            return Ok(done);
        }
        handle.run_ready(1);
    }
    Err("a tool waits for something that never comes, or for too long".into())
}

fn tools(disks: &[Disk], mode: Mode, data: bool) -> Result<bool, String> {
    let handle = Handle::simulated(Box::new(Still), 1).map_err(|error| error.to_string())?;
    let drives: Vec<Arc<dyn OpenDrive>> = disks
        .iter()
        .map(|disk| Arc::new(disk.clone()) as _)
        .collect();
    let options = Options { data };
    let work = inspect_drives(&handle, &drives, mode, options, &|_| ());
    let whole = match tool(work, &handle)? {
        Ok(report) => report.verdict == inspect::Verdict::Whole,
        Err(_) => false,
    };
    if mode == Mode::Mend || !data {
        return Ok(whole);
    }
    let show = async {
        let Ok(pool) = inspect::Pool::open(&handle, &drives).await else {
            return;
        };
        let look = || Inspection::new(&pool, Mode::Look, false, &|_| ());
        let volumes = pool.config().volumes.iter();
        let names: Vec<String> = volumes.map(|volume| volume.name.clone()).collect();
        let maps = names.iter().map(|name| What::Map(name.clone(), None));
        let all = [
            What::Label,
            What::Checkpoint(None),
            What::Journal(None),
            What::Space(None),
        ];
        for what in all.into_iter().chain(maps) {
            let mut lines = 0;
            let mut take = |_: &str| {
                lines += 1;
                lines < LINES
            };
            let _ = dump(&look(), &what, &mut take).await;
        }
        for name in &names {
            let _ = restore_volume(&look(), name, &mut |_, _| Ok(())).await;
        }
    };
    tool(show, &handle)?;
    Ok(whole)
}

/// Whether a check with data finds a pool whole.
///
/// # Errors
/// When it does not end.
#[cfg(test)]
pub fn is_whole(disks: &[Disk]) -> Result<bool, String> {
    tools(disks, Mode::Look, true)
}

fn life(disks: &[Disk], random: &mut Random, is_repaired: bool) -> Result<bool, String> {
    let life = Life::new(disks, random.next());
    let specs: Vec<String> = disks.iter().map(|disk| disk.spec().to_owned()).collect();
    let _ = life.ask().pool_scan(&specs);
    let opened = life.ask().pool_import(&specs, POOL, false).is_ok()
        || life.ask().pool_import(&specs, POOL, true).is_ok();
    if opened {
        match is_repaired {
            true => life.look_at_all()?,
            false => life.use_pool(random)?,
        }
        let _ = life.ask().pool_export(POOL);
    }
    match life.is_endless() {
        true => Err("an import takes more steps than anything may".into()),
        false => Ok(opened),
    }
}

/// Forges a pool and does everything to it.
///
/// # Errors
/// The operation that did not end. Panics propagate.
pub fn attempt(bases: &[Vec<Disk>], seed: u64, tally: &Tally) -> Result<(), String> {
    let mut random = Random::new(seed);
    let disks: Vec<Disk> = random.pick(bases).iter().map(Disk::copy).collect();
    for _ in 0..random.within(1..=2) {
        if let Some(pool) = Pool::of(&disks) {
            pool.forge(&mut random);
        }
    }
    let whole = tools(&disks, Mode::Look, false)? & tools(&disks, Mode::Look, true)?;
    let used: Vec<Disk> = disks.iter().map(Disk::copy).collect();
    let opened = life(&used, &mut random, false)?;
    tools(&used, Mode::Look, true)?;
    tools(&disks, Mode::Mend, false)?;
    tools(&disks, Mode::Mend, true)?;
    let opened_after = life(&disks, &mut random, true)?;
    tally.pools.fetch_add(1, Ordering::Relaxed);
    tally
        .noticed
        .fetch_add(u64::from(!whole), Ordering::Relaxed);
    tally.opened.fetch_add(u64::from(opened), Ordering::Relaxed);
    tally
        .opened_after
        .fetch_add(u64::from(opened_after), Ordering::Relaxed);
    Ok(())
}

/// Forges a number of pools, from the one of a seed on, on some threads; returns the results.
///
/// # Errors
/// Faults, each kind with its first seed.
pub fn campaign(first: u64, count: u64, threads: usize) -> Result<Tally, Vec<String>> {
    let bases: Arc<Vec<Vec<Disk>>> = Arc::new(SHAPES.into_iter().map(make).collect());
    let tally = Arc::new(Tally::default());
    keep_panics();
    let next = AtomicU64::new(first);
    let wrong: Mutex<BTreeMap<String, (u64, u64)>> = Mutex::default();
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first.saturating_add(count) {
                return;
            }
            let (bases, tally) = (bases.clone(), tally.clone());
            // A thread of its own: what a panic leaves in it is gone with it.
            let ended = std::thread::spawn(move || {
                PANICS.with_borrow_mut(|panics| *panics = Some(String::new()));
                let tried = || attempt(&bases, seed, &tally);
                let ended = catch_unwind(AssertUnwindSafe(tried)).unwrap_or_else(|_| {
                    let said = PANICS.with_borrow(Clone::clone);
                    Err(said.unwrap_or_default())
                });
                let took = crate::command::worked();
                crate::memory::Lifo::forget_lists();
                match took > HANG {
                    true => ended.and(Err("it takes longer than anything may".into())),
                    false => ended,
                }
            });
            let failed = match ended.join() {
                Ok(Ok(())) => continue,
                Ok(Err(failed)) => failed,
                Err(_) => "a panic beyond the end".into(),
            };
            if let Ok(mut wrong) = wrong.lock() {
                wrong.entry(failed).or_insert((seed, 0)).1 += 1;
            }
        }
    };
    std::thread::scope(|scope| (0..threads.max(1)).for_each(|_| drop(scope.spawn(work))));
    let mut wrong: Vec<String> = wrong
        .into_inner()
        .unwrap_or_default()
        .into_iter()
        .map(|(what, (seed, times))| format!("seed {seed} ({times} times): {what}"))
        .collect();
    let most = resident_max();
    if most > MEMORY_MAX {
        wrong.push(format!("{most} bytes of memory were resident"));
    }
    match wrong.is_empty() {
        true => Ok(Arc::try_unwrap(tally).unwrap_or_default()),
        false => Err(wrong),
    }
}

/// Panics of threads that forge are kept and not printed: they are reported once for each kind.
fn keep_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_kept = PANICS.with_borrow_mut(|panics| {
            let Some(first) = panics else {
                return false;
            };
            if first.is_empty() {
                *first = panic.to_string();
            }
            if cfg!(panic = "abort") {
                // It is not reported again.
                eprintln!("{panic}");
            }
            true
        });
        if !is_kept {
            before(panic);
        }
    }));
}

/// The most resident memory that this process has had, in bytes.
fn resident_max() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    number.unwrap_or(0) << 10
}
