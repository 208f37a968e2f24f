//! Event descriptors that come from a front end.
//!
//! They are neither read nor written, since either could wait (`reactor::Doorbell` tells why no check helps): kicks are
//! polled for, and guests are notified by a doorbell.

use reactor::Doorbell;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An event descriptor of somebody else.
pub(crate) struct EventFd(File);

/// Whether a descriptor is one for events. It asks no file system.
pub(crate) fn is_event(fd: BorrowedFd<'_>) -> bool {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    link.is_ok_and(|link| link.as_os_str() == "anon_inode:[eventfd]")
}

impl EventFd {
    /// Takes a descriptor, and refuses one that is no event descriptor.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        use std::os::fd::AsFd;
        match is_event(file.as_fd()) {
            true => Ok(Self(file)),
            false => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a descriptor for a queue's events is no event descriptor",
            )),
        }
    }

    /// The descriptor, to wait for it.
    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// How a queue tells the guest of answers and the front end of errors. It outlives connections, so that front ends that
/// connect in a loop have no doorbells made in one.
#[derive(Default)]
pub(crate) struct Bell(Mutex<State>);

#[derive(Default)]
struct State {
    /// Made with the first descriptor.
    doorbell: Option<Doorbell>,
    call: Option<EventFd>,
    error: Option<EventFd>,
}

impl State {
    /// Binds the doorbell to a descriptor that it is given, and rings it.
    fn ring(&mut self, fd: RawFd) -> io::Result<()> {
        let doorbell = self.doorbell()?;
        doorbell.bind(Some(fd))?;
        doorbell.ring()
    }

    fn doorbell(&mut self) -> io::Result<&mut Doorbell> {
        match &mut self.doorbell {
            Some(doorbell) => Ok(doorbell),
            none => Ok(none.insert(Doorbell::new()?)),
        }
    }

    fn bind_call(&mut self) -> io::Result<()> {
        let fd = self.call.as_ref().map(EventFd::fd);
        match (&mut self.doorbell, fd) {
            (None, None) => Ok(()),
            _ => self.doorbell()?.bind(fd),
        }
    }
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Exchanges the descriptor that answers are told by; none means that nobody is told.
    ///
    /// # Errors
    /// When the system has no room for a doorbell.
    pub(crate) fn set_call(&self, event: Option<EventFd>) -> io::Result<()> {
        let mut state = self.lock();
        state.call = event;
        state.bind_call()
    }

    /// Exchanges the descriptor that errors are told by.
    pub(crate) fn set_error(&self, event: Option<EventFd>) {
        self.lock().error = event;
    }

    /// Forgets both descriptors.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        (state.call, state.error) = (None, None);
        if state.bind_call().is_err() {
            // A new one is made with the next descriptor.
            state.doorbell = None;
        }
    }

    /// Tells of answers. It does not wait.
    ///
    /// # Errors
    /// When the kernel has no memory for it.
    pub(crate) fn call(&self) -> io::Result<()> {
        // The lock is only held for a system call that does not wait.
        match &mut self.lock().doorbell {
            Some(doorbell) => doorbell.ring(),
            None => Ok(()),
        }
    }

    /// Tells of an error. It does not wait.
    ///
    /// # Errors
    /// When the kernel has no memory for it.
    pub(crate) fn error(&self) -> io::Result<()> {
        let mut state = self.lock();
        let Some(fd) = state.error.as_ref().map(EventFd::fd) else {
            return Ok(());
        };
        let told = state.ring(fd);
        told.and(state.bind_call())
    }
}
