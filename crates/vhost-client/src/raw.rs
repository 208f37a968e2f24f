//! A connection that sends arbitrary messages, for tests of an export's reaction.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use vmm_sys_util::sock_ctrl_msg::ScmSocket;

/// Version of the protocol, in a message's flags.
const VERSION: u32 = 1;
/// An answer is wanted, in a message's flags.
const NEED_REPLY: u32 = 8;
/// Longest answer in bytes.
const ANSWER_MAX: usize = 4096;
const HEADER_BYTES: usize = 12;

/// A connection without any state of the protocol.
pub struct RawConnection(UnixStream);

impl RawConnection {
    /// Connects; returns are waited for as long as `timeout`.
    ///
    /// # Errors
    /// When there is no such export.
    pub fn connect(path: &Path, timeout: Duration) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Self(stream))
    }

    /// Sends bytes with descriptors as they are.
    ///
    /// # Errors
    /// When the other side has ended the connection.
    pub fn send_bytes(&self, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<()> {
        let sent = self.0.send_with_fds(&[bytes], descriptors)?;
        match sent == bytes.len() {
            true => Ok(()),
            false => Err(io::Error::other("only a part could be sent")),
        }
    }

    /// Sends a message; the flags are those beside the version.
    ///
    /// # Errors
    /// As [`Self::send_bytes`].
    pub fn send(
        &self,
        request: u32,
        flags: u32,
        body: &[u8],
        descriptors: &[RawFd],
    ) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
        for word in [request, flags | VERSION, body.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(body);
        self.send_bytes(&bytes, descriptors)
    }

    /// Waits for a message: its request and its body.
    ///
    /// # Errors
    /// `UnexpectedEof` when the other side has ended the connection, or that none came in time.
    pub fn receive(&self) -> io::Result<(u32, Vec<u8>)> {
        let mut header = [0; HEADER_BYTES];
        (&self.0).read_exact(&mut header)?;
        let word = |at: usize| {
            let bytes = header[at..at + 4].try_into().expect("four bytes");
            u32::from_le_bytes(bytes)
        };
        let len = word(8) as usize;
        if len > ANSWER_MAX {
            return Err(io::Error::other("an answer is too long"));
        }
        let mut body = vec![0; len];
        (&self.0).read_exact(&mut body)?;
        Ok((word(0), body))
    }

    /// Sends a message and waits for the number that answers it: 0 for success where it has no other answer.
    ///
    /// # Errors
    /// As [`Self::send_bytes`] and [`Self::receive`].
    pub fn ask(&self, request: u32, body: &[u8], descriptors: &[RawFd]) -> io::Result<u64> {
        self.send(request, NEED_REPLY, body, descriptors)?;
        let (_, answer) = self.receive()?;
        match answer.get(..8) {
            Some(bytes) => Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes"))),
            None => Err(io::Error::other("an answer is too short")),
        }
    }
}

/// A memory file of `len` bytes, which every process that has it can truncate.
///
/// # Errors
/// When the system has none.
pub fn memory_file(len: u64) -> io::Result<File> {
    // SAFETY: plain system call with a constant name.
    let fd = unsafe { libc::memfd_create(c"memory".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a fresh descriptor.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(len)?;
    Ok(file)
}
