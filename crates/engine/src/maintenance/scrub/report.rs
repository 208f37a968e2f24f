//! Findings of a scrub, shared by the shards and their observers.

use block::DriveError;
use format::ScrubTotals;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use units::VdriveId;

/// Faults that are remembered with their place; the others are only counted.
const FAULTS: usize = 1000;

/// Where a shard's part of a scrub continues: the owner of a tree (a volume's number, or one of the
/// shard's own trees after them) and a key in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct ScrubPoint {
    /// Owner of the tree.
    pub owner: u32,
    /// Next key.
    pub key: u32,
}

/// Location of a bad copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultPlace {
    /// On a vdrive; number 0 is the metadata region.
    Part {
        /// The vdrive.
        vdrive: VdriveId,
        /// The part of it.
        part: usize,
        /// The block within the vdrive.
        block: u64,
    },
    /// One of the labels of a drive.
    Label {
        /// The drive's specification.
        drive: String,
    },
}

/// A bad copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScrubFault {
    /// The volume whose data or map it is; `None` for the shard's own.
    pub volume: Option<u32>,
    /// First byte of the volume that it concerns.
    pub offset: u64,
    /// Bytes that it concerns: 4 KiB for data, the covered range for a map page.
    pub length: u64,
    /// Its location.
    pub place: FaultPlace,
    /// The fault.
    pub error: DriveError,
    /// It was repaired.
    pub repaired: bool,
}

/// A scrub of a pool.
#[derive(Default, Debug)]
pub struct Scrub {
    /// Maximum rate in bytes per second, for all shards together.
    pub rate: u64,
    /// Shards whose part has not ended.
    pub working: AtomicU64,
    /// Copies of blocks and pages that were checked.
    pub blocks: AtomicU64,
    /// Bad copies.
    pub errors: AtomicU64,
    /// Of these, repaired copies.
    pub repaired: AtomicU64,
    /// Blocks and pages without an intact copy.
    pub lost: AtomicU64,
    faults: Mutex<Vec<ScrubFault>>,
}

impl Scrub {
    /// One that continues with what was found before.
    pub fn new(rate: u64, known: &ScrubTotals) -> Self {
        Self {
            rate,
            blocks: known.blocks.into(),
            errors: known.errors.into(),
            repaired: known.repaired.into(),
            lost: known.lost.into(),
            ..Self::default()
        }
    }

    /// Records a fault.
    pub fn note(&self, fault: ScrubFault) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        self.repaired
            .fetch_add(u64::from(fault.repaired), Ordering::Relaxed);
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if faults.len() < FAULTS {
            faults.push(fault);
        }
    }

    /// The first faults, with their places.
    pub fn faults(&self) -> Vec<ScrubFault> {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.clone()
    }
}
