//! Inspects messages before they are read.
//!
//! The `vhost` crate reads messages and closes unexpected descriptors, which can block: closing a
//! file of a FUSE mount waits for its server. So messages are peeked, and one with a descriptor of
//! a type that no message uses, or with truncated ancillary data, is never read: closing the socket
//! lets the kernel release it without blocking us.

use crate::event::is_event;
use crate::shared::is_in_memory;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Size of a message header in bytes: request, flags, size.
pub(crate) const HEADER_BYTES: usize = 12;
const SET_BACKEND_REQ_FD: u32 = 21;
/// Maximum number of descriptors of a message.
const DESCRIPTORS_MAX: usize = 32;
/// Maximum number of threads of an export that close descriptors.
const CLOSING_MAX: usize = 4;

/// Result of peeking.
#[derive(Debug)]
pub(crate) enum Peeked {
    /// It can be read.
    Plain,
    /// It passes the socket of notifications, of which this is a duplicate.
    Notifications(OwnedFd),
    /// It must not be read. The descriptors are duplicates of those attached.
    Foreign(Vec<OwnedFd>),
}

/// Whether a descriptor is readable or closed within `wait`.
fn is_readable(fd: BorrowedFd<'_>, wait: Duration) -> bool {
    let mut entry = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let wait_ms = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: one entry that is valid during the call.
    unsafe { libc::poll(&raw mut entry, 1, wait_ms) > 0 }
}

/// Waits for the first message, or the end of the connection. False if there was neither for
/// `silent_max` and another connection is waiting.
pub(crate) fn speaks(stream: &UnixStream, listener: &UnixListener, silent_max: Duration) -> bool {
    let since = Instant::now();
    while !is_readable(stream.as_fd(), Duration::from_secs(1)) {
        if since.elapsed() >= silent_max && is_readable(listener.as_fd(), Duration::ZERO) {
            return false;
        }
    }
    true
}

/// Waits for the next message and peeks at it; it stays in the socket.
///
/// # Errors
/// When the socket has failed.
pub(crate) fn peek(stream: &UnixStream) -> io::Result<Peeked> {
    let mut header = [0u8; HEADER_BYTES];
    let mut part = libc::iovec {
        iov_base: header.as_mut_ptr().cast(),
        iov_len: header.len(),
    };
    const SPACE: usize = size_of::<libc::cmsghdr>() + 4 * DESCRIPTORS_MAX;
    let mut ancillary = [0u64; SPACE / 8];
    // SAFETY: all zeroes are an empty message.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = ancillary.as_mut_ptr().cast();
    message.msg_controllen = SPACE;
    let flags = libc::MSG_PEEK | libc::MSG_CMSG_CLOEXEC;
    let read = loop {
        // SAFETY: the message points to memory that is valid during the call.
        let read = unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, flags) };
        if let Ok(read) = usize::try_from(read) {
            break read;
        }
        let error = io::Error::last_os_error();
        // The time limit of a message does not apply between messages.
        let goes_on = [io::ErrorKind::Interrupted, io::ErrorKind::WouldBlock];
        if !goes_on.contains(&error.kind()) {
            return Err(error);
        }
    };
    let mut descriptors = descriptors(&message);
    let is_cut = message.msg_flags & libc::MSG_CTRUNC != 0;
    // A header split in two could have descriptors with either part; no monitor sends one that way.
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

/// Whether a descriptor is a Unix stream socket.
fn is_socket(fd: BorrowedFd<'_>) -> bool {
    let option = |name| {
        let (mut value, mut len) = (0i32, 4);
        // SAFETY: a system call on an open descriptor, with space for the result.
        let result = unsafe {
            let at = (&raw mut value).cast();
            libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, name, at, &raw mut len)
        };
        (result == 0).then_some(value)
    };
    option(libc::SO_DOMAIN) == Some(libc::AF_UNIX)
        && option(libc::SO_TYPE) == Some(libc::SOCK_STREAM)
}

