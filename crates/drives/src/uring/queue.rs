//! One thread's queue: requests become io_uring entries.

use super::discover::Found;
use super::open::LockedFile;
use crate::check::check;
use block::{DmaBuf, DriveError, DriveIo, DriveIoKind, DriveOutcome, DriveQueue, Sender, oneshot};
use io_uring::{opcode, squeue, types};
use reactor::{Answer, Ends, Handle, Meaning, RingFile, moved};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

pub(super) struct UringQueue {
    handle: Handle,
    /// Every request in flight holds a clone, which is how they are counted.
    file: Rc<RingFile>,
    size: u64,
    sector: u32,
    /// Reads and writes go where their ends are looked for.
    polled: bool,
}

impl UringQueue {
    pub(super) fn new(handle: &Handle, file: Arc<LockedFile>, found: &Found) -> io::Result<Self> {
        if found.polled {
            handle.prepare_side(Ends::Polled)?;
        }
        Ok(Self {
            handle: handle.clone(),
            file: handle.ring_file(file)?,
            size: found.size,
            sector: found.logical_sector,
            polled: found.polled,
        })
    }

    fn start(&self, entry: squeue::Entry, io: DriveIo) {
        // A flush or discard moves no bytes.
        // SAFETY: `entry` names no memory.
        unsafe {
            self.handle.drive_io(&self.file, entry, io.buf, 0, io.done);
        }
    }

    fn read(&self, buf: DmaBuf, io: DriveIo) {
        let (memory, len) = (buf.as_raw(), io.len as u32);
        let entry = |target, registered| match registered {
            Some(index) => opcode::ReadFixed::new(target, memory, len, index)
                .offset(io.offset)
                .build(),
            None => opcode::Read::new(target, memory, len)
                .offset(io.offset)
                .build(),
        };
        self.transfer(entry, buf, len, io.done);
    }

    fn write(&self, buf: DmaBuf, io: DriveIo) {
        let (memory, len) = (buf.as_raw(), io.len as u32);
        let entry = |target, registered| match registered {
            Some(index) => opcode::WriteFixed::new(target, memory, len, index)
                .offset(io.offset)
                .build(),
            None => opcode::Write::new(target, memory, len)
                .offset(io.offset)
                .build(),
        };
        self.transfer(entry, buf, len, io.done);
    }

    /// Starts a transfer to or from all of `buf`, which `entry` names; its length is bounded far below 4 GiB.
    fn transfer(
        &self,
        entry: impl FnOnce(types::Fd, Option<u16>) -> squeue::Entry,
        buf: DmaBuf,
        len: u32,
        done: Sender<DriveOutcome>,
    ) {
        let (handle, file) = (&self.handle, &self.file);
        // SAFETY: `entry` names exactly the buffer's memory.
        unsafe {
            if self.polled {
                let registered = handle.side_buffer(Ends::Polled, &buf);
                let entry = entry(file.descriptor(), registered).into();
                let meaning = Meaning {
                    of: transferred,
                    len,
                };
                handle.side_io(Ends::Polled, file, entry, Some(buf), meaning, done);
            } else {
                let entry = entry(file.target(), handle.registered_buffer(&buf));
                handle.drive_io(file, entry, Some(buf), len, done);
            }
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

/// Translates the result of a polled transfer: if the drive had no free place, it is resubmitted.
fn transferred(result: i32, len: u32) -> Answer {
    match result == -libc::EAGAIN {
        true => Answer::Again,
        false => Answer::Ended(moved(result, len)),
    }
}

impl DriveQueue for UringQueue {
    fn submit(&self, mut io: DriveIo) {
        if let Err(error) = check(&io, self.size, self.sector) {
            io.done.send((io.buf, Err(error)));
            return;
        }
        let target = self.file.target();
        match (io.kind, io.buf.take()) {
            (DriveIoKind::Read, Some(buf)) => self.read(buf, io),
            (DriveIoKind::Write, Some(buf)) => self.write(buf, io),
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
