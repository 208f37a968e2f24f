//! The definition of a load.

use super::aim::{Aim, Pattern};
use super::blocks::Blocks;
use super::disk::Disk;
use super::pace::Rate;
use super::versions::Versions;
use crate::fio::{DEPTH, Target};
use std::ops::Range;
use std::sync::Arc;
use units::BLOCK;

/// Queues of the benchmarks' usual load.
const QUEUES: u16 = 2;

/// Data to write.
#[derive(Clone)]
pub enum Content {
    /// Pseudorandom data.
    Random,
    /// Zeroes.
    Zeroes,
    /// Data with its position, version and a checksum; all data read is verified.
    Checked(Arc<Versions>),
}

impl Content {
    /// The versions, where they are checked.
    pub fn versions(&self) -> Option<Arc<Versions>> {
        match self {
            Self::Checked(versions) => Some(Arc::clone(versions)),
            Self::Random | Self::Zeroes => None,
        }
    }
}

/// A load.
#[derive(Clone)]
pub struct Load {
    /// One disk, or two that share the requests.
    pub disks: Vec<Disk>,
    /// The part of the requests that goes to the first of two, from 0 to 1.
    pub first: f64,
    /// Their sizes.
    pub blocks: Blocks,
    /// Reads of a hundred requests; the others are writes.
    pub read_percent: u8,
    /// Where they go.
    pub aim: Aim,
    /// Queues of each disk.
    pub queues: u16,
    /// Requests outstanding on each queue.
    pub depth: u16,
    /// Threads that the queues are divided among.
    pub threads: u16,
    /// Processors that the threads are bound to, in turn; none: wherever the system puts them.
    pub cores: Vec<usize>,
    /// Completions are polled, without waiting.
    pub polling: bool,
    /// How often requests are due; none: as soon as others are answered.
    pub rate: Option<Rate>,
    /// Data to write.
    pub content: Content,
    /// Seconds at the beginning that are not counted.
    pub warm_up: u64,
    /// Seconds after those, at most.
    pub seconds: u64,
    /// Requests after which it ends, whatever the time.
    pub requests: Option<u64>,
    /// Where chance begins.
    pub seed: u64,
}

impl Load {
    /// As fast as they are answered: 4 KiB requests all over a part of one disk, as many outstanding as in
    /// every benchmark here.
    pub fn all_over(target: Target, writes: bool, bytes: Range<u64>, seconds: u64) -> Self {
        let seed = 1;
        Self {
            disks: vec![target.into()],
            first: 1.0,
            blocks: Blocks::of(BLOCK as u32),
            read_percent: if writes { 0 } else { 100 },
            aim: Pattern::Random.aim(bytes, BLOCK as u32, seed),
            queues: QUEUES,
            depth: DEPTH as u16 / QUEUES,
            threads: 1,
            cores: Vec::new(),
            polling: false,
            rate: None,
            content: Content::Random,
            warm_up: 0,
            seconds,
            requests: None,
            seed,
        }
    }
}
