//! Requests of several operations: partial LBAs, clearing ranges, and searching for data.

use crate::file::{File, Plan};
use block::{AllocationState, ErrorKind, IoBuf, IoError, OpFlags, OpKind};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum range of a clear or status operation, in bytes: one region of the engine.
const WINDOW: u64 = 256 << 20;
/// The same for zeroes that keep their allocation, which are written.
const WINDOW_WRITTEN: u64 = 16 << 20;

impl File {
    /// # Errors
    /// When the export has stopped: no reply is possible.
    fn check_served(&self) -> Result<(), IoError> {
        match self.ended.load(Ordering::Acquire) {
            true => Err(IoError::new(ErrorKind::Gone, "the export has stopped")),
            false => Ok(()),
        }
    }

    async fn read_lba(self: &Arc<Self>, offset: u64) -> Result<IoBuf, IoError> {
        let plan = Plan {
            kind: OpKind::Read,
            flags: OpFlags::default(),
            range: offset..offset + self.lba,
            buf: IoBuf::zeroed(self.lba as usize),
        };
        self.step(plan).await.map(|(buf, _)| buf)
    }

    /// Writes `data` at `offset` with any alignment. The caller has locked the LBAs exclusively.
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
        // The first LBA may also be the last one, and has been read then.
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

    /// Writes `data` at `offset` after conflicting writes.
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

    /// Zeroes `range`, and frees its space unless the flags forbid it.
    pub(crate) async fn clear(
        self: &Arc<Self>,
        range: Range<u64>,
        flags: OpFlags,
    ) -> Result<(), IoError> {
        let whole = self.whole(&range);
        let _held = self.ranges.hold(whole.clone(), whole != range).await;
        let inner_start = range.start.next_multiple_of(self.lba);
        let inner_end = range.end / self.lba * self.lba;
        let frees = !flags.no_unmap;
        if inner_start > inner_end {
            // Within a single LBA.
            return self.zero_part(range, frees).await;
        }
        self.zero_part(range.start..inner_start, frees).await?;
        let window = match flags.no_unmap {
            true => WINDOW_WRITTEN,
            false => WINDOW,
        };
        let mut at = inner_start;
        while at < inner_end {
            let end = ((at / window + 1) * window).min(inner_end);
            self.clear_whole(at..end, flags).await?;
            at = end;
        }
        self.zero_part(inner_end..range.end, frees).await
    }

    async fn clear_whole(
        self: &Arc<Self>,
        range: Range<u64>,
        flags: OpFlags,
    ) -> Result<(), IoError> {
        self.check_served()?;
        let plan = Plan {
            // Not a discard, which does not guarantee zeroes for partial blocks.
            kind: OpKind::WriteZeroes,
            flags,
            range,
            buf: IoBuf::empty(),
        };
        self.step(plan).await.map(drop)
    }

    /// Zeroes part of an LBA. If it `frees`, an LBA that is all zeroes afterwards is freed, and one
    /// that was a hole remains a hole: punching a hole never allocates space.
    async fn zero_part(self: &Arc<Self>, range: Range<u64>, frees: bool) -> Result<(), IoError> {
        if range.is_empty() {
            return Ok(());
        }
        if frees {
            let start = range.start / self.lba * self.lba;
            let part = (range.start - start) as usize..(range.end - start) as usize;
            let mut bytes = vec![0; self.lba as usize];
            self.read_lba(start).await?.read(0, &mut bytes);
            let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
            if is_zero(&bytes[part.clone()]) {
                return Ok(());
            }
            bytes[part].fill(0);
            if is_zero(&bytes) {
                let whole = start..start + self.lba;
                return self.clear_whole(whole, OpFlags::default()).await;
            }
        }
        let zeroes = vec![0; (range.end - range.start) as usize];
        self.patch(range.start, &zeroes, OpFlags::default()).await
    }

    /// The first offset at or after `offset` in the state `wanted`, or `None` if it does not occur
    /// before the end of the volume.
    pub(crate) async fn seek(
        self: &Arc<Self>,
        offset: u64,
        wanted: AllocationState,
    ) -> Result<Option<u64>, IoError> {
        let size = self.current_size();
        let mut at = offset / self.lba * self.lba;
        while at < size {
            self.check_served()?;
            let plan = Plan {
                kind: OpKind::Status,
                flags: OpFlags::default(),
                range: at..((at / WINDOW + 1) * WINDOW).min(size),
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
                return Err(IoError::new(
                    ErrorKind::Device,
                    "the volume reports no allocation status",
                ));
            }
        }
        Ok(None)
    }
}
