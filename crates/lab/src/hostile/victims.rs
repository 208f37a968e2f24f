//! Hosts that do nothing wrong: a modest load at a fixed rate, of which every byte is checked.

use crate::failure::Result;
use crate::load::{
    self, Arrivals, Blocks, Content, Disk, Load, Pattern, Rate, Series, Versions, Watched, measure,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const BLOCK: u32 = 4096;
/// Requests a second of each.
const PER_SECOND: f64 = 200.0;
const READ_PERCENT: u8 = 50;
/// Requests outstanding at most.
const DEPTH: u16 = 16;
/// A load lasts so much longer than an attack that it is always told to end before.
const SECONDS_MORE: u64 = 600;

/// A volume with a load.
pub struct Victim {
    /// Its protocol.
    pub protocol: &'static str,
    disk: Disk,
    bytes: u64,
    versions: Arc<Versions>,
}

/// How a victim's load does.
#[derive(Default)]
pub struct Progress {
    /// Its first request was sent: the session is there.
    pub begun: AtomicBool,
    /// Whole seconds that have passed.
    pub seconds: AtomicU64,
    /// Requests that were answered in them.
    pub answered: AtomicU64,
    /// It has ended.
    pub ended: AtomicBool,
}

impl Victim {
    /// Fills a volume.
    ///
    /// # Errors
    /// When it cannot be reached or written.
    pub fn new(protocol: &'static str, disk: Disk, bytes: u64) -> Result<Self> {
        let versions = Arc::new(Versions::new(0..bytes, BLOCK));
        load::fill(&disk, bytes, Content::Checked(Arc::clone(&versions)))?;
        Ok(Self {
            protocol,
            disk,
            bytes,
            versions,
        })
    }

    fn load(&self, seconds: u64, progress: &Arc<Progress>) -> Load {
        let anywhere = Pattern::Random.aim(0..self.bytes, BLOCK, 1);
        let begun = Arc::clone(progress);
        Load {
            disks: vec![self.disk.clone()],
            first: 1.0,
            blocks: Blocks::of(BLOCK),
            read_percent: READ_PERCENT,
            aim: Arc::new(move |chance, length| {
                begun.begun.store(true, Ordering::Relaxed);
                anywhere(chance, length)
            }),
            queues: 1,
            depth: DEPTH,
            threads: 1,
            cores: Vec::new(),
            polling: false,
            rate: Some(Rate {
                per_second: PER_SECOND,
                arrivals: Arrivals::Even,
            }),
            content: Content::Checked(Arc::clone(&self.versions)),
            warm_up: 0,
            seconds: seconds + SECONDS_MORE,
            requests: None,
            seed: 1,
        }
    }

    /// Runs its load until `over`, some time after a number of seconds, and gives its seconds, reads and writes together.
    ///
    /// # Errors
    /// When the session is lost, a request fails or is not answered, or something wrong is read.
    pub fn run(&self, seconds: u64, progress: &Arc<Progress>, over: &AtomicBool) -> Result<Series> {
        let load = self.load(seconds, progress);
        let outcome = measure(&load, Watched::default(), |_, answered| {
            progress
                .answered
                .fetch_add(answered as u64, Ordering::Relaxed);
            progress.seconds.fetch_add(1, Ordering::Relaxed);
            Ok(!over.load(Ordering::Relaxed))
        });
        progress.ended.store(true, Ordering::Relaxed);
        let outcome = outcome?;
        let mut all = outcome.reads;
        all.merge(&outcome.writes);
        Ok(all)
    }
}
