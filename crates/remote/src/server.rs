//! A daemon on another host: address, certificate verification, and token.

use crate::pin::{OtherCertificate, Pinned};
use crate::{Address, Broken, Error, Patience, Pin, Request, Timed, Tls, exchange};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, ClientConnection, RootCertStore};
use std::io::{self, ErrorKind};
use std::net::{Ipv6Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use ureq_proto::http::{header, request};

/// Time limit for each address of a host, and for the handshake.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Maximum length of a token, in bytes.
const TOKEN_MAX: usize = 512;
/// Maximum number of addresses of a host that are tried.
const ADDRESSES_MAX: usize = 4;

/// How a server's certificate is verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trust {
    /// By its fingerprint.
    Pin(Pin),
    /// By its signature: a CA in this file (PEM) must have signed it for the server's name, and it
    /// must be valid now.
    Authorities(PathBuf),
}

/// A daemon on another host.
pub struct Server {
    address: Address,
    config: Arc<ClientConfig>,
    token: String,
}

/// Limits of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Maximum size of the body, in bytes.
    pub bytes: usize,
    /// Approximate time limit, including the connection.
    pub time: Duration,
}

/// Whether the peer responded, but not with complete HTTP.
fn is_no_answer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof
    )
}

/// Whether a text is a well-formed token: printable in a header and not too long.
pub fn is_token(text: &str) -> bool {
    (1..=TOKEN_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// TLS 1.3 (RFC 8446), the only version that daemons support.
fn config(pinned: Option<Pin>, roots: Option<RootCertStore>) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| Error::Failed(format!("TLS cannot be initialised: {error}")))?;
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

fn roots<'a>(
    found: impl Iterator<Item = Result<CertificateDer<'a>, pem::Error>>,
) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in found {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots
            .add(certificate.into_owned())
            .map_err(|error| error.to_string())?;
    }
    match roots.is_empty() {
        true => Err("it contains no certificates".to_owned()),
        false => Ok(roots),
    }
}

fn authorities(path: &Path) -> Result<RootCertStore, Error> {
    let found = CertificateDer::pem_file_iter(path).map_err(|error| error.to_string());
    found.and_then(roots).map_err(|why| {
        Error::Failed(format!(
            "cannot use the certificates in {}: {why}: use --ca with a file of PEM certificates",
            path.display()
        ))
    })
}

fn given(text: &str) -> Result<RootCertStore, Error> {
    roots(CertificateDer::pem_slice_iter(text.as_bytes())).map_err(|why| {
        Error::Usage(format!(
            "cannot use the certificates: {why}: provide certificates in PEM format"
        ))
    })
}

/// Starts TLS on an open TCP connection.
fn begin(address: &Address, config: &Arc<ClientConfig>, stream: TcpStream) -> io::Result<Tls> {
    let name = ServerName::try_from(address.host.clone()).map_err(io::Error::other)?;
    stream.set_nodelay(true)?;
    let stream = Timed::new(stream, Patience::Each(CONNECT_TIME, CONNECT_TIME))?;
    let connection = ClientConnection::new(Arc::clone(config), name)
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
    Tls::begin(connection, stream)
}

