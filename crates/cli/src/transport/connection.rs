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
    /// The daemon as messages name it.
    pub fn name(&self) -> String {
        match self {
            Self::Socket(path) => path.display().to_string(),
            Self::Server(server) => server.address().to_string(),
        }
    }

    /// A request with what is shown to the daemon; by its socket the system says who asks.
    pub fn authorized(&self, request: request::Builder) -> request::Builder {
        match self {
            Self::Socket(_) => request
                .header("Host", "convect")
                .header("Connection", "close"),
            Self::Server(server) => server.authorized(request),
        }
    }

    /// A new connection, on which so long is waited.
    ///
    /// # Errors
    /// When no daemon answers, or another than the one that is known.
    pub fn connect(&self, patience: Patience) -> Result<Connection, Failure> {
        let connected = match self {
            Self::Socket(path) => UnixStream::connect(path)
                .and_then(|stream| Timed::new(stream, patience))
                .map(Connection::Unix),
            Self::Server(server) => {
                let mut tls = server.connect()?;
                tls.set_patience(patience)
                    .map(|()| Connection::Tls(Box::new(tls)))
            }
        };
        connected.map_err(|error| self.unreachable(&error))
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
