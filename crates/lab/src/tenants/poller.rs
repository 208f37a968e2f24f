//! Sleeping until one of many sessions has an answer (epoll(7)).

use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Most sessions reported ready by one call.
const EVENTS: usize = 256;

/// Watches descriptors, each with a number.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
}

fn interest(number: usize, writing: bool) -> libc::epoll_event {
    let events = libc::EPOLLIN | if writing { libc::EPOLLOUT } else { 0 };
    libc::epoll_event {
        events: events as u32,
        u64: number as u64,
    }
}

impl Poller {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn new() -> Result<Self> {
        // SAFETY: the call takes no pointers.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if epoll < 0 {
            return Err(Error::last_os_error());
        }
        Ok(Self {
            // SAFETY: the descriptor is new and has no other owner.
            epoll: unsafe { OwnedFd::from_raw_fd(epoll) },
            events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS],
        })
    }

    fn control(&self, operation: i32, fd: RawFd, mut event: libc::epoll_event) -> Result<()> {
        let epoll = self.epoll.as_raw_fd();
        // SAFETY: the event lives through the call.
        match unsafe { libc::epoll_ctl(epoll, operation, fd, &raw mut event) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }

    /// Watches a descriptor for reading.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn add(&self, number: usize, fd: RawFd) -> Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, interest(number, false))
    }

    /// Watches it for writing, too, or no more.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn watch_writing(&self, number: usize, fd: RawFd, writing: bool) -> Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, interest(number, writing))
    }

    /// Adds the numbers of those that are ready, after a sleep of `timeout` at most.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn wait(&mut self, timeout: Duration, ready: &mut Vec<usize>) -> Result<()> {
        let epoll = self.epoll.as_raw_fd();
        if !timeout.is_zero() {
            // epoll_wait(2) sleeps for whole milliseconds; requests are due between them.
            crate::load::wait(&mut [crate::load::watch(epoll, false)], timeout)?;
        }
        let (events, room) = (self.events.as_mut_ptr(), self.events.len() as i32);
        // SAFETY: there is room for this many events, and they live through the call.
        let count = unsafe { libc::epoll_wait(epoll, events, room, 0) };
        if count < 0 {
            let error = Error::last_os_error();
            return match error.kind() {
                ErrorKind::Interrupted => Ok(()),
                _ => Err(error),
            };
        }
        let events = self.events[..count as usize].iter();
        ready.extend(events.map(|event| event.u64 as usize));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn those_that_are_ready_are_told_by_their_numbers() {
        let (mut one, other) = UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(7, other.as_raw_fd()).unwrap();
        let mut ready = Vec::new();
        poller.wait(Duration::from_micros(1), &mut ready).unwrap();
        assert!(ready.is_empty());
        one.write_all(b"x").unwrap();
        poller.wait(Duration::from_secs(60), &mut ready).unwrap();
        assert_eq!(ready, [7]);
        poller.watch_writing(7, other.as_raw_fd(), true).unwrap();
        ready.clear();
        poller.wait(Duration::from_secs(60), &mut ready).unwrap();
        assert_eq!(ready, [7]);
    }
}
