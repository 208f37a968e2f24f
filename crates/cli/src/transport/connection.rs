//! The transport to one daemon: connections and the credentials of requests.

use crate::Failure;
use remote::{Connection, Patience, Server, Timed, request};
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// The transport to one daemon.
pub enum Transport {
    /// Its Unix socket, on this host.
    Socket(PathBuf),
    /// TLS.
    Server(Box<Server>),
}

impl Transport {
    /// The daemon's name in messages.
    pub fn name(&self) -> String {
        match self {
            Self::Socket(path) => path.display().to_string(),
            Self::Server(server) => server.address().to_string(),
        }
    }

    /// Adds the credentials to a request; over a Unix socket the kernel authenticates the peer.
    pub fn authorized(&self, request: request::Builder) -> request::Builder {
        match self {
            Self::Socket(_) => request
                .header("Host", "convect")
                .header("Connection", "close"),
            Self::Server(server) => server.authorized(request),
        }
    }

    /// Opens a connection with this time limit.
    ///
    /// # Errors
    /// When no daemon responds, or its certificate does not match.
    pub fn connect(&self, patience: Patience) -> Result<Connection, Failure> {
        let connected = match self {
            Self::Socket(path) => UnixStream::connect(path)
                .and_then(|stream| Timed::new(stream, patience))
                .map(Connection::Unix),
            Self::Server(server) => {
                let connected = server.connect();
                let mut tls = connected.map_err(|error| Failure::unreachable(&error))?;
                tls.set_patience(patience)
                    .map(|()| Connection::Tls(Box::new(tls)))
            }
        };
        connected.map_err(|error| self.unreachable(&error))
    }

    /// Why the daemon is unreachable.
    pub fn unreachable(&self, error: &io::Error) -> Failure {
        let path = match self {
            Self::Socket(path) => path.display(),
            Self::Server(server) => return Failure::unreachable(&server.unreachable(error)),
        };
        Failure::Unreachable(match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => format!(
                "no daemon responds at {path}: start it with `convect serve` or specify its \
                 socket with --socket"
            ),
            ErrorKind::PermissionDenied => {
                format!(
                    "permission denied for {path}: run as root, as the daemon's user or in its group"
                )
            }
            ErrorKind::InvalidInput => format!("{path} is not a valid socket path: {error}"),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                format!("the daemon at {path} did not respond in time: see its log")
            }
            _ => format!("request to the daemon at {path} failed: {error}: see its log"),
        })
    }
}
