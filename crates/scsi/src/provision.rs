//! WRITE SAME (SBC-3 5.46), UNMAP (5.28) and GET LBA STATUS (5.6).

use crate::blocks::Blocks;
use crate::execute::{Answer, Call};
use crate::fields::{put, u16_at, u32_at, u64_at};
use crate::io::Step;
use crate::sense::Sense;
use crate::transfer::{PIECE, TOGETHER, aligned, pieces};
use block::{AllocationState, IoBuf, OpKind, StatusExtent};
use std::ops::Range;

/// Most blocks of one WRITE SAME or UNMAP, and descriptors of one UNMAP (VPD B0h).
pub(crate) const SAME_BLOCKS_MAX: u64 = 65_535;
pub(crate) const UNMAP_BLOCKS_MAX: u64 = 1 << 20;
pub(crate) const UNMAP_DESCRIPTORS_MAX: usize = 256;
/// Descriptors of one GET LBA STATUS, and bytes of the volume that it examines.
const STATUS_DESCRIPTORS_MAX: usize = 256;
const STATUS_MAX: u64 = 16 << 30;
/// Zeroes that take space are written in pieces of this many bytes.
const PROVISIONED: u64 = 32 << 20;

impl Call<'_> {
    pub(crate) async fn write_same(self) -> Answer {
        let mut blocks = Blocks::parse(self.cdb);
        let is_long = self.cdb[0] == 0x93;
        let (unmap, anchor) = (self.cdb[1] & 0x08 != 0, self.cdb[1] & 0x10 != 0);
        let without_data = is_long && self.cdb[1] & 0x01 != 0;
        if self.cdb[1] >> 5 != 0 || anchor {
            return Err(Sense::INVALID_FIELD_IN_CDB.into());
        }
        if blocks.count == 0 {
            // To the end (WSNZ is not set).
            let all = self.nexus.unit.size() / self.nexus.block_size();
            blocks.count = all.saturating_sub(blocks.lba);
        }
        let range = self.nexus.range(blocks)?;
        if blocks.count > SAME_BLOCKS_MAX {
            return Err(Sense::INVALID_FIELD_IN_CDB.into());
        }
        let size = self.nexus.block_size();
        let wanted = if without_data { 0 } else { size };
        if self.data.len() as u64 != wanted {
            return Err(Sense::INVALID_FIELD_IN_CDB.into());
        }
        let block = self.data(wanted)?;
        let _held = self.hold(range.clone(), false).await;
        if block.iter().all(|byte| *byte == 0) {
            self.zero(range, unmap).await?;
        } else {
            self.fill(range, block, false).await?;
        }
        Ok(self.took(wanted))
    }

    /// Zeroes, which take no space with `unmap`, and as much as data without: then a later write finds room.
    async fn zero(&self, range: Range<u64>, unmap: bool) -> Result<(), Sense> {
        for piece in aligned(range, if unmap { TOGETHER } else { PROVISIONED }) {
            self.goes_on()?;
            let mut step = Step::new(OpKind::WriteZeroes, piece.start, piece.end - piece.start);
            step.flags.no_unmap = !unmap;
            self.run(step, IoBuf::empty()).await?;
        }
        Ok(())
    }

    /// Writes a pattern again and again over a range, under a lock that the caller holds.
    pub(crate) async fn fill(
        &self,
        range: Range<u64>,
        pattern: &[u8],
        fua: bool,
    ) -> Result<(), Sense> {
        for piece in pieces(range) {
            self.goes_on()?;
            let len = (piece.end - piece.start) as usize;
            let bytes: Vec<u8> = pattern.iter().copied().cycle().take(len).collect();
            self.put(piece.start, bytes.into_boxed_slice(), fua).await?;
        }
        Ok(())
    }

    /// The ranges of an UNMAP, all checked before the first of them goes (SBC-3 5.28.2).
    fn unmapped(&self) -> Result<Vec<Range<u64>>, Sense> {
        let list = self.data.as_bytes().unwrap_or(&[]);
        let announced = usize::from(u16_at(self.cdb, 7));
        let list = &list[..list.len().min(announced)];
        if list.len() < 8 {
            return Err(Sense::PARAMETER_LIST_LENGTH);
        }
        let len = usize::from(u16_at(list, 2)).min(list.len() - 8);
        let descriptors = list[8..8 + len].chunks_exact(16);
        if descriptors.len() > UNMAP_DESCRIPTORS_MAX {
            return Err(Sense::INVALID_FIELD_IN_LIST);
        }
        let mut total = 0;
        let mut ranges = Vec::new();
        for descriptor in descriptors {
            let blocks = Blocks {
                lba: u64_at(descriptor, 0),
                count: u64::from(u32_at(descriptor, 8)),
            };
            total += blocks.count;
            if total > UNMAP_BLOCKS_MAX {
                return Err(Sense::INVALID_FIELD_IN_LIST);
            }
            // None at all may be named just past the end.
            match blocks.count {
                0 if blocks.lba <= self.nexus.unit.size() / self.nexus.block_size() => {}
                _ => ranges.push(self.nexus.range(blocks)?),
            }
        }
        Ok(ranges)
    }

    pub(crate) async fn unmap(self) -> Answer {
        let anchor = self.cdb[1] & 0x01 != 0;
        if anchor {
            return Err(Sense::INVALID_FIELD_IN_CDB.into());
        }
        let announced = u64::from(u16_at(self.cdb, 7));
        if announced == 0 {
            return Ok(self.empty());
        }
        for range in self.unmapped()? {
            let _held = self.hold(range.clone(), false).await;
            for piece in aligned(range, TOGETHER) {
                self.goes_on()?;
                let step = Step::new(OpKind::Discard, piece.start, piece.end - piece.start);
                self.run(step, IoBuf::empty()).await?;
            }
        }
        Ok(self.took(announced))
    }

    pub(crate) async fn lba_status(self) -> Answer {
        let allocation = u32_at(self.cdb, 10) as usize;
        let lba = u64_at(self.cdb, 2);
        let size = self.nexus.block_size();
        let range = self.nexus.range(Blocks { lba, count: 1 })?;
        let end = self.nexus.unit.size() / size * size;
        // A shorter list is allowed: the host continues from its end (SBC-3 5.6.2).
        let end = end.min(range.start + STATUS_MAX);
        let most = (allocation.saturating_sub(8) / 16).clamp(1, STATUS_DESCRIPTORS_MAX);
        let mut runs: Vec<StatusExtent> = Vec::new();
        let mut at = range.start;
        while at < end && runs.len() <= most {
            self.goes_on()?;
            let piece = end.min((at / TOGETHER + 1) * TOGETHER) - at;
            let (_, extents) = self
                .run(Step::new(OpKind::Status, at, piece), IoBuf::empty())
                .await?;
            let told = add_runs(&mut runs, &extents, piece);
            if told == 0 {
                // Nothing is known of it, which is as good as data.
                let state = AllocationState::Data;
                add_runs(&mut runs, &[StatusExtent { len: piece, state }], piece);
                at += piece;
            }
            at += told;
        }
        runs.truncate(most);
        let mut data = vec![0; 8];
        put(&mut data, 0, &(4 + 16 * runs.len() as u32).to_be_bytes());
        let mut at = range.start;
        for run in runs {
            // Runs begin and end at blocks, and none is longer than STATUS_MAX: the next begins where it ends.
            let count = (run.len / size) as u32;
            data.extend((at / size).to_be_bytes());
            data.extend(count.to_be_bytes());
            data.extend([u8::from(run.state == AllocationState::Hole), 0, 0, 0]);
            at += run.len;
        }
        Ok(self.give_cut(data, allocation))
    }
}