/// Takes ownership of all descriptors of a message, so that none is leaked.
fn descriptors(message: &libc::msghdr) -> Vec<OwnedFd> {
    let mut found = Vec::new();
    // SAFETY: the kernel filled the ancillary memory that `message` points to.
    let mut entry = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !entry.is_null() {
        // SAFETY: not null, so it points to a header within the ancillary memory.
        let (level, kind, len) =
            unsafe { ((*entry).cmsg_level, (*entry).cmsg_type, (*entry).cmsg_len) };
        if level == libc::SOL_SOCKET && kind == libc::SCM_RIGHTS {
            // SAFETY: the data of an entry follows its header.
            let data = unsafe { libc::CMSG_DATA(entry) }.cast::<i32>();
            // SAFETY: arithmetic on lengths only.
            let bytes = len - unsafe { libc::CMSG_LEN(0) } as usize;
            for index in 0..bytes / size_of::<i32>() {
                // SAFETY: the entry contains that many descriptors, which are ours from here on.
                found.push(unsafe { OwnedFd::from_raw_fd(data.add(index).read_unaligned()) });
            }
        }
        // SAFETY: as for the first header.
        entry = unsafe { libc::CMSG_NXTHDR(message, entry) };
    }
    found
}

/// Closes descriptors on threads of their own, where blocking is harmless; the number of threads is
/// limited.
#[derive(Default)]
pub(crate) struct Closing(Arc<()>);

impl Closing {
    /// Whether the limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        Arc::strong_count(&self.0) > CLOSING_MAX
    }

    /// Closes descriptors on a thread.
    ///
    /// # Errors
    /// When no thread can be created; then they stay open.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::tests::{Sharing, memory_file};
    use std::fs::File;
    use std::io::Write;
    use vmm_sys_util::sock_ctrl_msg::ScmSocket;

    fn event() -> OwnedFd {
        // SAFETY: a system call without memory access.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        assert!(fd >= 0, "no event descriptor");
        // SAFETY: a new descriptor.
        unsafe { OwnedFd::from_raw_fd(fd) }
    }

    fn header(request: u32) -> Vec<u8> {
        let words = [request, 1, 0];
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn messages_with_foreign_descriptors_are_not_read() {
        let memory = memory_file(4096, Sharing::Sealed);
        let (event, socket) = (event(), UnixStream::pair().unwrap().0);
        let folder = File::open("/").unwrap();
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let datagrams = std::os::unix::net::UnixDatagram::unbound().unwrap();
        let [memory, event, socket] = [memory.as_raw_fd(), event.as_raw_fd(), socket.as_raw_fd()];
        let foreign = [
            folder.as_raw_fd(),
            address.as_raw_fd(),
            datagrams.as_raw_fd(),
        ];
        let check = |request, bytes: usize, files: &[i32]| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            theirs
                .send_with_fds(&[&header(request)[..bytes]], files)
                .unwrap();
            peek(&ours).unwrap()
        };
        let many = [memory; 30];
        for files in [
            &[][..],
            &[memory],
            &[event],
            &[memory, event, socket],
            &many,
        ] {
            assert!(matches!(check(5, 12, files), Peeked::Plain), "{files:?}");
        }
        for file in foreign {
            for files in [&[file][..], &[event, file], &[file; 20]] {
                let peeked = check(SET_BACKEND_REQ_FD, 12, files);
                let Peeked::Foreign(copies) = peeked else {
                    panic!("{files:?}: {peeked:?}");
                };
                assert_eq!(copies.len(), files.len());
            }
        }
        assert!(matches!(check(5, 11, &[]), Peeked::Foreign(_)), "a part");
        let peeked = check(SET_BACKEND_REQ_FD, 12, &[socket]);
        assert!(matches!(peeked, Peeked::Notifications(_)), "{peeked:?}");
    }

    #[test]
    fn closing_threads_are_bounded() {
        let closing = Closing::default();
        let held: Vec<_> = (0..CLOSING_MAX).map(|_| closing.0.clone()).collect();
        assert!(closing.is_full());
        drop(held);
        closing.close(vec![event()]).unwrap();
        while Arc::strong_count(&closing.0) > 1 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn silent_connection_yields_only_to_waiting_ones() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("convect-speaks-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let mut theirs = UnixStream::connect(&path).unwrap();
        let (ours, _) = listener.accept().unwrap();
        let silent = |wait| !speaks(&ours, &listener, wait);
        let other = UnixStream::connect(&path).unwrap();
        assert!(silent(Duration::ZERO));
        drop(listener.accept().unwrap());
        drop(other);
        let speaker = std::thread::spawn(move || theirs.write_all(&[1]).map(|()| theirs));
        assert!(!silent(Duration::ZERO), "no other connection waits");
        drop(speaker.join());
        std::fs::remove_file(&path).unwrap();
    }
}
