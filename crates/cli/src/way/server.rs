//! A daemon on another host: its address, how its certificate is known, and the token that it is shown.

use super::pin::{OtherCertificate, Pinned};
use super::tls::Tls;
use super::{Address, Pin};
use crate::Failure;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, ClientConnection, RootCertStore};
use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long each of a host's addresses, and the handshake, may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Addresses of a host that are tried.
const ADDRESSES_MAX: usize = 4;

/// How a server's certificate is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trust {
    /// It is this one.
    Pin(Pin),
    /// One of those in this file (PEM) signed it, and it is for the server's name, now.
    Authorities(PathBuf),
}

/// A daemon on another host.
pub struct Server {
    address: Address,
    config: Arc<ClientConfig>,
    token: String,
}

/// TLS 1.3 (RFC 8446), as daemons speak it.
fn config(pinned: Option<Pin>, roots: Option<RootCertStore>) -> Result<Arc<ClientConfig>, Failure> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| Failure::Failed(format!("TLS cannot be spoken: {error}")))?;
    let mut config = match roots {
        Some(roots) => builder.with_root_certificates(roots).with_no_client_auth(),
        None => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Pinned::new(pinned, provider)))
            .with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn authorities(path: &Path) -> Result<RootCertStore, Failure> {
    let bad = |why: String| {
        Failure::Failed(format!(
            "the certificates in {} cannot be used: {why}: name a file of certificates in PEM with --ca",
            path.display()
        ))
    };
    let mut roots = RootCertStore::empty();
    let found = CertificateDer::pem_file_iter(path).map_err(|error| bad(error.to_string()))?;
    for certificate in found {
        let certificate = certificate.map_err(|error| bad(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| bad(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(bad("there is none".to_owned())),
        false => Ok(roots),
    }
}

fn connect(address: &Address, config: &Arc<ClientConfig>) -> io::Result<Tls> {
    let name = ServerName::try_from(address.host.clone()).map_err(io::Error::other)?;
    let mut last = io::Error::new(ErrorKind::NotFound, "its name has no address");
    let found = (address.host.as_str(), address.port).to_socket_addrs()?;
    for at in found.take(ADDRESSES_MAX) {
        match TcpStream::connect_timeout(&at, CONNECT_TIME) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(CONNECT_TIME))?;
                stream.set_write_timeout(Some(CONNECT_TIME))?;
                let connection = ClientConnection::new(Arc::clone(config), name)
                    .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
                return Tls::begin(connection, stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// What a certificate was refused for, and what to do.
fn refused(address: &Address, error: &CertificateError) -> String {
    if let CertificateError::Other(other) = error
        && let Some(other) = other.0.downcast_ref::<OtherCertificate>()
    {
        return format!(
            "{address} is not believed: {other}: either somebody stands between, or the daemon has a new one; \
             compare with what its log tells at its start, and give that with --pin, or remove the context and add it \
             again"
        );
    }
    let why = match error {
        CertificateError::UnknownIssuer => {
            "none of the given authorities signed its certificate".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("its certificate is for other names than {}", address.host)
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired".to_owned()
        }
        other => format!("its certificate is not good: {other}"),
    };
    format!("{address} is not believed: {why}: see to --ca, or pin the certificate with --pin")
}

/// Why a server could not be asked.
fn unreachable(address: &Address, error: &io::Error) -> Failure {
    let within = error
        .get_ref()
        .and_then(|within| within.downcast_ref::<rustls::Error>());
    let text = match (within, error.kind()) {
        (Some(rustls::Error::InvalidCertificate(error)), _) => refused(address, error),
        (Some(error), _) => format!(
            "what answers at {address} does not speak TLS 1.3 as a daemon does ({error}): see that the port is that of \
             its --listen"
        ),
        (None, ErrorKind::ConnectionRefused) => format!(
            "no daemon answers at {address}: start it with `convect serve --listen`, or correct the address"
        ),
        (None, ErrorKind::WouldBlock | ErrorKind::TimedOut) => format!(
            "{address} did not answer in time: see that the daemon runs, and that no firewall is between"
        ),
        (None, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => format!(
            "{address} ended the connection: it is no daemon, it ends, or it has too many connections: try again, and \
             see its log"
        ),
        _ => format!("{address} cannot be reached: {error}: see to its name and to the network"),
    };
    Failure::Failed(text)
}

impl Server {
    /// A way to a daemon; nothing is asked yet.
    ///
    /// # Errors
    /// When the authorities cannot be read.
    pub fn new(address: Address, trust: &Trust, token: String) -> Result<Self, Failure> {
        let config = match trust {
            Trust::Pin(pin) => config(Some(pin.clone()), None)?,
            Trust::Authorities(path) => config(None, Some(authorities(path)?))?,
        };
        Ok(Self {
            address,
            config,
            token,
        })
    }

    /// Its address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// What it is shown.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A connection to it.
    ///
    /// # Errors
    /// When it cannot be reached, or is not the one that is known.
    pub fn connect(&self) -> Result<Tls, Failure> {
        connect(&self.address, &self.config).map_err(|error| self.unreachable(&error))
    }

    /// Why it could not be asked.
    pub fn unreachable(&self, error: &io::Error) -> Failure {
        unreachable(&self.address, error)
    }
}

/// The fingerprint of the certificate that a server shows, which nobody vouches for. It is told nothing.
///
/// # Errors
/// When it cannot be reached.
pub fn fingerprint(address: &Address) -> Result<Pin, Failure> {
    let shown = connect(address, &config(None, None)?);
    let shown = shown.map_err(|error| unreachable(address, &error))?;
    shown
        .certificate()
        .ok_or_else(|| Failure::Failed(format!("{address} shows no certificate")))
}
