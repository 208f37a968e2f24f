//! The vdrives that a shard reads and writes, by number.
//!
//! Owns only the table: a vdrive is added when the pool gets one, and removed once it is empty. The table is borrowed
//! within each method and never while anything is awaited or a vdrive is read or written, so it may change at any await:
//! callers that need a vdrive for longer hold it by [`Devices::get`]. Any part may call it.
//!
//! The invariants that builds of the simulation check of places (`check_*`) are nothing in other builds.

use super::VdriveIo;
use block::{ErrorKind, IoError};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use units::invariant::is_watched;
use units::{Place, VdriveId};

/// Vdrives by number, of which there are few and small ones: each block that is read or written asks for one.
pub(crate) struct Devices(RefCell<Vec<Option<Rc<VdriveIo>>>>);

fn find(vdrives: &[Option<Rc<VdriveIo>>], id: VdriveId) -> Option<&Rc<VdriveIo>> {
    vdrives.get(usize::from(id.0))?.as_ref()
}

#[cold]
fn missing(id: VdriveId) -> IoError {
    IoError::new(ErrorKind::Device, format!("the pool has no vdrive {id}"))
}

impl Devices {
    /// The vdrives that a pool is opened with.
    pub fn new(vdrives: BTreeMap<VdriveId, Rc<VdriveIo>>) -> Self {
        let devices = Self(RefCell::default());
        vdrives
            .into_values()
            .for_each(|vdrive| devices.insert(vdrive));
        devices
    }

    /// A vdrive of the pool.
    ///
    /// # Errors
    /// `Device` when it has none with this number.
    #[inline]
    pub fn get(&self, id: VdriveId) -> Result<Rc<VdriveIo>, IoError> {
        let vdrives = self.0.borrow();
        find(&vdrives, id).cloned().ok_or_else(|| missing(id))
    }

    /// All of these, or `None` if the pool lacks one.
    pub fn several(&self, ids: impl Iterator<Item = VdriveId>) -> Option<Vec<Rc<VdriveIo>>> {
        let vdrives = self.0.borrow();
        ids.map(|id| find(&vdrives, id).cloned()).collect()
    }

    /// Adds a vdrive.
    pub fn insert(&self, vdrive: Rc<VdriveIo>) {
        let (mut vdrives, index) = (self.0.borrow_mut(), usize::from(vdrive.id.0));
        if vdrives.len() <= index {
            vdrives.resize(index + 1, None);
        }
        vdrives[index] = Some(vdrive);
    }

    /// Removes a vdrive.
    pub fn remove(&self, id: VdriveId) {
        if let Some(vdrive) = self.0.borrow_mut().get_mut(usize::from(id.0)) {
            *vdrive = None;
        }
    }

    /// Iterates over the vdrives, in the order of their numbers.
    pub fn for_each(&self, see: impl FnMut(&Rc<VdriveIo>)) {
        self.0.borrow().iter().flatten().for_each(see);
    }

    /// Whether an early flush of one of these is due, `since_ns` after the last commit.
    pub fn is_flush_due<'a>(
        &self,
        mut ids: impl Iterator<Item = &'a VdriveId>,
        since_ns: u64,
    ) -> bool {
        let vdrives = self.0.borrow();
        ids.any(|id| find(&vdrives, *id).is_some_and(|vdrive| vdrive.flush_is_due(since_ns)))
    }

    /// Invariant: freed space is not being written.
    pub fn check_unwritten(&self, place: Place, count: usize) {
        if is_watched()
            && let Some(vdrive) = find(&self.0.borrow(), place.vdrive())
        {
            vdrive.check_unwritten(place.block(), count as u64);
        }
    }

    /// Invariant: released space is not being read by a scrub.
    pub fn check_unseen(&self, released: impl Iterator<Item = (Place, u32)>) {
        if !is_watched() {
            return;
        }
        let vdrives = self.0.borrow();
        for (place, count) in released {
            if let Some(vdrive) = find(&vdrives, place.vdrive()) {
                vdrive.check_unseen(place.block(), u64::from(count));
            }
        }
    }

    /// Invariant: what a map says is at a place was written there.
    pub fn check_content(&self, place: Place, crc: u32) {
        if is_watched()
            && let Some(vdrive) = find(&self.0.borrow(), place.vdrive())
        {
            vdrive.check_content(place.block(), crc);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::shard::probe::{Probe, run};
    use units::VdriveId;

    #[test]
    fn vdrives_are_found_until_they_leave() {
        run(|handle| async move {
            let probe = Probe::open(&handle, "devices").await;
            let devices = &probe.shard.devices;
            let mut ids = Vec::new();
            devices.for_each(|vdrive| ids.push(vdrive.id));
            assert_eq!(ids, [0, 1, 2].map(VdriveId));
            let slow = devices.get(VdriveId(2)).unwrap();
            devices.remove(VdriveId(2));
            assert!(devices.get(VdriveId(2)).is_err());
            assert!(devices.several(ids.iter().copied()).is_none());
            devices.insert(slow);
            let all = devices.several(ids.iter().copied()).unwrap();
            assert_eq!(all.len(), 3);
        });
    }
}
