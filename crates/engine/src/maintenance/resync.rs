//! Bringing a mirror's member up to date: each shard copies what is in its own groups.

use super::progress::Progress;
use super::upkeep::Kind;
use crate::shard::state::Shard;
use crate::vdrive::{DriveShared, MemberState, Missing, VdriveIo};
use block::{DriveError, DriveQueue, ErrorKind, IoError};
use drives::OpenDrive;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::mutation::{Mutation, is_on};
use units::{BLOCK, VdriveId};

/// Blocks copied at a time, while writes to them wait: 1 MiB.
const RANGE: u64 = 256;

/// A mirror's member: vdrive and part.
pub type MemberPlace = (VdriveId, usize);

impl Shard {
    /// Attaches a part to this drive, or to none.
    ///
    /// # Errors
    /// When this thread cannot reach the drive.
    pub fn attach(
        &self,
        (vdrive, part): MemberPlace,
        (spec, drive): (&str, Option<&Arc<dyn OpenDrive>>),
        shared: &Arc<DriveShared>,
    ) -> Result<(), String> {
        let queue: Rc<dyn DriveQueue> = match drive {
            Some(drive) => drive
                .queue(&self.handle)
                .map_err(|failed| failed.to_string())?,
            None => Rc::new(Missing),
        };
        let vdrive = self.vdrive(vdrive).map_err(|failed| failed.to_string())?;
        vdrive.attach(&self.handle, part, queue, spec, shared);
        Ok(())
    }

    /// Before a member returns: records in its map what it may have lost.
    ///
    /// # Errors
    /// When there is no such vdrive.
    pub fn before_resync(&self, (vdrive, member): MemberPlace) -> Result<(), IoError> {
        self.vdrive(vdrive)?.give_up_written(member);
        Ok(())
    }

    /// After a member has begun to take writes: those that left it out have ended.
    ///
    /// # Errors
    /// When there is no such vdrive.
    pub async fn begin_resync(&self, (vdrive, _): MemberPlace) -> Result<(), IoError> {
        self.vdrive(vdrive)?.settle_writes().await;
        Ok(())
    }

    /// Bytes that this shard has to copy to the member.
    ///
    /// # Errors
    /// When there is no such vdrive.
    pub fn resync_bytes(&self, (vdrive, member): MemberPlace) -> Result<u64, IoError> {
        let io = self.vdrive(vdrive)?;
        io.check_taken_along(member);
        let own: u64 = self
            .own_ranges(vdrive)
            .iter()
            .map(|(_, count)| *count)
            .sum();
        let state = self.state.borrow();
        let groups = state.alloc.groups_of(vdrive);
        let stale = groups
            .iter()
            .filter(|(_, first)| io.member(member).stale.covers(*first));
        let used = stale.flat_map(|(key, _)| state.alloc.used_runs(*key));
        let used: u64 = used.map(|run| run.count as u64).sum();
        Ok((own + used) * BLOCK as u64)
    }

    /// Copies the used blocks of stale regions with these numbers; false when it was cancelled.
    ///
    /// # Errors
    /// When the member has gone out again.
    pub async fn resync(
        &self,
        (vdrive, member): MemberPlace,
        window: RangeInclusive<u64>,
        progress: &Progress,
    ) -> Result<bool, IoError> {
        let io = self.vdrive(vdrive)?;
        if *window.start() == 0 {
            for (first, count) in self.own_ranges(vdrive) {
                for block in (first..first + count).step_by(RANGE as usize) {
                    let count = RANGE.min(first + count - block);
                    if !self.copy_range(&io, member, block, count, progress).await? {
                        return Ok(false);
                    }
                }
            }
        }
        let groups = self.state.borrow().alloc.groups_of(vdrive);
        let region = io.member(member).stale.region_blocks();
        let stale = groups.into_iter().filter(|(_, first)| {
            let last = is_on(Mutation::ResyncRegion) && first / region == *window.end();
            !last && window.contains(&(first / region)) && io.member(member).stale.covers(*first)
        });
        for (key, _) in stale {
            // Blocks used from here on are written to the member anyway.
            let runs = self.state.borrow().alloc.used_runs(key);
            for run in runs {
                let (block, count) = (run.place.block(), run.count as u64);
                if !self.copy_range(&io, member, block, count, progress).await? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    async fn copy_range(
        &self,
        io: &VdriveIo,
        member: usize,
        block: u64,
        count: u64,
        progress: &Progress,
    ) -> Result<bool, IoError> {
        progress
            .rest(&self.handle, || !self.lifecycle.is_closing())
            .await;
        if progress.is_cancelled() || self.lifecycle.is_closing() {
            return Ok(false);
        }
        self.upkeep.wait(Kind::Resync, count * BLOCK as u64).await;
        let copied = io.copy(member, block, count as usize).await;
        copied.map_err(|error| member_failed(&error))?;
        let bytes = count * BLOCK as u64;
        progress.done.fetch_add(bytes, Ordering::Relaxed);
        Ok(true)
    }

    /// Flushes a member.
    ///
    /// # Errors
    /// If it fails, or is no longer being resynced.
    pub async fn flush_member(&self, (vdrive, member): MemberPlace) -> Result<(), IoError> {
        let io = self.vdrive(vdrive)?;
        if io.member(member).state() != MemberState::Syncing {
            return Err(member_failed(&DriveError::Gone));
        }
        io.flush_member(member)
            .await
            .map_err(|error| member_failed(&error))
    }

    /// A shard's space in the metadata region besides groups: its journal and checkpoints.
    fn own_ranges(&self, vdrive: VdriveId) -> Vec<(u64, u64)> {
        if vdrive != VdriveId(0) || is_on(Mutation::ResyncJournal) {
            return Vec::new();
        }
        let checkpoints = self.checkpoint_block(0);
        vec![
            (checkpoints, 2),
            (self.config.journal_base, self.config.journal_blocks),
        ]
    }
}

fn member_failed(error: &DriveError) -> IoError {
    let text = format!("the drive being resynced has failed: {error}");
    IoError::new(ErrorKind::Device, text)
}
