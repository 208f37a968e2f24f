//! Listening sockets of a loop, and how fast connections are taken from them.
//!
//! A peer connects as fast as its system lets it, and each connection costs its server work: taking it, a task, the first
//! message of a protocol, its end. Connections are therefore taken by a token bucket ([`Pace`]), a few in each turn of the
//! loop, and the others wait in the kernel's queue. The figures belong together:
//! - A burst of 2,048 connections is accepted immediately ([`BURST`]): all sessions of a big host log in together after a restart.
//! - Then 2,000 a second ([`INTERVAL_NS`]), 16 at a time. The kernel's queue holds as many as come in within about a second
//!   ([`BACKLOG`]), so that a client behind an attacker that keeps it full waits no longer than that.
//!
//! Each listener has a bucket of its own: an attacker at one does not slow down another.

use crate::net::{Stream, StreamSocket};
use crate::pace::Pace;
use crate::{Handle, Interest, SECOND_NS, SocketAccess, UnixSocket, may_wait};
use std::cell::Cell;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;

/// Connections that may wait to be taken; the system has a limit of its own (`net.core.somaxconn`).
const BACKLOG: libc::c_int = 2048;
/// Connections that are taken one after the other, and the time of each after these, in nanoseconds.
const BURST: u64 = 2048;
const INTERVAL_NS: u64 = SECOND_NS / 2000;
const _: () = assert!(BACKLOG as u64 * INTERVAL_NS <= 2 * SECOND_NS);
/// After an overload, this many are accepted together: waking up for each would cost more than accepting it.
const TOGETHER: u64 = 16;
/// Connections that are taken before other tasks have their turn.
const ROW_MAX: u32 = 4;

/// Lets more connections wait than the standard library asks for: hosts that log in simultaneously would
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
        may_wait();
        let explain = |error: io::Error| {
            let advice = match error.kind() {
                ErrorKind::AddrInUse => {
                    "in use by another program: stop the program or choose another"
                }
                ErrorKind::PermissionDenied => {
                    "permission denied: choose another or run as a user with permission"
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

    /// The address, with the port that the system chose when 0 was requested.
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
    pace: Pace,
    /// Connections taken in a row.
    row: Cell<u32>,
}

impl Listener {
    /// Takes connections of an address on a loop.
    pub fn new(handle: &Handle, socket: Bound) -> Self {
        Self {
            handle: handle.clone(),
            socket,
            pace: Pace::new(BURST, INTERVAL_NS),
            row: Cell::new(0),
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

    /// Ends it. What is listened at is to be dropped by a thread that may wait for a file system.
    pub fn end(self) -> Bound {
        self.socket
    }

    /// The address, with the port that the system chose when 0 was requested.
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

    fn accept_now(&self) -> io::Result<StreamSocket> {
        match &self.socket.0 {
            ListenSocket::Unix(socket) => {
                let (stream, _) = socket.listener().accept()?;
                Ok(StreamSocket::Unix(stream))
            }
            ListenSocket::Tcp(socket) => {
                let (stream, peer) = socket.accept()?;
                Ok(StreamSocket::Tcp(stream, peer))
            }
        }
    }

    /// Waits until one more connection may be taken.
    async fn take_turns(&self) {
        if self.row.get() >= ROW_MAX {
            self.row.set(0);
            self.handle.yield_now().await;
        }
        while let Err(free_ns) = self.pace.take(self.handle.seen_ns(), TOGETHER) {
            self.row.set(0);
            self.handle.sleep_until(free_ns).await;
        }
    }

    /// Waits for a connection and takes it, at the pace of this listener.
    ///
    /// # Errors
    /// When the system refuses (out of descriptors, say); trying again later may succeed.
    pub async fn accept(&self) -> io::Result<Stream> {
        self.take_turns().await;
        loop {
            match self.accept_now() {
                Ok(socket) => {
                    self.row.set(self.row.get() + 1);
                    return Stream::new(&self.handle, socket);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.row.set(0);
                    self.handle.ready(self.fd(), Interest::Read).await?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;
    use std::net::TcpStream;
    use std::rc::Rc;

    const MS: u64 = 1_000_000;

    struct Hand(Rc<Cell<u64>>);

    impl Clock for Hand {
        fn now_ns(&self) -> u64 {
            self.0.get()
        }
    }

    /// Sees how many connections of those that wait are taken as time passes.
    #[test]
    fn connections_that_wait_are_taken_at_the_listeners_pace_and_a_few_in_a_turn() {
        const TAKEN: usize = 40;
        let now = Rc::new(Cell::new(5));
        let handle = Handle::simulated(Box::new(Hand(now.clone())), 1).unwrap();
        let any = ListenAddress::Tcp("127.0.0.1:0".parse().unwrap());
        let mut listener = Listener::bind(&handle, &any).unwrap();
        listener.pace = Pace::new(10, MS);
        let Ok(ListenAddress::Tcp(address)) = listener.address() else {
            panic!("another address")
        };
        let waiting: Vec<_> = (0..TAKEN)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        let taken = Rc::new(Cell::new(0));
        let count = taken.clone();
        handle.spawn(async move {
            let mut held = Vec::new();
            // The last of those that are here: for another one it would ask the kernel.
            while held.len() < TAKEN {
                held.push(listener.accept().await.unwrap());
                count.set(held.len());
            }
        });
        handle.run_ready(1);
        assert_eq!(taken.get(), ROW_MAX as usize, "in one turn");
        handle.run_ready(usize::MAX);
        assert_eq!(taken.get(), 10, "the burst");
        let mut seen = Vec::new();
        for _ in 0..50 {
            now.set(now.get() + MS);
            handle.fire_timers();
            handle.run_ready(usize::MAX);
            seen.push(taken.get());
        }
        assert_eq!(seen[0], 10, "{TOGETHER} at a time, or a burst");
        assert_eq!(seen[9], 20);
        assert_eq!(seen[19], 30);
        assert_eq!(seen[49], TAKEN);
        drop(waiting);
    }
}
