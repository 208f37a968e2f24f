//! Waiting until a descriptor can be read or written.

use crate::Handle;
use block::{Receiver, oneshot};
use std::future::Future;
use std::io;
use std::os::fd::RawFd;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The events to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// Bytes, a connection, an event, or the end of the stream.
    Read,
    /// Room to write.
    Write,
    /// The end of a connection in one direction or both, or an error.
    End,
}

/// Ends when the descriptor is ready. Dropping it stops the wait.
pub struct Readiness {
    handle: Handle,
    name: u64,
    wait: Receiver<i32>,
    ended: bool,
}

impl Handle {
    /// Waits until `fd` is ready; errors and hang-ups count as ready. The descriptor has to stay
    /// open meanwhile.
    ///
    /// # Panics
    /// On a loop without a ring ([`Handle::simulated`]).
    pub fn ready(&self, fd: RawFd, interest: Interest) -> Readiness {
        let events = match interest {
            Interest::Read => libc::POLLIN,
            Interest::Write => libc::POLLOUT,
            Interest::End => libc::POLLRDHUP,
        };
        let ring = self.0.ring.as_ref().expect("a loop with a ring");
        let (done, wait) = oneshot();
        let name = ring.poll_fd(fd, events as u32, done);
        Readiness {
            handle: self.clone(),
            name,
            wait,
            ended: false,
        }
    }
}

impl Future for Readiness {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = std::task::ready!(Pin::new(&mut self.wait).poll(context));
        self.ended = true;
        Poll::Ready(match result {
            Some(code) if code < 0 => Err(io::Error::from_raw_os_error(-code)),
            _ => Ok(()),
        })
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        if !self.ended
            && let Some(ring) = &self.handle.0.ring
        {
            ring.cancel(self.name);
        }
    }
}
