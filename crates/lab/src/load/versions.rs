//! Versions of each unit of the disk that a read may return.
//!
//! Writes to the same unit that overlap in time may be carried out in any order. So a unit keeps the newest version
//! that was sent, and the oldest that can be there: that rises, when a write of a group of overlapping ones is
//! answered, to the first of the group, since all before it were answered before the group began.

use crate::content::Content;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Units whose neighbours are under different locks.
const STRIPES: u64 = 64;

#[derive(Clone, Copy, Default, Debug)]
struct Unit {
    /// The newest version that was sent. 0: nothing was.
    sent: u32,
    /// The oldest version that may be there.
    oldest: u32,
    /// The first of the writes that overlap.
    group: u32,
    /// Writes that are not answered.
    outstanding: u32,
}

/// The versions of a range's units.
pub struct Versions {
    stripes: Vec<Mutex<Vec<Unit>>>,
    begin: u64,
    /// Bytes of a unit.
    pub unit: u32,
}

impl Versions {
    /// Of a range of bytes that begins and ends with a unit.
    pub fn new(bytes: Range<u64>, unit: u32) -> Self {
        let units = (bytes.end - bytes.start) / u64::from(unit);
        let each = units.div_ceil(STRIPES) as usize;
        let stripe = |_| Mutex::new(vec![Unit::default(); each]);
        Self {
            stripes: (0..STRIPES).map(stripe).collect(),
            begin: bytes.start / u64::from(unit),
            unit,
        }
    }

    fn at(&self, number: u64) -> (MutexGuard<'_, Vec<Unit>>, usize) {
        let number = number - self.begin;
        let stripe = &self.stripes[(number % STRIPES) as usize];
        // Every change is complete before it could panic.
        let units = stripe.lock().unwrap_or_else(PoisonError::into_inner);
        (units, (number / STRIPES) as usize)
    }

    /// A write is about to be sent: its version.
    pub fn sent(&self, number: u64) -> u32 {
        let (mut units, index) = self.at(number);
        let unit = &mut units[index];
        unit.sent += 1;
        if unit.outstanding == 0 {
            unit.group = unit.sent;
        }
        unit.outstanding += 1;
        unit.sent
    }

    /// A write was answered.
    pub fn answered(&self, number: u64) {
        let (mut units, index) = self.at(number);
        let unit = &mut units[index];
        unit.outstanding -= 1;
        unit.oldest = unit.group;
    }

    /// The oldest version that a read may give that is sent now.
    pub fn oldest(&self, number: u64) -> u32 {
        let (units, index) = self.at(number);
        units[index].oldest
    }

    /// Checks what a read gave that was just answered and was sent when `oldest` was the oldest version.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn check(&self, number: u64, oldest: u32, found: Content) -> Result<(), String> {
        let newest = {
            let (units, index) = self.at(number);
            units[index].sent
        };
        // What was never written is zeroes.
        let version = match found {
            Content::Data(version) => version,
            Content::Zero => 0,
        };
        match (oldest..=newest).contains(&version) {
            true => Ok(()),
            false => Err(format!(
                "holds version {version} (0: zeroes), which is none of {oldest} to {newest}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_unit() -> (Versions, u64) {
        (Versions::new(8192..8192 + 64 * 4096, 4096), 5)
    }

    fn allowed(versions: &Versions, number: u64, oldest: u32) -> Vec<u32> {
        let ok = |version: &u32| {
            let found = Content::Data(*version);
            versions.check(number, oldest, found).is_ok()
        };
        (0..10).filter(ok).collect()
    }

    #[test]
    fn one_write_after_the_other_leaves_one_version() {
        let (versions, at) = one_unit();
        for version in 1..4 {
            assert_eq!(versions.sent(at), version);
            assert_eq!(
                allowed(&versions, at, versions.oldest(at)),
                [version - 1, version]
            );
            versions.answered(at);
            assert_eq!(allowed(&versions, at, versions.oldest(at)), [version]);
        }
        assert_eq!(versions.oldest(at + 1), 0, "its neighbour was not written");
        let zero = versions.check(at, 3, Content::Zero).expect_err("zeroes");
        assert!(zero.contains("zeroes"), "{zero}");
    }

    #[test]
    fn writes_that_overlap_may_come_about_in_any_order() {
        let (versions, at) = one_unit();
        versions.sent(at);
        versions.answered(at);
        versions.sent(at);
        versions.sent(at);
        assert_eq!(allowed(&versions, at, versions.oldest(at)), [1, 2, 3]);
        versions.answered(at);
        assert_eq!(allowed(&versions, at, versions.oldest(at)), [2, 3]);
        versions.answered(at);
        assert_eq!(allowed(&versions, at, versions.oldest(at)), [2, 3]);
        versions.sent(at);
        versions.answered(at);
        assert_eq!(allowed(&versions, at, versions.oldest(at)), [4]);
    }

    #[test]
    fn a_read_may_give_what_was_there_when_it_was_sent() {
        let (versions, at) = one_unit();
        versions.sent(at);
        versions.answered(at);
        let oldest = versions.oldest(at);
        versions.sent(at);
        versions.answered(at);
        assert_eq!(allowed(&versions, at, oldest), [1, 2]);
    }
}
