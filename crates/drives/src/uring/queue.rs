//! One thread's queue: requests become io_uring entries.

use super::open::LockedFile;
use crate::check::check;
use block::{DriveError, DriveIo, DriveIoKind, DriveQueue, oneshot};
use io_uring::{opcode, squeue, types};
use reactor::{Handle, RingFile};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

pub(super) struct UringQueue {
    handle: Handle,
    /// Every request in flight holds a clone, which is how they are counted.
    file: Rc<RingFile>,
    size: u64,
    sector: u32,
}

impl UringQueue {
    pub(super) fn new(
        handle: &Handle,
        file: Arc<LockedFile>,
        size: u64,
        sector: u32,
    ) -> io::Result<Self> {
        Ok(Self {
            handle: handle.clone(),
            file: handle.ring_file(file)?,
            size,
            sector,
        })
    }

    fn start(&self, entry: squeue::Entry, io: DriveIo) {
        // A flush or discard moves no bytes; a transfer is bounded far below 4 GiB.
        let moves = match io.kind {
            DriveIoKind::Read | DriveIoKind::Write => io.len as u32,
            DriveIoKind::Flush | DriveIoKind::Discard => 0,
        };
        // SAFETY: `entry` names exactly the buffer's memory, or none.
        unsafe {
            self.handle
                .drive_io(&self.file, entry, io.buf, moves, io.done);
        }
    }

    /// A drive that cannot discard keeps the data, which a discard allows.
    fn discard(&self, entry: squeue::Entry, io: DriveIo) {
        let (done, ended) = oneshot();
        let file = self.file.clone();
        self.start(
            entry,
            DriveIo {
                kind: io.kind,
                offset: io.offset,
                len: io.len,
                buf: None,
                done,
            },
        );
        self.handle.spawn(async move {
            let result = match ended.await {
                Some((_, Err(DriveError::Os(libc::EOPNOTSUPP | libc::ENOTTY | libc::ENOSYS)))) => {
                    Ok(())
                }
                Some((_, result)) => result,
                None => Err(DriveError::Gone),
            };
            drop(file);
            io.done.send((io.buf, result));
        });
    }
}

impl DriveQueue for UringQueue {
    fn submit(&self, io: DriveIo) {
        if let Err(error) = check(&io, self.size, self.sector) {
            io.done.send((io.buf, Err(error)));
            return;
        }
        let target = self.file.target();
        match (io.kind, &io.buf) {
            (DriveIoKind::Read, Some(buf)) => {
                let (memory, len) = (buf.as_raw(), io.len as u32);
                let entry = match self.handle.registered_buffer(buf) {
                    Some(index) => opcode::ReadFixed::new(target, memory, len, index)
                        .offset(io.offset)
                        .build(),
                    None => opcode::Read::new(target, memory, len)
                        .offset(io.offset)
                        .build(),
                };
                self.start(entry, io);
            }
            (DriveIoKind::Write, Some(buf)) => {
                let (memory, len) = (buf.as_raw(), io.len as u32);
                let entry = match self.handle.registered_buffer(buf) {
                    Some(index) => opcode::WriteFixed::new(target, memory, len, index)
                        .offset(io.offset)
                        .build(),
                    None => opcode::Write::new(target, memory, len)
                        .offset(io.offset)
                        .build(),
                };
                self.start(entry, io);
            }
            (DriveIoKind::Flush, _) => {
                let entry = opcode::Fsync::new(target)
                    .flags(types::FsyncFlags::DATASYNC)
                    .build();
                self.start(entry, io);
            }
            (DriveIoKind::Discard, _) => {
                let entry = opcode::Fallocate::new(target, io.len)
                    .offset(io.offset)
                    .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                    .build();
                self.discard(entry, io);
            }
            (DriveIoKind::Read | DriveIoKind::Write, None) => {
                io.done.send((None, Err(DriveError::Bounds)));
            }
        }
    }

    fn in_flight(&self) -> usize {
        Rc::strong_count(&self.file) - 1
    }
}
