//! Connections over TCP, TLS or a Unix socket whose reads and writes have time limits.

use crate::Tls;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Time limit of I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Patience {
    /// For each read, and for each write.
    Each(Duration, Duration),
    /// A deadline for all I/O together, however slow the peer is.
    Until(Instant),
}

/// A socket with time limits set by the kernel.
pub trait Socket: Read + Write {
    /// Sets the maximum duration of a read and of a write.
    ///
    /// # Errors
    /// When the system rejects the values.
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

/// A socket with time limits.
pub struct Timed<S> {
    socket: S,
    patience: Patience,
}

impl<S: Socket> Timed<S> {
    /// Applies the limits to a socket.
    ///
    /// # Errors
    /// When the system rejects the values.
    pub fn new(socket: S, patience: Patience) -> io::Result<Self> {
        let mut timed = Self { socket, patience };
        timed.set_patience(patience)?;
        Ok(timed)
    }

    /// Changes the time limits.
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

    /// Sets the time remaining as the limit of the next call.
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
    /// Over a Unix socket.
    Unix(Timed<UnixStream>),
    /// Over TCP, unencrypted.
    Tcp(Timed<TcpStream>),
    /// Over TLS.
    Tls(Box<Tls>),
}

impl Connection {
    /// Changes the time limits.
    ///
    /// # Errors
    /// When the system rejects the values.
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

/// A byte stream.
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
