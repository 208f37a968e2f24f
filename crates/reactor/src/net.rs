//! Connections of a loop: Unix and TCP streams.

use crate::{Handle, Interest};
use std::cell::Cell;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Weak};

/// Polling time of [`Stream::read_soon`] before it sleeps.
const LOOK_NS: u64 = 20_000;
/// Turns that it leaves to others first, who most likely have to answer what came before.
const OTHERS_FIRST: u32 = 4;
/// Data that arrives this soon would have been seen without sleeping: waking up takes time, too.
const SOON_NS: u64 = 2 * LOOK_NS;

/// Calls of the system that move bytes one after the other before other tasks have their turn: a peer may send, or take,
/// as fast as it is served.
const ROW_MAX: u32 = 16;
/// Bytes that move one after the other before that: to copy them takes about 50 µs.
const MOVED_MAX: usize = 256 << 10;
/// How often a connection is examined whose peer has ended its direction.
const HALF_LOOK_NS: u64 = 50_000_000;

pub(crate) enum StreamSocket {
    Unix(UnixStream),
    /// With the peer's address.
    Tcp(TcpStream, SocketAddr),
}

impl StreamSocket {
    fn shutdown(&self, how: Shutdown) {
        // One that its peer has ended already is no error.
        let _ = match self {
            Self::Unix(socket) => socket.shutdown(how),
            Self::Tcp(socket, _) => socket.shutdown(how),
        };
    }
}

/// Ends a connection from any thread, as long as there is one. It keeps none open.
#[derive(Clone)]
pub struct Closer(Weak<StreamSocket>);

impl Closer {
    /// Ends one direction of the connection, or both: a task that reads sees its end.
    pub fn shutdown(&self, how: Shutdown) {
        if let Some(socket) = self.0.upgrade() {
            socket.shutdown(how);
        }
    }
}

/// A connection on its way from one loop to another.
pub struct DetachedStream(Arc<StreamSocket>);

impl DetachedStream {
    /// The connection, on the loop of `handle` from now on.
    ///
    /// # Errors
    /// When the socket is not usable any longer.
    pub fn attach(self, handle: &Handle) -> io::Result<Stream> {
        Ok(Stream::of(handle, self.0))
    }
}

/// A connection. Reading and writing may continue at the same time, one task each.
pub struct Stream {
    handle: Handle,
    socket: Arc<StreamSocket>,
    /// The last read took all that was there: the next one waits first, and saves the system call that
    /// would mostly find nothing.
    drained: Cell<bool>,
    /// The last sleep of [`Stream::read_soon`] was hardly worth it.
    eager: Cell<bool>,
    /// Calls of the system in a row that moved bytes, and how many.
    row: Cell<u32>,
    moved: Cell<usize>,
}

impl Stream {
    pub(crate) fn new(handle: &Handle, socket: StreamSocket) -> io::Result<Self> {
        match &socket {
            StreamSocket::Unix(socket) => socket.set_nonblocking(true)?,
            StreamSocket::Tcp(socket, _) => {
                socket.set_nonblocking(true)?;
                socket.set_nodelay(true)?;
            }
        }
        Ok(Self::of(handle, Arc::new(socket)))
    }

    fn of(handle: &Handle, socket: Arc<StreamSocket>) -> Self {
        Self {
            handle: handle.clone(),
            socket,
            drained: Cell::new(false),
            eager: Cell::new(false),
            row: Cell::new(0),
            moved: Cell::new(0),
        }
    }

    /// Takes the connection off its loop, to continue on another one.
    pub fn detach(self) -> DetachedStream {
        DetachedStream(self.socket)
    }

    /// The descriptor, for socket options.
    pub fn fd(&self) -> RawFd {
        match &*self.socket {
            StreamSocket::Unix(socket) => socket.as_raw_fd(),
            StreamSocket::Tcp(socket, _) => socket.as_raw_fd(),
        }
    }

    /// Ends the connection from any thread.
    pub fn closer(&self) -> Closer {
        Closer(Arc::downgrade(&self.socket))
    }

    /// The address that connections are counted by: the peer's, or one that all peers of a Unix socket share, which is
    /// no host's (0.0.0.0).
    pub fn counted_by(&self) -> IpAddr {
        match &*self.socket {
            StreamSocket::Unix(_) => Ipv4Addr::UNSPECIFIED.into(),
            StreamSocket::Tcp(_, peer) => peer.ip(),
        }
    }

    /// The address that a TCP peer has connected to, and its own.
    ///
    /// # Errors
    /// When the connection is none of TCP, or the system does not tell.
    pub fn addresses(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        match &*self.socket {
            StreamSocket::Unix(_) => Err(ErrorKind::Unsupported.into()),
            StreamSocket::Tcp(socket, peer) => Ok((socket.local_addr()?, *peer)),
        }
    }

    /// Finds a TCP peer whose host is gone, which then does not keep its place forever: after 60 s of silence it is asked
    /// every 10 s, six times. A Unix socket takes the first option and refuses the others, which does no harm.
    pub fn keep_alive(&self) {
        for (level, name, value) in [
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
            (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 60),
            (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 10),
            (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 6),
        ] {
            let value: libc::c_int = value;
            let len = size_of::<libc::c_int>() as libc::socklen_t;
            // SAFETY: the value is read during the call, its length is given with it.
            unsafe { libc::setsockopt(self.fd(), level, name, (&raw const value).cast(), len) };
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
        if self.moved.get() >= MOVED_MAX {
            self.begin_row();
            self.handle.yield_after_much().await;
        } else if self.row.replace(self.row.get() + 1) >= ROW_MAX {
            self.begin_row();
            self.handle.yield_now().await;
        }
    }

    fn begin_row(&self) {
        self.row.set(0);
        self.moved.set(0);
    }

    async fn wait(&self, interest: Interest) -> io::Result<()> {
        self.begin_row();
        self.handle.ready(self.fd(), interest).await
    }

    fn read_now(&self, buf: &mut [u8]) -> io::Result<usize> {
        match &*self.socket {
            StreamSocket::Unix(socket) => (&*socket).read(buf),
            StreamSocket::Tcp(socket, _) => (&*socket).read(buf),
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
        self.moved.set(self.moved.get() + count);
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
            let written = match &*self.socket {
                StreamSocket::Unix(socket) => (&*socket).write_vectored(parts),
                StreamSocket::Tcp(socket, _) => (&*socket).write_vectored(parts),
            };
            match written {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.moved.set(self.moved.get() + count);
                    IoSlice::advance_slices(&mut parts, count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(Interest::Write).await?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Which directions of the connection have ended: the peer's, and both.
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

    /// Whether the connection has ended in both directions or broke: the peer cannot be answered any longer. It asks the
    /// system, for what is worth much more than that.
    pub fn has_ended(&self) -> bool {
        self.ends().1
    }

    /// Waits until the connection has ended in both directions or broke: the peer cannot be answered any longer. One that
    /// sends nothing more may still read; it is examined in intervals, since the kernel's poll reports that end again
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
        self.socket.shutdown(Shutdown::Both);
    }
}
