//! Requests that take several operations: parts of LBAs, clearing, and the search for data.

use crate::file::{File, Plan};
use block::{AllocationState, ErrorKind, IoBuf, IoError, OpFlags, OpKind};
use std::ops::Range;
use std::sync::Arc;

/// Longest range that one operation clears or tells the state of, in bytes.
const WINDOW: u64 = 1 << 30;

impl File {
    async fn read_lba(self: &Arc<Self>, offset: u64) -> Result<IoBuf, IoError> {
        let plan = Plan {
            kind: OpKind::Read,
            flags: OpFlags::default(),
            range: offset..offset + self.lba,
            buf: IoBuf::zeroed(self.lba as usize),
        };
        self.step(plan).await.map(|(buf, _)| buf)
    }

    /// Writes `data` at `offset` whatever their alignment. The caller holds the LBAs alone.
    async fn patch(
        self: &Arc<Self>,
        offset: u64,
        data: &[u8],
        flags: OpFlags,
    ) -> Result<(), IoError> {
        let range = offset..offset + data.len() as u64;
        let whole = self.whole(&range);
        let mut bytes = vec![0; (whole.end - whole.start) as usize].into_boxed_slice();
        let lba = self.lba as usize;
        if range.start > whole.start {
            let old = self.read_lba(whole.start).await?;
            old.read(0, &mut bytes[..lba]);
        }
        // The first LBA may be the last one as well, and is read already then.
        let read = range.start > whole.start && bytes.len() == lba;
        if range.end < whole.end && !read {
            let old = self.read_lba(whole.end - self.lba).await?;
            let at = bytes.len() - lba;
            old.read(0, &mut bytes[at..]);
        }
        let start = (range.start - whole.start) as usize;
        bytes[start..start + data.len()].copy_from_slice(data);
        let plan = Plan {
            kind: OpKind::Write,
            flags,
            range: whole,
            buf: IoBuf::from_bytes(bytes),
        };
        self.step(plan).await.map(drop)
    }

    /// Writes `data` at `offset` once nobody is in the way.
    pub(crate) async fn write(
        self: &Arc<Self>,
        offset: u64,
        data: &[u8],
        flags: OpFlags,
    ) -> Result<(), IoError> {
        let range = offset..offset + data.len() as u64;
        let whole = self.whole(&range);
        let alone = whole != range;
        let _held = self.ranges.hold(whole, alone).await;
        self.patch(offset, data, flags).await
    }

    /// Makes `range` read as zeroes: by `kind` where it covers whole LBAs, by writing elsewhere.
    pub(crate) async fn clear(
        self: &Arc<Self>,
        range: Range<u64>,
        kind: OpKind,
        flags: OpFlags,
    ) -> Result<(), IoError> {
        let whole = self.whole(&range);
        let _held = self.ranges.hold(whole.clone(), whole != range).await;
        let inner_start = range.start.next_multiple_of(self.lba);
        let inner_end = range.end / self.lba * self.lba;
        if inner_start > inner_end {
            // Part of a single LBA.
            return self.zero_part(range).await;
        }
        self.zero_part(range.start..inner_start).await?;
        let mut at = inner_start;
        while at < inner_end {
            let end = (at + WINDOW).min(inner_end);
            let plan = Plan {
                kind,
                flags,
                range: at..end,
                buf: IoBuf::empty(),
            };
            self.step(plan).await?;
            at = end;
        }
        self.zero_part(inner_end..range.end).await
    }

    async fn zero_part(self: &Arc<Self>, range: Range<u64>) -> Result<(), IoError> {
        if range.is_empty() {
            return Ok(());
        }
        let zeroes = vec![0; (range.end - range.start) as usize];
        self.patch(range.start, &zeroes, OpFlags::default()).await
    }

    /// The first offset from `offset` on that is in the state `wanted`, or `None` when there is
    /// none before the end of the volume.
    pub(crate) async fn seek(
        self: &Arc<Self>,
        offset: u64,
        wanted: AllocationState,
    ) -> Result<Option<u64>, IoError> {
        let size = self.current_size();
        let mut at = offset / self.lba * self.lba;
        while at < size {
            let plan = Plan {
                kind: OpKind::Status,
                flags: OpFlags::default(),
                range: at..(at + WINDOW).min(size),
                buf: IoBuf::empty(),
            };
            let before = at;
            for extent in self.step(plan).await?.1 {
                if extent.state == wanted && extent.len > 0 {
                    return Ok(Some(at.max(offset)));
                }
                at = at.saturating_add(extent.len);
            }
            if at == before {
                return Err(IoError::new(ErrorKind::Device, "the volume tells no state"));
            }
        }
        Ok(None)
    }
}
