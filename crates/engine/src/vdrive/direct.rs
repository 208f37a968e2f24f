//! Reading and writing without waiting, where drives have their data in this process's memory: no buffer of
//! the engine's is in between, and no task. Its latency counts as zero: reading the clock would take longer.

use super::device::PartIo;
use super::{Member, Purpose, VdriveIo};
use block::{Lent, Shown};
use units::{BLOCK, Coming};

/// Most blocks that were found bad and not read again yet.
const SUSPECTS: usize = 64;

impl PartIo {
    fn read_in_place(&self, block: u64, count: usize, see: &mut dyn FnMut(Shown<'_>)) {
        let channel = self.channel.borrow();
        let len = count * BLOCK;
        if channel.queue.read_in_place(self.byte(block), len, see) {
            channel.counter.read(len as u64, 0);
        }
    }

    fn write_in_place(
        &self,
        block: u64,
        count: usize,
        purpose: Purpose,
        fill: &mut dyn FnMut(Lent<'_>),
    ) -> bool {
        let channel = self.channel.borrow();
        let len = count * BLOCK;
        // Timed-out writes that may still reach the drive would not be waited for.
        let was_written =
            !channel.watch.has_late() && channel.queue.write_in_place(self.byte(block), len, fill);
        if was_written {
            channel.counter.wrote(purpose, len as u64, 0);
        }
        was_written
    }
}

impl VdriveIo {
    /// Whether all of its drives have their data in this process's memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.in_memory.get()
    }

    /// Updates that.
    pub(super) fn look_for_memory(&self) {
        let mut parts = self.parts.iter();
        let all = parts.all(|part| part.channel.borrow().queue.is_in_memory());
        self.in_memory.set(all);
    }

    /// Address of a block that will be read in place. The member of a mirror is not known before.
    pub(crate) fn coming(&self, block: u64) -> Coming {
        if self.layout.is_mirror() || self.check_bounds(block, 1).is_err() {
            return Coming::NOTHING;
        }
        let fragment = self.layout.fragment(block, 1);
        let part = &self.parts[fragment.part];
        let channel = part.channel.borrow();
        channel.queue.coming(part.byte(fragment.block), BLOCK)
    }

    /// Shows `see` `count` blocks from `block` on, if they are in one piece of memory. It returns whether they are
    /// intact: others have to be read again by [`VdriveIo::read`], which reads the same member and repairs it.
    pub(crate) fn read_in_place(
        &self,
        block: u64,
        count: usize,
        see: &mut dyn FnMut(Shown<'_>) -> bool,
    ) {
        // A mirror's turn is only taken for a read, since members are read in turn.
        if !self.is_in_memory() || self.check_bounds(block, count).is_err() {
            return;
        }
        let fragment = self.layout.fragment(block, count);
        let member = match self.layout.is_mirror() {
            true => self.choose_member(),
            false => fragment.part,
        };
        let part = &self.parts[member];
        let may_be_read = part.member.is_in() || !self.layout.is_mirror();
        if fragment.count != count || !may_be_read {
            return;
        }
        let mut is_right = true;
        part.read_in_place(fragment.block, count, &mut |shown| is_right = see(shown));
        if !is_right && self.layout.is_mirror() {
            self.suspect(fragment.block, member);
        }
    }

    /// A block was found bad on a member: its next read examines that one.
    fn suspect(&self, block: u64, member: usize) {
        let mut suspects = self.suspects.borrow_mut();
        if suspects.len() == SUSPECTS {
            suspects.pop_front();
        }
        suspects.push_back((block, member));
    }

    /// The member that a read of blocks from `block` on is to examine.
    pub(super) fn member_for(&self, block: u64) -> usize {
        let mut suspects = self.suspects.borrow_mut();
        let known = suspects.iter().position(|(suspect, _)| *suspect == block);
        let suspect = known.and_then(|at| suspects.remove(at));
        let is_in = |member: &usize| self.parts[*member].member.is_in();
        let member = suspect.map(|(_, member)| member).filter(is_in);
        member.unwrap_or_else(|| self.choose_member())
    }

    /// Has `fill` write `count` blocks from `block` on, as [`VdriveIo::write`] does, if that takes no waiting.
    /// False if it does, or failed: a part may then be written.
    pub(crate) fn write_in_place(
        &self,
        block: u64,
        count: usize,
        purpose: Purpose,
        fill: &mut dyn FnMut(Lent<'_>),
    ) -> bool {
        if !self.is_in_memory() || self.check_bounds(block, count).is_err() {
            return false;
        }
        let fragment = self.layout.fragment(block, count);
        if fragment.count != count {
            return false;
        }
        self.flights.forget(block, count as u64);
        if !self.layout.is_mirror() {
            let part = &self.parts[fragment.part];
            return part.write_in_place(fragment.block, count, purpose, fill);
        }
        self.write_members_in_place(fragment.block, count, purpose, fill)
    }

    fn write_members_in_place(
        &self,
        block: u64,
        count: usize,
        purpose: Purpose,
        fill: &mut dyn FnMut(Lent<'_>),
    ) -> bool {
        if self.gate.keeps_out(block, count as u64) {
            return false;
        }
        // The members get the same, whatever a guest does to its memory meanwhile.
        let mut data = self.dma.get(count * BLOCK);
        fill((&mut data[..]).into());
        let members = self.members_where(Member::takes_writes);
        let mut write = |member: &usize| {
            let part = &self.parts[*member];
            part.write_in_place(block, count, purpose, &mut |mut lent| {
                lent.copy_in(&data);
            })
        };
        if !members.iter().all(&mut write) {
            return false;
        }
        self.note_written(block, count as u64, &members);
        members
            .iter()
            .any(|member| self.parts[*member].member.is_in())
    }
}
