//! Sleeping until one of several descriptors is ready.

use std::io::{Error, ErrorKind, Result};
use std::os::fd::RawFd;
use std::time::Duration;

/// A descriptor to be examined.
pub fn watch(fd: RawFd, writing: bool) -> libc::pollfd {
    let events = libc::POLLIN | if writing { libc::POLLOUT } else { 0 };
    libc::pollfd {
        fd,
        events,
        revents: 0,
    }
}

/// Sleeps until one is ready or the time is over, to the nanosecond.
///
/// # Errors
/// When the system refuses it.
pub fn wait(watched: &mut [libc::pollfd], timeout: Duration) -> Result<()> {
    let time = libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    };
    let count = watched.len() as libc::nfds_t;
    // SAFETY: the entries and the time live through the call; no signal mask is given.
    let result = unsafe {
        libc::ppoll(
            watched.as_mut_ptr(),
            count,
            &raw const time,
            std::ptr::null(),
        )
    };
    match result {
        0.. => Ok(()),
        _ => match Error::last_os_error() {
            error if error.kind() == ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        },
    }
}
