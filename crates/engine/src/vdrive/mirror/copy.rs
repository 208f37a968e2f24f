//! Bringing a mirror's member up to date, range by range, beneath running writes.
//!
//! A member that is being copied to takes all writes. A range is copied while no write to it is in
//! flight: writes that arrive meanwhile wait, and those sent before are waited for. Every
//! block has one thread that writes it, so all of this is local to that thread.

use crate::vdrive::verify::TRIES;
use crate::vdrive::{Member, MemberState, Purpose, VdriveIo};
use block::{DmaBuf, DriveError};
use reactor::Event;
use std::cell::Cell;
use units::BLOCK;
use units::mutation::{Mutation, is_on};

/// Which writes are in flight, and which range they keep out of.
#[derive(Default)]
pub(in crate::vdrive) struct Gate {
    /// Writes are counted in the present one of two phases: when the other one's have ended, all
    /// that began before the last change have.
    phase: Cell<usize>,
    running: [Cell<usize>; 2],
    drained: Event,
    /// First block and number of blocks that are being copied.
    closed: Cell<Option<(u64, u64)>>,
    opened: Event,
}

/// A write that is in flight, until it is dropped.
pub(in crate::vdrive) struct Passage<'a>(&'a Gate, usize);

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        let running = &self.0.running[self.1];
        running.set(running.get() - 1);
        if running.get() == 0 {
            self.0.drained.notify();
        }
    }
}

/// A range that no write enters, until it is dropped.
struct Closed<'a>(&'a Gate);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.closed.set(None);
        self.0.opened.notify();
    }
}

impl Gate {
    /// Waits while the range is being copied.
    pub(in crate::vdrive) async fn enter(&self, block: u64, count: u64) -> Passage<'_> {
        while self.keeps_out(block, count) {
            self.opened.wait().await;
        }
        let phase = self.phase.get();
        self.running[phase].set(self.running[phase].get() + 1);
        Passage(self, phase)
    }

    /// Whether a write would have to wait.
    pub(in crate::vdrive) fn keeps_out(&self, block: u64, count: u64) -> bool {
        let closed = self.closed.get();
        if is_on(Mutation::GateFirst) {
            return closed.is_some_and(|(first, blocks)| block < first + blocks && first < block);
        }
        closed.is_some_and(|(first, blocks)| block < first + blocks && first < block + count)
    }

    /// Waits for every write that has begun before.
    async fn drain(&self) {
        let old = self.phase.get();
        // The other phase has to be over before it can be begun again.
        self.ended(1 - old).await;
        if self.phase.get() == old {
            self.phase.set(1 - old);
        }
        self.ended(old).await;
    }

    async fn ended(&self, phase: usize) {
        loop {
            let drained = self.drained.wait();
            if self.running[phase].get() == 0 {
                return;
            }
            drained.await;
        }
    }

    async fn close(&self, block: u64, count: u64) -> Closed<'_> {
        while self.closed.get().is_some() {
            self.opened.wait().await;
        }
        self.closed.set(Some((block, count)));
        let closed = Closed(self);
        if !is_on(Mutation::GateUndrained) {
            self.drain().await;
        }
        closed
    }
}

impl VdriveIo {
    /// A part, as all threads know it.
    pub fn member(&self, member: usize) -> &Member {
        &self.parts[member].member
    }

    /// A member that is out may lack what this thread has written and not flushed.
    pub fn give_up_written(&self, member: usize) {
        let written = self.written.borrow();
        if self.parts[member].member.stale.note_all(&written) {
            self.members.want();
        }
    }

    /// Waits for every write that this thread has begun: those after it know of a member's return.
    pub async fn settle_writes(&self) {
        if !is_on(Mutation::ResyncUnsettled) {
            self.gate.drain().await;
        }
    }

    /// Copies blocks to a member that is being resynced. Blocks that no other member can read, several times in a row,
    /// are left as they are: nothing better is to be had.
    ///
    /// # Errors
    /// When the member is not being resynced any longer, or fails: it is out then.
    pub async fn copy(&self, member: usize, block: u64, count: usize) -> Result<(), DriveError> {
        let _closed = self.gate.close(block, count as u64).await;
        if self.parts[member].member.state() != MemberState::Syncing {
            return Err(DriveError::Gone);
        }
        let sources = self.members_where(Member::is_in);
        let first = *sources.first().ok_or(DriveError::Gone)?;
        let read = self.parts[first].read(block, self.dma.get(count * BLOCK));
        if let Ok(data) = read.await {
            return self.put(member, block, data).await;
        }
        for block in block..block + count as u64 {
            for source in (0..TRIES).flat_map(|_| &sources) {
                let read = self.parts[*source].read(block, self.dma.get(BLOCK));
                if let Ok(data) = read.await {
                    self.put(member, block, data).await?;
                    break;
                }
            }
        }
        Ok(())
    }

    async fn put(&self, member: usize, block: u64, data: DmaBuf) -> Result<(), DriveError> {
        let written = self.parts[member].write(block, data, Purpose::Upkeep).await;
        written.inspect_err(|error| {
            let why = format!("the resync failed: {error}");
            self.members.take_out((self.id.0, member), &why, false);
        })
    }

    /// Makes what a member has durable.
    ///
    /// # Errors
    /// When it fails: it is out then.
    pub async fn flush_member(&self, member: usize) -> Result<(), DriveError> {
        let flushed = self.parts[member].flush().await;
        flushed.inspect_err(|error| {
            let why = format!("a flush failed: {error}");
            self.members.flush_failed((self.id.0, member), &why);
        })
    }
}
