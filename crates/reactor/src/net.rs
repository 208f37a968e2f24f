//! Sockets of a loop: Unix and TCP streams.

use crate::{Handle, Interest, SocketAccess, UnixSocket};
use std::cell::Cell;
use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// Connections that may wait to be taken; the system has a limit of its own (`net.core.somaxconn`).
const BACKLOG: libc::c_int = 4096;

/// How long [`Stream::read_soon`] looks before it sleeps.
const LOOK_NS: u64 = 20_000;
/// Turns that it leaves to others first, who most likely have to answer what came before.
const OTHERS_FIRST: u32 = 4;
/// What comes so soon would have been seen without sleeping: waking up takes its time, too.
const SOON_NS: u64 = 2 * LOOK_NS;

/// Calls of the system that move bytes one after the other before other tasks have their turn: a peer may send, or take,
/// as fast as it is served.
const ROW_MAX: u32 = 16;
/// How often a connection is looked at whose peer has ended its direction.
const HALF_LOOK_NS: u64 = 50_000_000;

/// Lets more connections wait than the standard library asks for: hosts that log in all at once would
/// else be left to try again after a second, and after two and four.
fn deepen(socket: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: the descriptor is open during the call, which only changes the length of the queue.
    match unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Where connections are taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ListenAddress {
    /// A socket in the file system.
    Unix(PathBuf),
    /// An address and port.
    Tcp(SocketAddr),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

enum ListenSocket {
    Unix(UnixSocket),
    Tcp(TcpListener),
}

/// An address that is listened at, before a loop takes connections from it.
pub struct Bound(ListenSocket);

impl Bound {
    /// Listens. A socket file left behind by a dead program is replaced, and its owner and mode are set by `access`.
    /// File systems may take their time: not to be called on an engine loop.
    ///
    /// # Errors
    /// One sentence that says what to do: path too long, address in use, no permission.
    pub fn new(address: &ListenAddress, access: &SocketAccess) -> io::Result<Self> {
        let explain = |error: io::Error| {
            let advice = match error.kind() {
                ErrorKind::AddrInUse => "another program listens there: stop it or choose another",
                ErrorKind::PermissionDenied => {
                    "no permission: choose another or run as a user that may"
                }
                ErrorKind::AddrNotAvailable => "this host has no such address",
                _ => "cannot listen there",
            };
            io::Error::new(error.kind(), format!("{address}: {advice} ({error})"))
        };
        Ok(Self(match address {
            ListenAddress::Unix(path) => ListenSocket::Unix(UnixSocket::bind(path, access)?),
            ListenAddress::Tcp(at) => {
                let socket = TcpListener::bind(at).map_err(explain)?;
                deepen(&socket)?;
                socket.set_nonblocking(true)?;
                ListenSocket::Tcp(socket)
            }
        }))
    }

    /// The address, with the port that the system chose when 0 was asked for.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn address(&self) -> io::Result<ListenAddress> {
        Ok(match &self.0 {
            ListenSocket::Unix(socket) => ListenAddress::Unix(socket.path().to_owned()),
            ListenSocket::Tcp(socket) => ListenAddress::Tcp(socket.local_addr()?),
        })
    }
}

/// Takes connections; removes its socket file when dropped.
pub struct Listener {
    handle: Handle,
    socket: Bound,
}

impl Listener {
    /// Takes connections of an address on a loop.
    pub fn new(handle: &Handle, socket: Bound) -> Self {
        Self {
            handle: handle.clone(),
            socket,
        }
    }

    /// Listens, with the default access to a socket file ([`Bound::new`]).
    ///
    /// # Errors
    /// As [`Bound::new`].
    pub fn bind(handle: &Handle, address: &ListenAddress) -> io::Result<Self> {
        Ok(Self::new(
            handle,
            Bound::new(address, &SocketAccess::default())?,
        ))
    }

    /// The address, with the port that the system chose when 0 was asked for.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn address(&self) -> io::Result<ListenAddress> {
        self.socket.address()
    }

    fn fd(&self) -> RawFd {
        match &self.socket.0 {
            ListenSocket::Unix(socket) => socket.listener().as_raw_fd(),
            ListenSocket::Tcp(socket) => socket.as_raw_fd(),
        }
    }

    /// Waits for a connection and takes it.
    ///
    /// # Errors
    /// When the system refuses (out of descriptors, say); trying again later may succeed.
    pub async fn accept(&self) -> io::Result<Stream> {
        loop {
            let taken = match &self.socket.0 {
                ListenSocket::Unix(socket) => socket
                    .listener()
                    .accept()
                    .map(|(stream, _)| StreamSocket::Unix(stream)),
                ListenSocket::Tcp(socket) => {
                    socket.accept().map(|(stream, _)| StreamSocket::Tcp(stream))
                }
            };
            match taken {
                Ok(socket) => return Stream::new(&self.handle, socket),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.handle.ready(self.fd(), Interest::Read).await?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

enum StreamSocket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// A connection on its way from one loop to another.
pub struct DetachedStream(StreamSocket);

impl DetachedStream {
    /// The connection, on the loop of `handle` from now on.
    ///
    /// # Errors
    /// When the socket is not usable any more.
    pub fn attach(self, handle: &Handle) -> io::Result<Stream> {
        Stream::new(handle, self.0)
    }
}

/// A connection. Reading and writing may go on at the same time, one task each.
pub struct Stream {
    handle: Handle,
    socket: StreamSocket,
    /// The last read took all that was there: the next one waits first, and saves the system call that
    /// would mostly find nothing.
    drained: Cell<bool>,
    /// The last sleep of [`Stream::read_soon`] was hardly worth it.
    eager: Cell<bool>,
    /// Calls of the system in a row that moved bytes.
    row: Cell<u32>,
}

impl Stream {
    fn new(handle: &Handle, socket: StreamSocket) -> io::Result<Self> {
        match &socket {
            StreamSocket::Unix(socket) => socket.set_nonblocking(true)?,
            StreamSocket::Tcp(socket) => {
                socket.set_nonblocking(true)?;
                socket.set_nodelay(true)?;
            }
        }
        Ok(Self {
            handle: handle.clone(),
            socket,
            drained: Cell::new(false),
            eager: Cell::new(false),
            row: Cell::new(0),
        })
    }

    /// Takes the connection off its loop, to go on on another one.
    pub fn detach(self) -> DetachedStream {
        DetachedStream(self.socket)
    }

    /// The descriptor, for socket options.
    pub fn fd(&self) -> RawFd {
        match &self.socket {
            StreamSocket::Unix(socket) => socket.as_raw_fd(),
            StreamSocket::Tcp(socket) => socket.as_raw_fd(),
        }
    }

    /// Reads what is there, at most `buf.len()` bytes; 0 at the end of the stream.
    ///
    /// # Errors
    /// When the connection broke.
    pub async fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        if self.drained.get() {
            self.wait(Interest::Read).await?;
            self.drained.set(false);
        }
        loop {
            self.take_turns().await;
            match self.read_now(buf) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(Interest::Read).await?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(count) => return Ok(self.took(count, buf.len())),
                Err(error) => return Err(error),
            }
        }
    }

    /// Before a call of the system: lets others have their turn after many in a row.
    async fn take_turns(&self) {
        if self.row.replace(self.row.get() + 1) >= ROW_MAX {
            self.row.set(0);
            self.handle.yield_now().await;
        }
    }

    async fn wait(&self, interest: Interest) -> io::Result<()> {
        self.row.set(0);
        self.handle.ready(self.fd(), interest).await
    }

    fn read_now(&self, buf: &mut [u8]) -> io::Result<usize> {
        match &self.socket {
            StreamSocket::Unix(socket) => (&*socket).read(buf),
            StreamSocket::Tcp(socket) => (&*socket).read(buf),
        }
    }

    /// As [`Stream::read`], for a peer that may send one request after the other: it is looked for during 20 µs, and
    /// other tasks run meanwhile, before it sleeps. One that pauses costs nothing: it only looks when the last
    /// sleep was hardly worth it.
    ///
    /// # Errors
    /// When the connection broke.
    pub async fn read_soon(&self, buf: &mut [u8]) -> io::Result<usize> {
        let begun_ns = self.handle.now_ns();
        let mut left = OTHERS_FIRST;
        loop {
            if self.eager.get() && self.drained.get() && left > 0 && self.handle.has_ready() {
                // A peer that waits for its answer sends nothing before it has that.
                left -= 1;
                self.handle.yield_now().await;
                continue;
            }
            let read = match self.drained.get() && !self.eager.get() {
                true => Err(ErrorKind::WouldBlock.into()),
                false => {
                    self.take_turns().await;
                    self.read_now(buf)
                }
            };
            match read {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.eager.get() && self.handle.now_ns() < begun_ns + LOOK_NS {
                        self.handle.yield_now().await;
                        continue;
                    }
                    self.wait(Interest::Read).await?;
                    self.drained.set(false);
                    self.eager.set(self.handle.now_ns() < begun_ns + SOON_NS);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(count) => return Ok(self.took(count, buf.len())),
                Err(error) => return Err(error),
            }
        }
    }

    fn took(&self, count: usize, of: usize) -> usize {
        self.drained.set(count > 0 && count < of);
        count
    }

    /// Fills `buf`.
    ///
    /// # Errors
    /// `UnexpectedEof` when the stream ends first.
    pub async fn read_exact(&self, buf: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < buf.len() {
            match self.read(&mut buf[filled..]).await? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => filled += count,
            }
        }
        Ok(())
    }

    /// Writes all of the parts, in order.
    ///
    /// # Errors
    /// When the connection broke.
    pub async fn write_all(&self, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            self.take_turns().await;
            let written = match &self.socket {
                StreamSocket::Unix(socket) => (&*socket).write_vectored(parts),
                StreamSocket::Tcp(socket) => (&*socket).write_vectored(parts),
            };
            match written {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => IoSlice::advance_slices(&mut parts, count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(Interest::Write).await?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What of the connection has ended: that the peer sends, and all of it.
    fn ends(&self) -> (bool, bool) {
        let mut asked = libc::pollfd {
            fd: self.fd(),
            events: libc::POLLRDHUP,
            revents: 0,
        };
        // SAFETY: one entry, which lives during the call; it does not wait.
        let told = unsafe { libc::poll(&raw mut asked, 1, 0) };
        let has = |events| told > 0 && asked.revents & events != 0;
        let all = has(libc::POLLHUP | libc::POLLERR | libc::POLLNVAL);
        (has(libc::POLLRDHUP), all)
    }

    /// Waits until the connection has ended in both directions or broke: the peer cannot be answered any more. One that
    /// sends nothing more may still read; it is looked at in intervals, as the kernel's poll tells of that end again
    /// and again.
    pub async fn ended(&self) {
        loop {
            match self.ends() {
                (_, true) => return,
                (true, false) => self.handle.sleep(HALF_LOOK_NS).await,
                (false, false) => {
                    if self.handle.ready(self.fd(), Interest::End).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Ends the connection in both directions: a task that reads sees its end.
    pub fn shutdown(&self) {
        let _ = match &self.socket {
            StreamSocket::Unix(socket) => socket.shutdown(std::net::Shutdown::Both),
            StreamSocket::Tcp(socket) => socket.shutdown(std::net::Shutdown::Both),
        };
    }
}
