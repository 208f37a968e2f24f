//! A connection, whichever way it went.

use crate::Failure;
use remote::{Server, Tls};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// The way to one daemon.
pub enum Way {
    /// Its Unix socket, on this host.
    Socket(PathBuf),
    /// TLS.
    Server(Box<Server>),
}

/// A connection to a daemon.
pub enum Wire {
    /// By its Unix socket.
    Socket(UnixStream),
    /// By TLS.
    Tls(Box<Tls>),
}

impl Way {
    /// The daemon as messages name it.
    pub fn name(&self) -> String {
        match self {
            Self::Socket(path) => path.display().to_string(),
            Self::Server(server) => server.address().to_string(),
        }
    }

    /// The `Host` of requests (RFC 9110, section 7.2).
    pub fn host(&self) -> String {
        match self {
            Self::Socket(_) => "convect".to_owned(),
            Self::Server(server) => {
                let address = server.address().to_string();
                address.trim_start_matches("https://").to_owned()
            }
        }
    }

    /// A line of a request's head that says who asks; empty where the system says so.
    pub fn authorization(&self) -> String {
        match self {
            Self::Socket(_) => String::new(),
            Self::Server(server) => format!("Authorization: Bearer {}\r\n", server.token()),
        }
    }

    /// A new connection.
    ///
    /// # Errors
    /// When no daemon answers, or another than the one that is known.
    pub fn connect(&self) -> Result<Wire, Failure> {
        match self {
            Self::Socket(path) => match UnixStream::connect(path) {
                Ok(stream) => Ok(Wire::Socket(stream)),
                Err(error) => Err(self.unreachable(&error)),
            },
            Self::Server(server) => Ok(Wire::Tls(Box::new(server.connect()?))),
        }
    }

    /// Why the daemon could not be asked.
    pub fn unreachable(&self, error: &io::Error) -> Failure {
        let path = match self {
            Self::Socket(path) => path.display(),
            Self::Server(server) => return server.unreachable(error).into(),
        };
        Failure::Failed(match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => format!(
                "no daemon answers at {path}: start it with `convect serve` or name its socket \
                 with --socket"
            ),
            ErrorKind::PermissionDenied => {
                format!("no permission to use {path}: be root, the daemon's user or in its group")
            }
            ErrorKind::InvalidInput => format!("{path} cannot be a socket: {error}"),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                format!("the daemon at {path} did not answer in time: see its log")
            }
            _ => format!("the daemon at {path} cannot be asked: {error}: see its log"),
        })
    }
}

impl Wire {
    /// How long a read and a write may take.
    ///
    /// # Errors
    /// When the system does not take that.
    pub fn set_patience(&self, reading: Duration, writing: Duration) -> io::Result<()> {
        let (reading, writing) = (Some(reading), Some(writing));
        match self {
            Self::Socket(stream) => stream
                .set_read_timeout(reading)
                .and_then(|()| stream.set_write_timeout(writing)),
            Self::Tls(tls) => tls.set_patience(reading, writing),
        }
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Socket(stream) => stream.read(into),
            Self::Tls(tls) => tls.read(into),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Socket(stream) => stream.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Socket(stream) => stream.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}
