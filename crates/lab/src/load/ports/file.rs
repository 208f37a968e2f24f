//! A file or block device, by io_uring and without the system's cache.

use super::memory::Pages;
use crate::load::port::{Port, Request};
use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result, Seek, SeekFrom};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// `IORING_ENTER_GETEVENTS`: lets the kernel finish what it has for this thread.
const GET_EVENTS: u32 = 1;

/// A ring for a file.
pub struct FilePort {
    file: File,
    slots: u16,
    slot_bytes: usize,
    data: Pages,
    /// Made on the thread that uses it.
    ring: Option<IoUring>,
    lengths: Vec<u32>,
    outstanding: usize,
    polling: bool,
}

impl FilePort {
    /// Opens a file; gives it and its size.
    ///
    /// # Errors
    /// When it is not there, or cannot do direct I/O.
    pub fn open(
        path: &Path,
        slots: u16,
        slot_bytes: usize,
        writes: bool,
        polling: bool,
    ) -> Result<(Self, u64)> {
        let mut options = OpenOptions::new();
        options.read(true).write(writes);
        let mut file = options.custom_flags(libc::O_DIRECT).open(path)?;
        // A block device's size is not in its metadata.
        let size = file.seek(SeekFrom::End(0))?;
        let port = Self {
            file,
            slots,
            slot_bytes,
            data: Pages::new(usize::from(slots) * slot_bytes),
            ring: None,
            lengths: vec![0; usize::from(slots)],
            outstanding: 0,
            polling,
        };
        Ok((port, size))
    }

    fn ring(&mut self) -> &mut IoUring {
        self.ring.as_mut().expect("begun before it is used")
    }
}

fn again(error: Error) -> Result<usize> {
    match error.raw_os_error() {
        Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN) => Ok(0),
        _ => Err(error),
    }
}

impl Port for FilePort {
    fn begin(&mut self) -> Result<()> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun();
        let entries = u32::from(self.slots).next_power_of_two();
        let ring = builder.build(entries)?;
        let parts: Vec<libc::iovec> = (0..usize::from(self.slots))
            .map(|slot| libc::iovec {
                iov_base: self
                    .data
                    .part(slot * self.slot_bytes, self.slot_bytes)
                    .cast(),
                iov_len: self.slot_bytes,
            })
            .collect();
        ring.submitter().register_files(&[self.file.as_raw_fd()])?;
        // SAFETY: the memory belongs to this value, which ends the ring before it.
        unsafe { ring.submitter().register_buffers(&parts)? };
        self.ring = Some(ring);
        Ok(())
    }

    fn queue(&mut self, slot: u16, request: Request) -> Result<()> {
        let Request {
            offset,
            length,
            write,
        } = request;
        let at = usize::from(slot) * self.slot_bytes;
        let data = self.data.part(at, length as usize);
        let entry = match write {
            true => opcode::WriteFixed::new(Fixed(0), data.cast_const(), length, slot)
                .offset(offset)
                .build(),
            false => opcode::ReadFixed::new(Fixed(0), data, length, slot)
                .offset(offset)
                .build(),
        };
        let entry = entry.user_data(slot.into());
        self.lengths[usize::from(slot)] = length;
        self.outstanding += 1;
        // SAFETY: the data belong to this value, and the slot is not used until it is answered.
        let pushed = unsafe { self.ring().submission().push(&entry) };
        pushed.map_err(|_| Error::other("more requests than slots"))
    }

    fn send(&mut self) -> Result<()> {
        // It goes with the call that looks for answers: one for both.
        Ok(())
    }

    fn take(&mut self, answered: &mut Vec<u16>) -> Result<()> {
        let look = self.polling && self.outstanding > 0;
        let ring = self.ring.as_mut().expect("begun before it is used");
        if look && ring.completion().is_empty() {
            let waiting = ring.submission().len() as u32;
            // SAFETY: no argument is given; what was queued is valid, as `queue` says.
            let entered = unsafe { ring.submitter().enter::<()>(waiting, 0, GET_EVENTS, None) };
            entered.or_else(again)?;
        }
        for entry in ring.completion() {
            let slot = entry.user_data() as u16;
            let wanted = self.lengths[usize::from(slot)];
            self.outstanding -= 1;
            match entry.result() {
                bytes if bytes < 0 => return Err(Error::from_raw_os_error(-bytes)),
                bytes if bytes as u32 == wanted => answered.push(slot),
                bytes => {
                    let text = format!("{bytes} of {wanted} bytes were read or written");
                    return Err(Error::new(ErrorKind::UnexpectedEof, text));
                }
            }
        }
        Ok(())
    }

    fn fill(&mut self, slot: u16, at: usize, bytes: &[u8]) {
        self.data
            .fill(usize::from(slot) * self.slot_bytes + at, bytes);
    }

    fn fetch(&self, slot: u16, at: usize, bytes: &mut [u8]) {
        self.data
            .fetch(usize::from(slot) * self.slot_bytes + at, bytes);
    }

    fn arm(&mut self) -> bool {
        // What cannot be sent now is tried again with the next look.
        let _ = self.ring().submit();
        !self.ring().completion().is_empty()
    }

    fn event(&self) -> (RawFd, bool) {
        let ring = self.ring.as_ref().expect("begun before it is used");
        (ring.as_raw_fd(), false)
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        let time = Timespec::from(timeout);
        let arguments = SubmitArgs::new().timespec(&time);
        let submitter = self.ring().submitter();
        submitter.submit_with_args(1, &arguments).or_else(again)?;
        Ok(())
    }
}

impl Drop for FilePort {
    fn drop(&mut self) {
        // Closing a ring does not wait for what it has, and the memory is to outlive that.
        while self.outstanding > 0 {
            let Some(ring) = self.ring.as_mut() else {
                return;
            };
            if ring.submit_and_wait(1).or_else(again).is_err() {
                // Better lost than written to by the system later.
                std::mem::forget(std::mem::replace(&mut self.data, Pages::new(1)));
                return;
            }
            self.outstanding -= ring.completion().count().min(self.outstanding);
        }
    }
}
