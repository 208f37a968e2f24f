//! Reads of a vdrive with their latencies, by which a vdrive is chosen where two have a block.

use super::device::{Check, TURNS, VdriveIo};
use super::latency::{Begun, Choice, choose};
use block::{DmaBuf, DriveError};
use qos::Due;
use reactor::{Permit, Urgency};
use std::ops::Range;
use units::mutation::{Mutation, is_on};

/// A read in progress; one that is dropped counts no more.
struct Timed<'a> {
    vdrive: &'a VdriveIo,
    begun: Option<Begun>,
}

impl<'a> Timed<'a> {
    fn begin(vdrive: &'a VdriveIo, blocks: usize) -> Self {
        let begun = vdrive.cost.borrow_mut().begin(vdrive.now_ns(), blocks);
        Self {
            vdrive,
            begun: Some(begun),
        }
    }

    fn end(mut self, right: bool) {
        if let Some(begun) = self.begun.take() {
            let now = self.vdrive.now_ns();
            self.vdrive.cost.borrow_mut().end(now, begun, right);
        }
    }
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        if let Some(begun) = self.begun.take() {
            self.vdrive.cost.borrow_mut().forget(begun);
        }
    }
}

/// A read's turn at a vdrive; the next one has it when this one was read, or dropped.
pub(crate) struct Turn<'a> {
    timed: Timed<'a>,
    permit: Permit,
}

impl Turn<'_> {
    /// As [`VdriveIo::read`].
    ///
    /// # Errors
    /// As [`VdriveIo::read`].
    pub(crate) async fn read(
        self,
        block: u64,
        count: usize,
        check: Check<'_>,
    ) -> Result<DmaBuf, DriveError> {
        let vdrive = self.timed.vdrive;
        vdrive.check_bounds(block, count)?;
        let result = vdrive.read_fragments(block, count, check).await;
        drop(self.permit);
        self.timed.end(result.is_ok());
        result
    }
}

impl VdriveIo {
    /// Reads `count` blocks from `block` on and checks each.
    ///
    /// A mirror's member that fails or gives a wrong block is repaired from one that gives the right
    /// one; [`DriveError::Checksum`] when none does.
    ///
    /// # Errors
    /// When a block cannot be had from any drive that holds it.
    pub async fn read(
        &self,
        block: u64,
        count: usize,
        check: Check<'_>,
    ) -> Result<DmaBuf, DriveError> {
        self.check_bounds(block, count)?;
        let timed = Timed::begin(self, count);
        let result = self.read_fragments(block, count, check).await;
        timed.end(result.is_ok());
        result
    }

    /// A turn for a read of about `count` blocks from `block` on. Turns go in the order of addresses, so that a disk's head
    /// goes up and down once, however many wait. A drive sorts no more than it has.
    /// Requests that could miss their deadline (`due`) go first.
    pub(crate) async fn turn(&self, block: u64, count: usize, due: Due) -> Turn<'_> {
        let urgency = self.urgency(due);
        let timed = Timed::begin(self, count);
        let permit = self.turns.get_at(block, urgency).await;
        Turn { timed, permit }
    }

    /// From when on a read that is due so goes before others: when what the drives have then would just let it end in time.
    pub(crate) fn urgency(&self, due: Due) -> Option<Urgency> {
        if is_on(Mutation::TurnUndue) {
            return None;
        }
        let takes_ns = self.cost.borrow().in_turn_ns(TURNS as u64);
        Some(Urgency {
            level: due.level()?,
            from_ns: due.deadline_ns()?.saturating_sub(takes_ns),
        })
    }

    /// Raises the urgency of reads that wait for their turns at these blocks.
    pub(crate) fn hurry(&self, blocks: Range<u64>, urgency: Urgency) {
        self.turns.hurry(blocks, urgency);
    }

    /// Reads that have their turn, on this thread.
    pub(crate) fn waited_for(&self) -> usize {
        self.turns.taken()
    }

    /// As [`VdriveIo::read`], in its turn.
    ///
    /// # Errors
    /// As [`VdriveIo::read`].
    pub(crate) async fn read_in_turn(
        &self,
        block: u64,
        count: usize,
        due: Due,
        check: Check<'_>,
    ) -> Result<DmaBuf, DriveError> {
        self.check_bounds(block, count)?;
        self.turn(block, count, due)
            .await
            .read(block, count, check)
            .await
    }

    /// Chooses between this vdrive and an `other` one that has the same blocks.
    pub(crate) fn choose(&self, other: &Self, count: usize) -> Choice {
        let (mut own, mut others) = (self.cost.borrow_mut(), other.cost.borrow_mut());
        choose(&mut own, &mut others, self.now_ns(), count)
    }

    /// The statistics are of a drive that was replaced.
    pub(super) fn forget_cost(&self) {
        self.cost.borrow_mut().renew();
    }
}
