//! The scrub of a shard's checkpoint and journal. Nothing of them is repaired in place: a new
//! checkpoint takes the place of the one and makes the other unneeded.

use super::report::{FaultPlace, ScrubFault};
use super::walk::Part;
use crate::shard::state::{Shard, drive_error};
use block::{DriveError, IoError};
use format::Checkpoint;
use units::{BLOCK, VdriveId};

/// Journal pages read together.
const BATCH: u64 = 64;

impl Shard {
    pub(super) async fn scrub_records(&self, part: &Part<'_>) -> Result<(), IoError> {
        let (generation, journal) = {
            let state = self.state.borrow();
            (state.root.generation(), state.journal.bounds())
        };
        let record = self.checkpoint_block(generation);
        let is_checkpoint = |_: usize, bytes: &[u8]| {
            Checkpoint::decode(bytes, self.config.pool, self.config.shard)
                .is_some_and(|record| record.generation == generation)
        };
        let newest = |_: usize| self.state.borrow().root.generation() == generation;
        let mut wrong = self
            .look_at((record, 1), &is_checkpoint, &newest, part)
            .await?;
        let mut next = journal.from;
        while next < journal.durable {
            let at = next % journal.ring;
            let count = BATCH.min(journal.ring - at).min(journal.durable - next);
            let is_page = |index: usize, bytes: &[u8]| {
                let wanted = (journal.epoch, next + index as u64);
                self.open_journal_page(bytes, wanted)
                    .is_ok_and(|page| page.is_some())
            };
            // A checkpoint since then has made it unneeded.
            let from = || self.state.borrow().journal.bounds().from;
            let needed = |index: usize| from() <= next + index as u64;
            wrong |= self
                .look_at((journal.base + at, count as usize), &is_page, &needed, part)
                .await?;
            next += count;
        }
        if wrong {
            // One into each of the two places.
            self.checkpoint().await?;
            self.checkpoint().await?;
        }
        Ok(())
    }

    /// Reads every copy of blocks of the metadata region; true if a valid one is bad.
    async fn look_at(
        &self,
        (block, count): (u64, usize),
        check: crate::vdrive::Check<'_>,
        counts: &dyn Fn(usize) -> bool,
        part: &Part<'_>,
    ) -> Result<bool, IoError> {
        let meta = self.vdrive(VdriveId(0))?;
        let mut wrong = Vec::new();
        let mut bytes = 0;
        for member in 0..meta.parts_count() {
            let read = meta.bad_on(member, block, count, check).await;
            let Some(bad) = read.map_err(|error| drive_error(error, "the scrub has stopped"))?
            else {
                continue;
            };
            bytes += (count * BLOCK) as u64;
            wrong.extend(
                bad.into_iter()
                    .filter(|index| counts(*index))
                    .map(|index| (member, index)),
            );
        }
        part.count(bytes, bytes / BLOCK as u64);
        for (member, index) in &wrong {
            part.scrub.note(ScrubFault {
                volume: None,
                offset: 0,
                length: 0,
                place: FaultPlace::Part {
                    vdrive: VdriveId(0),
                    part: *member,
                    block: block + *index as u64,
                },
                error: DriveError::Checksum,
                repaired: true,
            });
        }
        Ok(!wrong.is_empty())
    }
}
