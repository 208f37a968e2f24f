//! Schedules of one seed after the other, on several threads, and their results.

use super::draw;
use super::shared;
use super::world::World;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Results of a campaign of schedules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Schedules.
    pub schedules: u64,
    /// Operations that ended.
    pub operations: u64,
    /// Of them, those that were held.
    pub held: u64,
    /// Volumes of which the service that they attained was judged.
    pub judged: u64,
    /// Of these, those whose minimums did not all fit.
    pub scarce: u64,
}

/// One seed in this many is of a loop that also runs front ends, which takes as long as hundreds of the others.
const SHARED_EACH: u64 = 200;

/// Runs one schedule.
///
/// # Errors
/// Its fault.
pub fn run(seed: u64) -> Result<Tally, String> {
    match seed.is_multiple_of(SHARED_EACH) {
        true => shared::run(seed / SHARED_EACH),
        false => World::new(draw::plan(seed)).run(),
    }
}

/// Runs `count` schedules of the seeds from `first` on, on a number of threads.
///
/// # Errors
/// The first one that was wrong, with its seed.
pub fn campaign(first: u64, count: u64, threads: usize) -> Result<Tally, String> {
    let next = AtomicU64::new(0);
    let (sum, wrong) = (Mutex::new(Tally::default()), Mutex::new(None));
    let lock = "no thread panics while it holds this";
    let work = || {
        let mut mine = Tally::default();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count || wrong.lock().expect(lock).is_some() {
                break;
            }
            let seed = first + at;
            match run(seed) {
                Ok(tally) => mine.add(&tally),
                Err(what) => {
                    let mut wrong = wrong.lock().expect(lock);
                    wrong.get_or_insert(format!("schedule {seed}: {what}"));
                }
            }
        }
        sum.lock().expect(lock).add(&mine);
    };
    std::thread::scope(|scope| {
        (0..threads.max(1)).for_each(|_| drop(scope.spawn(work)));
    });
    match wrong.into_inner().expect(lock) {
        None => Ok(sum.into_inner().expect(lock)),
        Some(what) => Err(what),
    }
}

impl Tally {
    fn add(&mut self, more: &Self) {
        self.schedules += more.schedules;
        self.operations += more.operations;
        self.held += more.held;
        self.judged += more.judged;
        self.scarce += more.scarce;
    }
}