fn connect(address: &Address, config: &Arc<ClientConfig>) -> io::Result<Tls> {
    let mut last = io::Error::new(ErrorKind::NotFound, "its name has no address");
    let named = match address.host.parse::<Ipv6Addr>() {
        Ok(host) => format!("[{host}]:{}", address.port),
        Err(_) => format!("{}:{}", address.host, address.port),
    };
    for at in reactor::resolve(&named)?.into_iter().take(ADDRESSES_MAX) {
        match TcpStream::connect_timeout(&at, CONNECT_TIME) {
            Ok(stream) => return begin(address, config, stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Why a certificate was rejected, and what to do.
fn refused(address: &Address, error: &CertificateError) -> String {
    if let CertificateError::Other(other) = error
        && let Some(other) = other.0.downcast_ref::<OtherCertificate>()
    {
        return format!(
            "the certificate of {address} is not trusted: {other}: either the connection is \
             intercepted, or the daemon has a new certificate; compare with the fingerprint in \
             its log, and pass it with --pin, or remove the context and add it again"
        );
    }
    let why = match error {
        CertificateError::UnknownIssuer => "it is not signed by any of the given CAs".to_owned(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("it is not valid for the name {}", address.host)
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired".to_owned()
        }
        other => format!("it is invalid: {other}"),
    };
    format!(
        "the certificate of {address} is not trusted: {why}: check --ca, or pin the \
     certificate with --pin"
    )
}

/// Why a server is unreachable.
fn unreachable(address: &Address, error: &io::Error) -> Error {
    let within = error
        .get_ref()
        .and_then(|within| within.downcast_ref::<rustls::Error>());
    let text = match (within, error.kind()) {
        (Some(rustls::Error::InvalidCertificate(error)), _) => refused(address, error),
        (Some(error), _) => format!(
            "TLS 1.3 handshake with {address} failed ({error}): check that the port is that of \
             the daemon's --listen"
        ),
        (None, ErrorKind::ConnectionRefused) => format!(
            "no daemon responds at {address}: start it with `convect serve --listen`, or correct the address"
        ),
        (None, ErrorKind::WouldBlock | ErrorKind::TimedOut) => format!(
            "{address} did not respond in time: check that the daemon runs and that no firewall \
             blocks the port"
        ),
        (None, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => format!(
            "{address} closed the connection: it is not a daemon, is shutting down, or has too \
             many connections: try again, and check its log"
        ),
        _ => format!("{address} cannot be reached: {error}: check the name and the network"),
    };
    Error::Failed(text)
}

impl Server {
    /// A client of a daemon. Nothing is sent yet.
    ///
    /// # Errors
    /// When the CA certificates cannot be read.
    pub fn new(address: Address, trust: &Trust, token: String) -> Result<Self, Error> {
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

    /// A client of a daemon whose certificate is signed by one of these CA certificates (PEM).
    ///
    /// # Errors
    /// When they cannot be parsed.
    pub fn signed_by(address: Address, certificates: &str, token: String) -> Result<Self, Error> {
        Ok(Self {
            address,
            config: config(None, Some(given(certificates)?))?,
            token,
        })
    }

    /// Its address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The token that it authenticates with.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Connects to the daemon.
    ///
    /// # Errors
    /// When it is unreachable, or its certificate is not trusted.
    pub fn connect(&self) -> Result<Tls, Error> {
        connect(&self.address, &self.config).map_err(|error| self.unreachable(&error))
    }

    /// Starts TLS on an open connection, for a caller that chooses its source address.
    ///
    /// # Errors
    /// As [`Server::connect`].
    pub fn over(&self, stream: TcpStream) -> io::Result<Tls> {
        begin(&self.address, &self.config, stream)
    }

    /// Sends a GET request and reads the whole response. Redirects are not followed.
    ///
    /// # Errors
    /// When the daemon is unreachable, not trusted, or refuses, or its response is too large or too
    /// late.
    pub fn look(&self, target: &str, bounds: Bounds) -> Result<Vec<u8>, Error> {
        let end = Instant::now() + bounds.time;
        let mut wire = self.connect()?;
        let set = wire.set_patience(Patience::Until(end));
        set.map_err(|error| self.unreachable(&error))?;
        let request = self.authorized(Request::get(target)).body(());
        let request = request.map_err(|error| Error::Usage(error.to_string()))?;
        let answer = match exchange(wire, request, &mut io::empty()) {
            Ok(answer) => answer,
            Err(Broken::Answer(error)) if is_no_answer(&error) => return Err(self.no_daemon()),
            Err(Broken::Connection(error) | Broken::Answer(error) | Broken::Source(error)) => {
                return Err(self.unreachable(&error));
            }
        };
        let address = &self.address;
        match answer.status() {
            200 => answer
                .whole(bounds.bytes)
                .map_err(|error| match is_no_answer(&error) {
                    true => self.no_daemon(),
                    false => self.unreachable(&error),
                }),
            401 => Err(Error::Failed(format!(
                "{address} rejected the token: create one there with `convect token create`, and \
                 add the server again"
            ))),
            403 => Err(Error::Failed(format!(
                "the token has no read access to {address}: create one there with the role \
                 viewer, and add the server again"
            ))),
            status => Err(Error::Failed(format!(
                "{address} responded with status {status}: check its log and its version"
            ))),
        }
    }

    /// Adds the credentials to a request.
    pub fn authorized(&self, request: request::Builder) -> request::Builder {
        let host = self.address.to_string();
        request
            .header(header::HOST, host.trim_start_matches("https://"))
            .header(header::CONNECTION, "close")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
    }

    fn no_daemon(&self) -> Error {
        Error::Failed(format!(
            "the server at {} is not a convect daemon, or it stopped meanwhile: check the address \
             and the daemon's log",
            self.address
        ))
    }

    /// Why the daemon is unreachable.
    pub fn unreachable(&self, error: &io::Error) -> Error {
        unreachable(&self.address, error)
    }
}

/// The fingerprint of the certificate that a server presents, unverified. No data is sent.
///
/// # Errors
/// When it is unreachable.
pub fn fingerprint(address: &Address) -> Result<Pin, Error> {
    let shown = connect(address, &config(None, None)?);
    let shown = shown.map_err(|error| unreachable(address, &error))?;
    shown
        .certificate()
        .ok_or_else(|| Error::Failed(format!("{address} presents no certificate")))
}
