//! Event descriptors (eventfd) received from a monitor.
//!
//! They are never read or written, since either could block (see `reactor::Doorbell`): kicks are
//! polled, and guests are notified through a doorbell.

use reactor::Doorbell;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An eventfd owned by the peer.
pub(crate) struct EventFd(File);

/// Whether a descriptor is an eventfd. Does not access a file system.
pub(crate) fn is_event(fd: BorrowedFd<'_>) -> bool {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    link.is_ok_and(|link| link.as_os_str() == "anon_inode:[eventfd]")
}

impl EventFd {
    /// Wraps a descriptor; rejects other types than eventfd.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        use std::os::fd::AsFd;
        match is_event(file.as_fd()) {
            true => Ok(Self(file)),
            false => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a descriptor for queue events is not an eventfd",
            )),
        }
    }

    /// The raw descriptor, for polling.
    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Notifies the guest of completions and the monitor of errors. It outlives connections, so that
/// monitors that reconnect in a loop do not create doorbells in a loop.
#[derive(Default)]
pub(crate) struct Bell(Mutex<State>);

#[derive(Default)]
struct State {
    /// Created with the first descriptor.
    doorbell: Option<Doorbell>,
    call: Option<EventFd>,
    error: Option<EventFd>,
}

impl State {
    /// Binds the doorbell to a descriptor, and rings it.
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

    /// Replaces the descriptor for completions; none disables notifications.
    ///
    /// # Errors
    /// When no doorbell can be created.
    pub(crate) fn set_call(&self, event: Option<EventFd>) -> io::Result<()> {
        let mut state = self.lock();
        state.call = event;
        state.bind_call()
    }

    /// Replaces the descriptor for errors.
    pub(crate) fn set_error(&self, event: Option<EventFd>) {
        self.lock().error = event;
    }

    /// Removes both descriptors.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        (state.call, state.error) = (None, None);
        if state.bind_call().is_err() {
            // A new doorbell is created with the next descriptor.
            state.doorbell = None;
        }
    }

    /// Notifies of completions, without blocking.
    ///
    /// # Errors
    /// When the kernel is out of memory.
    pub(crate) fn call(&self) -> io::Result<()> {
        // The lock is held only during non-blocking system calls.
        match &mut self.lock().doorbell {
            Some(doorbell) => doorbell.ring(),
            None => Ok(()),
        }
    }

    /// Notifies of an error, without blocking.
    ///
    /// # Errors
    /// When the kernel is out of memory.
    pub(crate) fn error(&self) -> io::Result<()> {
        let mut state = self.lock();
        let Some(fd) = state.error.as_ref().map(EventFd::fd) else {
            return Ok(());
        };
        let told = state.ring(fd);
        told.and(state.bind_call())
    }
}
