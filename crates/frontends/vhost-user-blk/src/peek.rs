//! Looking at a message before it is read.
//!
//! The `vhost` crate reads messages and closes the descriptors that it has no use for, which can wait: closing a file of a
//! FUSE mount asks the program behind it. So messages are looked at where they lie, and one with a descriptor of a kind
//! that no message has, or whose descriptors could not be seen, is never read: the kernel releases what is in a socket that
//! is closed without waiting.

use crate::event::is_event;
use crate::shared::is_in_memory;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Bytes of a message's header: request, flags, size.
pub(crate) const HEADER_BYTES: usize = 12;
const SET_BACKEND_REQ_FD: u32 = 21;
/// Descriptors that a message can carry.
const DESCRIPTORS_MAX: usize = 32;
/// Threads of an export that may be closing descriptors.
const CLOSING_MAX: usize = 4;

/// What a message is, as far as that matters before it is read.
#[derive(Debug)]
pub(crate) enum Peeked {
    /// It can be read.
    Plain,
    /// It hands over the socket for notifications, of which this is a copy.
    Notifications(OwnedFd),
    /// It must not be read. The descriptors are copies of those that came with it.
    Foreign(Vec<OwnedFd>),
}

/// Waits for the next message and looks at it; it stays to be read.
///
/// # Errors
/// When the socket is broken.
pub(crate) fn peek(stream: &UnixStream) -> io::Result<Peeked> {
    let mut header = [0u8; HEADER_BYTES];
    let mut part = libc::iovec {
        iov_base: header.as_mut_ptr().cast(),
        iov_len: header.len(),
    };
    const SPACE: usize = size_of::<libc::cmsghdr>() + 4 * DESCRIPTORS_MAX;
    let mut ancillary = [0u64; SPACE / 8];
    // SAFETY: all zeroes is an empty message.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = ancillary.as_mut_ptr().cast();
    message.msg_controllen = SPACE;
    let flags = libc::MSG_PEEK | libc::MSG_CMSG_CLOEXEC;
    let read = loop {
        // SAFETY: the message points to memory that lives through the call.
        let read = unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, flags) };
        if let Ok(read) = usize::try_from(read) {
            break read;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    };
    let mut descriptors = descriptors(&message);
    let is_cut = message.msg_flags & libc::MSG_CTRUNC != 0;
    // A header in two parts may have descriptors with either; no front end sends one so.
    let is_part = (1..HEADER_BYTES).contains(&read);
    let is_known =
        |fd: &OwnedFd| is_event(fd.as_fd()) || is_in_memory(fd.as_fd()) || is_socket(fd.as_fd());
    if is_cut || is_part || !descriptors.iter().all(is_known) {
        return Ok(Peeked::Foreign(descriptors));
    }
    let request = u32::from_ne_bytes(header[..4].try_into().expect("four bytes"));
    if read == HEADER_BYTES && request == SET_BACKEND_REQ_FD && descriptors.len() == 1 {
        return Ok(descriptors
            .pop()
            .map_or(Peeked::Plain, Peeked::Notifications));
    }
    Ok(Peeked::Plain)
}

/// Whether a descriptor is a Unix socket with a stream.
fn is_socket(fd: BorrowedFd<'_>) -> bool {
    let option = |name| {
        let (mut value, mut len) = (0i32, 4);
        // SAFETY: plain system call on a descriptor that is open, with room for a number.
        let result = unsafe {
            let at = (&raw mut value).cast();
            libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, name, at, &raw mut len)
        };
        (result == 0).then_some(value)
    };
    option(libc::SO_DOMAIN) == Some(libc::AF_UNIX)
        && option(libc::SO_TYPE) == Some(libc::SOCK_STREAM)
}

/// Takes every descriptor that came with a message, so that none is left open.
fn descriptors(message: &libc::msghdr) -> Vec<OwnedFd> {
    let mut found = Vec::new();
    // SAFETY: the kernel filled the ancillary memory that `message` points to.
    let mut entry = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !entry.is_null() {
        // SAFETY: not null, so it points to a header within the ancillary memory.
        let (level, kind, len) =
            unsafe { ((*entry).cmsg_level, (*entry).cmsg_type, (*entry).cmsg_len) };
        if level == libc::SOL_SOCKET && kind == libc::SCM_RIGHTS {
            // SAFETY: the data of an entry follow its header.
            let data = unsafe { libc::CMSG_DATA(entry) }.cast::<i32>();
            // SAFETY: plain arithmetic on lengths.
            let bytes = len - unsafe { libc::CMSG_LEN(0) } as usize;
            for index in 0..bytes / size_of::<i32>() {
                // SAFETY: the entry holds that many descriptors, which are ours from here on.
                found.push(unsafe { OwnedFd::from_raw_fd(data.add(index).read_unaligned()) });
            }
        }
        // SAFETY: as for the first header.
        entry = unsafe { libc::CMSG_NXTHDR(message, entry) };
    }
    found
}

/// Closes descriptors where nobody waits for it: on threads of their own, as many as there can be.
#[derive(Default)]
pub(crate) struct Closing(Arc<()>);

impl Closing {
    /// Whether no more can be closed now.
    pub(crate) fn is_full(&self) -> bool {
        Arc::strong_count(&self.0) > CLOSING_MAX
    }

    /// Closes them soon.
    ///
    /// # Errors
    /// When the system has no thread left; then they stay open.
    pub(crate) fn close(&self, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        if descriptors.is_empty() {
            return Ok(());
        }
        let (busy, descriptors) = (self.0.clone(), std::mem::ManuallyDrop::new(descriptors));
        let thread = std::thread::Builder::new().name("vhost-close".into());
        thread.spawn(move || {
            drop(std::mem::ManuallyDrop::into_inner(descriptors));
            drop(busy);
        })?;
        Ok(())
    }
}
