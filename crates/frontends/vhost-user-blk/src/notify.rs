//! Telling the monitor that the disk has another size.
//!
//! The protocol's way is a socket that the front end hands over by SET_BACKEND_REQ_FD. The
//! `vhost` crate takes it but has no message for a change of the configuration, so the descriptor
//! is looked at on its way, before the crate reads the message.

use crate::control::Shared;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Wake, Waker};
use std::thread::Thread;

const HEADER_BYTES: usize = 12;
const SET_BACKEND_REQ_FD: u32 = 21;
const CONFIG_CHANGE_MSG: u32 = 2;
const VERSION: u32 = 1;
/// Descriptors that a message can carry.
const DESCRIPTORS_MAX: usize = 32;
/// Numbers of the listeners on a volume, from a range of this front end's own.
static LISTENERS: AtomicU64 = AtomicU64::new(0x7668_7562_0000_0000);

/// Waits for the next message and, when it hands over the socket for notifications, returns a
/// copy of it. The message itself stays to be read.
pub(crate) fn peek(stream: &UnixStream) -> io::Result<Option<OwnedFd>> {
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
    // SAFETY: the message points to memory that lives through the call.
    let read = unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, flags) };
    if read < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut descriptors = descriptors(&message);
    let request = u32::from_ne_bytes(header[..4].try_into().expect("four bytes"));
    if read as usize == HEADER_BYTES && request == SET_BACKEND_REQ_FD && descriptors.len() == 1 {
        return Ok(descriptors.pop());
    }
    Ok(None)
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

/// Says that the configuration has changed. It never waits: a monitor that does not read its
/// notifications misses them.
fn send_change(socket: &OwnedFd) {
    let mut message = [0; HEADER_BYTES];
    message[..4].copy_from_slice(&CONFIG_CHANGE_MSG.to_ne_bytes());
    message[4..8].copy_from_slice(&VERSION.to_ne_bytes());
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: reads the bytes of a local array.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            message.as_ptr().cast(),
            message.len(),
            flags,
        )
    };
    if sent != message.len() as isize {
        tracing::warn!("the monitor could not be told of the disk's new size");
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Follows the volume until the export ends: tells the monitor of changes, and hangs up when the
/// volume is gone.
pub(crate) fn watch(shared: &Shared) {
    let listener = LISTENERS.fetch_add(1, Ordering::Relaxed);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    while !shared.is_stopping() {
        shared.volume.device.on_change(listener, waker.clone());
        if shared.volume.refresh() {
            shared.with_notifications(send_change);
        }
        if shared.volume.device.is_gone() {
            shared.hang_up();
        }
        std::thread::park();
    }
}
