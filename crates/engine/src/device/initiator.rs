//! Initiators: hosts that front ends know by name, some of which a volume bypasses (docs/placement.md).
//!
//! Responsible for: one flag for each initiator that has a volume open, which is examined with every
//! operation and changed with the volume's settings; counting what is bypassed. Leaves out: the treatment of
//! such operations, which is the shards'.

use crate::control::types::IoCounters;
use block::OpKind;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use units::BLOCK;

/// The initiators of one volume and its snapshots.
#[derive(Default)]
pub struct Initiators {
    known: Mutex<Known>,
    reads: AtomicU64,
    writes: AtomicU64,
    blocks: AtomicU64,
}

#[derive(Default)]
struct Known {
    /// Names of bypassed initiators.
    bypassed: Vec<String>,
    /// Flags of initiators that have the volume open.
    open: BTreeMap<String, Weak<AtomicBool>>,
}

impl Initiators {
    /// From now on the volume bypasses these, whether or not they have it open.
    pub fn bypass(&self, names: &[String]) {
        let mut known = self.known();
        if known.bypassed == names {
            return;
        }
        known.bypassed = names.to_vec();
        for (name, flag) in &known.open {
            if let Some(flag) = flag.upgrade() {
                flag.store(names.contains(name), Ordering::Release);
            }
        }
    }

    /// Adds counts of bypassed operations since the pool was opened.
    pub fn add_to(&self, sum: &mut IoCounters) {
        sum.bypassed_reads += self.reads.load(Ordering::Relaxed);
        sum.bypassed_writes += self.writes.load(Ordering::Relaxed);
        sum.bypassed_blocks += self.blocks.load(Ordering::Relaxed);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The flag of one that opens the volume, which all of its sessions share.
    fn flag(&self, name: &str) -> Arc<AtomicBool> {
        let mut known = self.known();
        if let Some(flag) = known.open.get(name).and_then(Weak::upgrade) {
            return flag;
        }
        known.open.retain(|_, flag| flag.strong_count() > 0);
        let is_bypassed = known.bypassed.iter().any(|bypassed| bypassed == name);
        let flag = Arc::new(AtomicBool::new(is_bypassed));
        known.open.insert(name.to_owned(), Arc::downgrade(&flag));
        flag
    }

    fn count(&self, kind: OpKind, offset: u64, len: u64) {
        let ops = match kind {
            OpKind::Read => &self.reads,
            OpKind::Write => &self.writes,
            _ => return,
        };
        ops.fetch_add(1, Ordering::Relaxed);
        let block = BLOCK as u64;
        let blocks = (offset + len).div_ceil(block) - offset / block;
        self.blocks.fetch_add(blocks, Ordering::Relaxed);
    }
}

/// An initiator that has a volume open.
pub struct Initiator {
    all: Arc<Initiators>,
    is_bypassed: Arc<AtomicBool>,
}

impl Initiator {
    /// The one of this name, among `all` of its volume.
    pub fn new(all: Arc<Initiators>, name: &str) -> Self {
        let is_bypassed = all.flag(name);
        Self { all, is_bypassed }
    }

    pub(super) fn is_bypassed(&self) -> bool {
        self.is_bypassed.load(Ordering::Acquire)
    }

    /// Counts an operation that was bypassed.
    pub(super) fn count(&self, kind: OpKind, offset: u64, len: u64) {
        self.all.count(kind, offset, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_flag_follows_the_names_for_as_long_as_somebody_has_it() {
        let initiators = Initiators::default();
        let is_set = |flag: &Arc<AtomicBool>| flag.load(Ordering::Acquire);
        initiators.bypass(&names(&["backup"]));
        let (backup, other) = (initiators.flag("backup"), initiators.flag("other"));
        assert_eq!((is_set(&backup), is_set(&other)), (true, false));
        assert!(Arc::ptr_eq(&backup, &initiators.flag("backup")));
        initiators.bypass(&names(&["Backup", "other"]));
        assert_eq!((is_set(&backup), is_set(&other)), (false, true));
        drop(other);
        initiators.bypass(&[]);
        assert!(!is_set(&initiators.flag("other")));
        drop(backup);
        initiators.flag("third");
        // Flags without an open session are dropped.
        assert!(initiators.known().open.keys().eq(["third"]));
    }

    #[test]
    fn blocks_count_whole_where_a_part_is_asked_for() {
        let initiators = Initiators::default();
        initiators.count(OpKind::Read, 512, 4096);
        initiators.count(OpKind::Write, 8192, 512);
        initiators.count(OpKind::Flush, 0, 0);
        let mut sum = IoCounters::default();
        initiators.add_to(&mut sum);
        assert_eq!((sum.bypassed_reads, sum.bypassed_writes), (1, 1));
        assert_eq!(sum.bypassed_blocks, 3);
    }
}
