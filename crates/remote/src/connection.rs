//! A connection to a server, whichever way it goes, whose reads and writes are bounded in time.

use crate::Tls;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long is waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Patience {
    /// So long for each read, and for each write.
    Each(Duration, Duration),
    /// Until then for all of them together, however slow the other side is.
    Until(Instant),
}

/// A socket that the system gives time limits.
pub trait Socket: Read + Write {
    /// Sets how long a read and a write may take.
    ///
    /// # Errors
    /// When the system does not take that.
    fn set_timeouts(&self, reading: Duration, writing: Duration) -> io::Result<()>;
}

impl Socket for TcpStream {
    fn set_timeouts(&self, reading: Duration, writing: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(reading))?;
        self.set_write_timeout(Some(writing))
    }
}

impl Socket for UnixStream {
    fn set_timeouts(&self, reading: Duration, writing: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(reading))?;
        self.set_write_timeout(Some(writing))
    }
}

/// A socket whose reads and writes end in time.
pub struct Timed<S> {
    socket: S,
    patience: Patience,
}

impl<S: Socket> Timed<S> {
    /// The socket, with this patience.
    ///
    /// # Errors
    /// When the system does not take that.
    pub fn new(socket: S, patience: Patience) -> io::Result<Self> {
        let mut timed = Self { socket, patience };
        timed.set_patience(patience)?;
        Ok(timed)
    }

    /// Changes how long is waited.
    ///
    /// # Errors
    /// As [`Timed::new`].
    pub fn set_patience(&mut self, patience: Patience) -> io::Result<()> {
        self.patience = patience;
        match patience {
            Patience::Each(reading, writing) => self.socket.set_timeouts(reading, writing),
            Patience::Until(_) => Ok(()),
        }
    }

    /// Gives the next call what is left of the time.
    fn limit(&self) -> io::Result<()> {
        let Patience::Until(end) = self.patience else {
            return Ok(());
        };
        let left = end.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(ErrorKind::TimedOut.into()),
            false => self.socket.set_timeouts(left, left),
        }
    }
}

impl<S: Socket> Read for Timed<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.limit()?;
        self.socket.read(into)
    }
}

impl<S: Socket> Write for Timed<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.limit()?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// A connection to a server.
pub enum Connection {
    /// By a Unix socket.
    Unix(Timed<UnixStream>),
    /// By TCP, in the clear.
    Tcp(Timed<TcpStream>),
    /// By TLS.
    Tls(Box<Tls>),
}

impl Connection {
    /// Changes how long is waited.
    ///
    /// # Errors
    /// When the system does not take that.
    pub fn set_patience(&mut self, patience: Patience) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_patience(patience),
            Self::Tcp(stream) => stream.set_patience(patience),
            Self::Tls(stream) => stream.set_patience(patience),
        }
    }

    fn stream(&mut self) -> &mut dyn ReadWrite {
        match self {
            Self::Unix(stream) => stream,
            Self::Tcp(stream) => stream,
            Self::Tls(stream) => stream.as_mut(),
        }
    }
}

/// What is read and written.
trait ReadWrite: Read + Write {}

impl<S: Read + Write> ReadWrite for S {}

impl Read for Connection {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream().read(into)
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream().flush()
    }
}
