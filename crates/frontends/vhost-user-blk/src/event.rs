//! Event descriptors that come from a front end.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, PoisonError};

/// An event descriptor of somebody else, which never blocks.
pub(crate) struct EventFd(File);

impl EventFd {
    /// Takes a descriptor, and refuses one that is no event descriptor: reading or writing it
    /// might block the loop.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        if link.as_os_str() != "anon_inode:[eventfd]" {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{} is no event descriptor", link.display()),
            ));
        }
        // SAFETY: plain system calls on a descriptor that `file` owns.
        let result = unsafe {
            let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
            libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(file))
    }

    /// The descriptor, to wait for it.
    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Makes it readable. A counter that is full already is.
    pub(crate) fn signal(&self) {
        let one = 1u64;
        // SAFETY: eight bytes to a descriptor that lives as long as `self`.
        unsafe { libc::write(self.fd(), (&raw const one).cast(), 8) };
    }
}

/// An event descriptor that the front end may exchange while the ring runs.
#[derive(Default)]
pub(crate) struct EventSlot(Mutex<Option<EventFd>>);

impl EventSlot {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<EventFd>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Exchanges it; none means that nobody is told.
    pub(crate) fn set(&self, event: Option<EventFd>) {
        *self.lock() = event;
    }

    /// Makes it readable, if there is one.
    pub(crate) fn signal(&self) {
        if let Some(event) = &*self.lock() {
            event.signal();
        }
    }
}
