//! Writes of a vdrive that are under way, and what was last written where: for invariants that builds of the
//! simulation check ([`units::invariant`]), and in others nothing at all.

use super::{LegState, VdriveIo};
use format::crc32c;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use units::BLOCK;
use units::invariant::{IS_WATCHED, check};

/// Writes that one thread has under way on a vdrive.
#[derive(Default)]
pub(super) struct Flights {
    next: Cell<u64>,
    under_way: RefCell<Vec<Flight>>,
    /// Checksums of blocks as they were last written, as far as that is known.
    written: RefCell<BTreeMap<u64, u32>>,
}

struct Flight {
    number: u64,
    first: u64,
    count: u64,
    /// The legs of a mirror that it goes to.
    legs: Vec<usize>,
}

/// A write that is under way, until it is dropped.
pub(super) struct UnderWay<'a>(Option<(&'a Flights, u64)>);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some((flights, number)) = self.0 {
            let mut under_way = flights.under_way.borrow_mut();
            under_way.retain(|flight| flight.number != number);
        }
    }
}

impl Flights {
    /// A write of these bytes from `first` on begins, to these legs of a mirror.
    pub(super) fn begin(&self, first: u64, bytes: &[u8], legs: &[usize]) -> UnderWay<'_> {
        if !IS_WATCHED {
            return UnderWay(None);
        }
        let number = self.next.get();
        self.next.set(number + 1);
        let count = (bytes.len() / BLOCK) as u64;
        self.under_way.borrow_mut().push(Flight {
            number,
            first,
            count,
            legs: legs.to_vec(),
        });
        let blocks = (first..).zip(bytes.chunks_exact(BLOCK));
        let mut written = self.written.borrow_mut();
        written.extend(blocks.map(|(block, bytes)| (block, crc32c(bytes))));
        UnderWay(Some((self, number)))
    }

    /// Blocks from `first` on are written in place.
    pub(super) fn forget(&self, first: u64, count: u64) {
        if IS_WATCHED {
            let mut written = self.written.borrow_mut();
            for block in first..first + count {
                written.remove(&block);
            }
        }
    }
}

impl VdriveIo {
    /// Invariant: what is freed is not being written, or the write would go over what lies there next.
    pub fn check_unwritten(&self, first: u64, count: u64) {
        check(|| {
            let under_way = self.flights.under_way.borrow();
            let meets = |flight: &&Flight| {
                flight.first < first + count && first < flight.first + flight.count
            };
            let flight = under_way.iter().find(meets)?;
            Some(format!(
                "{count} blocks from {first} of vdrive {} on are freed while blocks from {} on are written",
                self.id, flight.first
            ))
        });
    }

    /// Invariant: what a map says lies in a block is what was last written there.
    pub fn check_content(&self, block: u64, crc: u32) {
        check(|| {
            let written = self.flights.written.borrow();
            let other = written.get(&block).filter(|known| **known != crc)?;
            Some(format!(
                "a map expects {crc:08x} in block {block} of vdrive {}, where {other:08x} was written",
                self.id
            ))
        });
    }

    /// Invariant: once a leg that returns is being brought up to date, no write under way leaves it out.
    pub fn check_taken_along(&self, leg: usize) {
        check(|| {
            let under_way = self.flights.under_way.borrow();
            let without = |flight: &&Flight| !flight.legs.contains(&leg);
            let flight = under_way.iter().find(without)?;
            // It may have gone out again.
            if self.leg(leg).state() != LegState::Syncing {
                return None;
            }
            Some(format!(
                "leg {leg} of vdrive {} returns while a write from block {} on leaves it out",
                self.id, flight.first
            ))
        });
    }
}