/// Adds runs of at most `most` bytes, neighbours of one state joined; returns the bytes that they cover.
fn add_runs(runs: &mut Vec<StatusExtent>, more: &[StatusExtent], most: u64) -> u64 {
    let mut told = 0;
    for extent in more {
        let len = extent.len.min(most - told);
        match runs.last_mut() {
            Some(last) if last.state == extent.state => last.len += len,
            _ if len > 0 => runs.push(StatusExtent { len, ..*extent }),
            _ => {}
        }
        told += len;
    }
    told
}

const _: () = assert!(
    PIECE.is_multiple_of(4096),
    "a piece is whole blocks of any size"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_state_are_joined() {
        let run = |len, hole| StatusExtent {
            len,
            state: match hole {
                true => AllocationState::Hole,
                false => AllocationState::Data,
            },
        };
        let mut runs = vec![run(1, true)];
        let more = [run(2, true), run(3, false)];
        assert_eq!(add_runs(&mut runs, &more, 9), 5);
        assert_eq!(runs, [run(3, true), run(3, false)]);
        assert_eq!(
            add_runs(&mut runs, &more, 4),
            4,
            "no more than was asked for"
        );
        assert_eq!(runs[2..], [run(2, true), run(2, false)]);
        assert_eq!(add_runs(&mut runs, &[run(0, true)], 4), 0);
        assert_eq!(runs.len(), 4);
    }
}
