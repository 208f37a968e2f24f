//! Signalling the event descriptor of another program without ever waiting.
//!
//! `write(2)` to an event descriptor waits while its counter is at its largest value and `O_NONBLOCK` is not set. The
//! flag belongs to the open file, which the program that sent the descriptor shares: it can clear the flag and fill the
//! counter at any time, so no check before the write helps, nor does a write by io_uring, which runs inline where it
//! finds the flag set. The kernel itself signals event descriptors in another way, which never waits and saturates the
//! counter: for each completion of an io_uring that the descriptor is registered with (`io_uring_register(2)`,
//! `IORING_REGISTER_EVENTFD`). So a doorbell is a small ring of its own whose only requests are no-ops.

use io_uring::{IoUring, opcode};
use std::io;
use std::os::fd::RawFd;

/// A request, and room for one that a busy kernel has left behind.
const ENTRIES: u32 = 2;

/// Signals one event descriptor at a time. It costs one system call a signal, and a descriptor of this process.
pub struct Doorbell {
    ring: IoUring,
    is_bound: bool,
}

impl Doorbell {
    /// A doorbell that is bound to no descriptor.
    ///
    /// # Errors
    /// When the system has no ring or descriptor left.
    pub fn new() -> io::Result<Self> {
        let ring = IoUring::builder().setup_clamp().build(ENTRIES)?;
        let is_bound = false;
        Ok(Self { ring, is_bound })
    }

    /// Signals `fd` from now on, which has to be an event descriptor, or none. The kernel holds on to it until it is
    /// replaced: it may be closed.
    ///
    /// # Errors
    /// When it is no event descriptor.
    pub fn bind(&mut self, fd: Option<RawFd>) -> io::Result<()> {
        if std::mem::take(&mut self.is_bound) {
            self.ring.submitter().unregister_eventfd()?;
        }
        if let Some(fd) = fd {
            self.ring.submitter().register_eventfd(fd)?;
            self.is_bound = true;
        }
        Ok(())
    }

    /// Makes the descriptor readable, if there is one. It never waits, whatever the descriptor's flags and counter.
    ///
    /// # Errors
    /// When the kernel takes no request, out of memory say.
    pub fn ring(&mut self) -> io::Result<()> {
        if !self.is_bound {
            return Ok(());
        }
        let entry = opcode::Nop::new().build();
        // SAFETY: a no-op names no memory. A full queue means that there is a request to submit already.
        let _ = unsafe { self.ring.submission().push(&entry) };
        let result = self.ring.submit();
        // The completions have done their work; without room for them the kernel would have to keep them.
        self.ring.completion().for_each(drop);
        result.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::{AsRawFd, FromRawFd};

    fn event(flags: i32) -> File {
        // SAFETY: plain system call.
        let fd = unsafe { libc::eventfd(0, flags) };
        assert!(fd >= 0, "no event descriptor");
        // SAFETY: a fresh descriptor.
        unsafe { File::from_raw_fd(fd) }
    }

    fn count(event: &File) -> u64 {
        let mut bytes = [0; 8];
        match (&mut &*event).read_exact(&mut bytes) {
            Ok(()) => u64::from_ne_bytes(bytes),
            Err(_) => 0,
        }
    }

    #[test]
    fn each_ring_signals_the_bound_descriptor_alone() {
        let (first, second) = (event(libc::EFD_NONBLOCK), event(libc::EFD_NONBLOCK));
        let mut doorbell = Doorbell::new().unwrap();
        doorbell.ring().unwrap();
        doorbell.bind(Some(first.as_raw_fd())).unwrap();
        (0..1000).for_each(|_| doorbell.ring().unwrap());
        assert_eq!((count(&first), count(&second)), (1000, 0));
        doorbell.bind(Some(second.as_raw_fd())).unwrap();
        doorbell.ring().unwrap();
        assert_eq!((count(&first), count(&second)), (0, 1));
        doorbell.bind(None).unwrap();
        doorbell.ring().unwrap();
        assert_eq!((count(&first), count(&second)), (0, 0));
    }

    #[test]
    fn a_full_descriptor_that_blocks_is_not_waited_for() {
        let event = event(0);
        (&event).write_all(&(u64::MAX - 1).to_ne_bytes()).unwrap();
        let mut doorbell = Doorbell::new().unwrap();
        doorbell.bind(Some(event.as_raw_fd())).unwrap();
        (0..10).for_each(|_| doorbell.ring().unwrap());
        assert_eq!(count(&event), u64::MAX, "it saturates");
    }

    #[test]
    fn what_is_no_event_descriptor_is_refused() {
        let file = File::open("/dev/null").unwrap();
        let mut doorbell = Doorbell::new().unwrap();
        assert!(doorbell.bind(Some(file.as_raw_fd())).is_err());
        doorbell.ring().unwrap();
    }
}
