//! Reads, writes and other requests: clipped to the volume and submitted to the device.

use crate::errors::errno;
use crate::file::{Answer, File, Plan};
use block::{AllocationState, IoBuf, OpFlags, OpKind};
use fuser::{Errno, ReplyData, ReplyEmpty, ReplyLseek, ReplyWrite};
use std::sync::Arc;

/// Reads the LBAs that contain the range, and replies with the range.
pub(crate) fn read(file: &Arc<File>, offset: u64, size: u32, reply: ReplyData) {
    let range = file.clip(offset, u64::from(size));
    if range.is_empty() {
        return reply.data(&[]);
    }
    let whole = file.whole(&range);
    let len = (whole.end - whole.start) as usize;
    let start = (range.start - whole.start) as usize;
    let wanted = start..start + (range.end - range.start) as usize;
    let permit = file.flight.begin(len);
    let plan = Plan {
        kind: OpKind::Read,
        flags: OpFlags::default(),
        range: whole,
        buf: IoBuf::zeroed(len),
    };
    file.direct(plan, Answer::Data(reply, wanted), None, permit);
}

/// Writes whole LBAs directly, and partial LBAs in steps.
pub(crate) fn write(file: &Arc<File>, offset: u64, data: &[u8], fua: bool, reply: ReplyWrite) {
    let range = file.clip(offset, data.len() as u64);
    if range.is_empty() {
        // As on a block device: writes do not extend a volume.
        return match data.is_empty() {
            true => reply.written(0),
            false => reply.error(Errno::ENOSPC),
        };
    }
    let data: Box<[u8]> = data[..(range.end - range.start) as usize].into();
    let written = data.len() as u32;
    let permit = file.flight.begin(data.len());
    let flags = OpFlags {
        fua,
        no_unmap: false,
    };
    if file.whole(&range) == range
        && let Some(held) = file.ranges.try_hold(range.clone(), false)
    {
        let plan = Plan {
            kind: OpKind::Write,
            flags,
            range,
            buf: IoBuf::from_bytes(data),
        };
        return file.direct(plan, Answer::Written(reply, written), Some(held), permit);
    }
    let task = file.clone();
    file.run(move || async move {
        let result = task.write(range.start, &data, flags).await;
        Answer::Written(reply, written).send(result, &IoBuf::empty());
        drop(permit);
    });
}

/// Makes completed writes durable.
pub(crate) fn flush(file: &Arc<File>, reply: ReplyEmpty) {
    let permit = file.flight.begin(0);
    let plan = Plan {
        kind: OpKind::Flush,
        flags: OpFlags::default(),
        range: 0..0,
        buf: IoBuf::empty(),
    };
    file.direct(plan, Answer::Empty(reply), None, permit);
}

/// Frees or zeroes a range (`fallocate(2)`); space cannot be reserved.
pub(crate) fn allocate(file: &Arc<File>, offset: u64, length: u64, mode: i32, reply: ReplyEmpty) {
    let no_unmap = match mode & !libc::FALLOC_FL_KEEP_SIZE {
        libc::FALLOC_FL_PUNCH_HOLE => false,
        libc::FALLOC_FL_ZERO_RANGE => true,
        _ => return reply.error(Errno::EOPNOTSUPP),
    };
    let range = file.clip(offset, length);
    let grows = range.end < offset.saturating_add(length);
    if grows && mode & libc::FALLOC_FL_KEEP_SIZE == 0 {
        return reply.error(Errno::ENOSPC);
    }
    if range.is_empty() {
        return reply.ok();
    }
    let flags = OpFlags {
        fua: false,
        no_unmap,
    };
    let permit = file.flight.begin(0);
    let task = file.clone();
    file.run(move || async move {
        let result = task.clear(range, flags).await;
        Answer::Empty(reply).send(result, &IoBuf::empty());
        drop(permit);
    });
}

/// Finds data or a hole (`lseek(2)`).
pub(crate) fn seek(file: &Arc<File>, offset: i64, whence: i32, reply: ReplyLseek) {
    let wanted = match whence {
        libc::SEEK_DATA => AllocationState::Data,
        libc::SEEK_HOLE => AllocationState::Hole,
        _ => return reply.error(Errno::EINVAL),
    };
    let size = file.current_size();
    let offset = match u64::try_from(offset) {
        Ok(offset) if offset < size => offset,
        _ => return reply.error(Errno::ENXIO),
    };
    let permit = file.flight.begin(0);
    let task = file.clone();
    file.run(move || async move {
        match (task.seek(offset, wanted).await, wanted) {
            (Ok(Some(found)), _) => reply.offset(found as i64),
            // The end of a file is a hole.
            (Ok(None), AllocationState::Hole) => reply.offset(size as i64),
            (Ok(None), _) => reply.error(Errno::ENXIO),
            (Err(error), _) => reply.error(errno(error.kind)),
        }
        drop(permit);
    });
}
