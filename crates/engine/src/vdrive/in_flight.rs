//! Writes and scrubs of a vdrive that are in progress, and what was last written where: for invariants that builds of the
//! simulation check ([`units::invariant`]), and in others nothing at all.

use super::{MemberState, VdriveIo};
use format::crc32c;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use units::BLOCK;
use units::invariant::{check, is_watched};

/// Writes that one thread has in progress on a vdrive.
#[derive(Default)]
pub(super) struct Flights {
    next: Cell<u64>,
    under_way: RefCell<Vec<Flight>>,
    /// Checksums of blocks as they were last written, as far as that is known.
    written: RefCell<BTreeMap<u64, u32>>,
    /// Blocks that scrubs read, and how many scrubs do.
    looked_at: RefCell<BTreeMap<u64, usize>>,
}

struct Flight {
    number: u64,
    first: u64,
    count: u64,
    /// The members of a mirror that it goes to.
    members: Vec<usize>,
}

/// A write that is in progress, until it is dropped.
pub(super) struct UnderWay<'a>(Option<(&'a Flights, u64)>);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some((flights, number)) = self.0 {
            let mut under_way = flights.under_way.borrow_mut();
            under_way.retain(|flight| flight.number != number);
        }
    }
}

/// Blocks that a scrub reads, until it is dropped.
pub(super) struct Look<'a>(&'a Flights, Vec<u64>);

impl Drop for Look<'_> {
    fn drop(&mut self) {
        let mut looked_at = self.0.looked_at.borrow_mut();
        for block in &self.1 {
            match looked_at.get_mut(block) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(looked_at.remove(block)),
            }
        }
    }
}

impl Flights {
    /// A scrub begins to read these blocks, and repairs those that are wrong.
    pub(super) fn look(&self, blocks: impl Iterator<Item = u64>) -> Look<'_> {
        let blocks: Vec<u64> = match is_watched() {
            true => blocks.collect(),
            false => Vec::new(),
        };
        let mut looked_at = self.looked_at.borrow_mut();
        for block in &blocks {
            *looked_at.entry(*block).or_default() += 1;
        }
        drop(looked_at);
        Look(self, blocks)
    }

    /// A write of these bytes from `first` on begins, to these members of a mirror.
    pub(super) fn begin(&self, first: u64, bytes: &[u8], members: &[usize]) -> UnderWay<'_> {
        if !is_watched() {
            return UnderWay(None);
        }
        let number = self.next.get();
        self.next.set(number + 1);
        let count = (bytes.len() / BLOCK) as u64;
        self.under_way.borrow_mut().push(Flight {
            number,
            first,
            count,
            members: members.to_vec(),
        });
        let blocks = (first..).zip(bytes.chunks_exact(BLOCK));
        let mut written = self.written.borrow_mut();
        written.extend(blocks.map(|(block, bytes)| (block, crc32c(bytes))));
        UnderWay(Some((self, number)))
    }

    /// Blocks from `first` on are written in place.
    pub(super) fn forget(&self, first: u64, count: u64) {
        if is_watched() {
            let mut written = self.written.borrow_mut();
            for block in first..first + count {
                written.remove(&block);
            }
        }
    }
}

impl VdriveIo {
    /// Invariant: what is freed is not being written, or the write would go over what is there next.
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

    /// Invariant: a block that a scrub reads is not released, or the scrub could overwrite its next owner.
    pub fn check_unseen(&self, first: u64, count: u64) {
        check(|| {
            let looked_at = self.flights.looked_at.borrow();
            let (block, _) = looked_at.range(first..first + count).next()?;
            Some(format!(
                "block {block} of vdrive {} is released while a scrub reads it",
                self.id
            ))
        });
    }

    /// Invariant: what a map says is in a block is what was last written there.
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

    /// Invariant: what a block is repaired with is what was last written there, or it is no longer whose it was.
    pub(super) fn check_mended(&self, block: u64, bytes: &[u8]) {
        if is_watched() {
            self.check_content(block, crc32c(bytes));
        }
    }

    /// Invariant: once a member that returns is being resynced, no write in progress leaves it out.
    pub fn check_taken_along(&self, member: usize) {
        check(|| {
            let under_way = self.flights.under_way.borrow();
            let without = |flight: &&Flight| !flight.members.contains(&member);
            let flight = under_way.iter().find(without)?;
            // It may have gone out again.
            if self.member(member).state() != MemberState::Syncing {
                return None;
            }
            Some(format!(
                "member {member} of vdrive {} returns while a write from block {} on leaves it out",
                self.id, flight.first
            ))
        });
    }
}
