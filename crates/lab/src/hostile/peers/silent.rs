//! Connections that are held and say nothing.

use crate::hostile::stage::Stage;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Connections that one attacker holds at most.
const HELD_MAX: usize = 4096;
/// How often it looks which of them were closed, and makes others instead.
const LOOK: Duration = Duration::from_millis(50);

/// Leaves out connections that the other side closed.
fn leave_closed<S: AsRawFd>(held: &mut Vec<S>) {
    let mut polled: Vec<libc::pollfd> = held
        .iter()
        .map(|stream| libc::pollfd {
            fd: stream.as_raw_fd(),
            events: libc::POLLRDHUP,
            revents: 0,
        })
        .collect();
    // SAFETY: the entries live through the call and are as many as is said; the streams keep their descriptors open.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 0) };
    let mut polled = polled.iter();
    held.retain(|_| polled.next().is_some_and(|polled| polled.revents == 0));
}

/// Holds as many connections as it gets until it is over, and replaces what was closed.
pub fn hold<S: AsRawFd>(stage: &Stage<'_>, open: impl Fn() -> Result<S>) {
    let mut held = Vec::new();
    while !stage.is_over() {
        while held.len() < HELD_MAX && !stage.is_over() {
            match open() {
                Ok(stream) => held.push(stream),
                Err(error) => {
                    stage.refused(&error);
                    break;
                }
            }
            stage.did(1);
        }
        stage.pause(LOOK);
        let before = held.len();
        leave_closed(&mut held);
        if held.len() < before {
            stage.refused(&Error::from(ErrorKind::ConnectionReset));
        }
    }
}
