//! Files that a loop's ring reads and writes.

use crate::Handle;
use block::{DmaBuf, DriveOutcome, Sender};
use io_uring::{squeue, types};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;

/// A file that one loop's ring may transfer to and from.
///
/// It is in the ring's table of registered files when the table has room, which spares the kernel
/// a lookup for each request. Every request in flight holds a handle on it: the descriptor stays
/// open, and its number cannot become another file's, until the last request has ended.
pub struct RingFile {
    handle: Handle,
    file: Arc<dyn AsFd + Send + Sync>,
    registered: Option<u32>,
}

impl RingFile {
    /// The file as a request has to name it.
    pub fn target(&self) -> types::Fd {
        types::Fd(match self.registered {
            Some(index) => index as i32,
            None => self.raw(),
        })
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.file.as_fd().as_raw_fd()
    }

    /// Whether it is in the ring's table.
    pub fn is_registered(&self) -> bool {
        self.registered.is_some()
    }
}

impl Drop for RingFile {
    fn drop(&mut self) {
        if let (Some(index), Some(ring)) = (self.registered, &self.handle.0.ring) {
            ring.unregister_file(index);
        }
    }
}

impl Handle {
    /// Makes `file` known to this thread's ring.
    ///
    /// # Errors
    /// `Unsupported` on a loop without a ring ([`Handle::simulated`]).
    pub fn ring_file(&self, file: Arc<dyn AsFd + Send + Sync>) -> io::Result<Rc<RingFile>> {
        let ring = self.0.ring.as_ref().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::Unsupported,
                "a simulated loop has no io_uring: use a drive of kind ram, null or model over them",
            )
        })?;
        let registered = ring.register_file(file.as_fd().as_raw_fd());
        Ok(Rc::new(RingFile {
            handle: self.clone(),
            file,
            registered,
        }))
    }

    /// Number of the registered buffer that all of `buf` is in, if it does: the entry of a
    /// transfer may then be of the kind that names it.
    pub fn registered_buffer(&self, buf: &DmaBuf) -> Option<u16> {
        self.0.ring.as_ref()?.registered_buffer(buf)
    }

    /// Starts a drive request on this thread's ring: see [`block::DriveIo`]. `entry` names
    /// [`RingFile::target`]; `len` is the number of bytes that it has to move (0 for a flush or
    /// discard). Until it ends it holds a handle on `file`.
    ///
    /// # Safety
    /// The memory that `entry` names, if any, is within `buf`.
    pub unsafe fn drive_io(
        &self,
        file: &Rc<RingFile>,
        entry: squeue::Entry,
        buf: Option<DmaBuf>,
        len: u32,
        done: Sender<DriveOutcome>,
    ) {
        let Some(ring) = &self.0.ring else { return };
        let entry = match file.registered {
            Some(_) => entry.flags(squeue::Flags::FIXED_FILE),
            None => entry,
        };
        ring.drive(entry, file.clone(), buf, len, done);
    }
}
