//! A daemon on another host: its address, how its certificate is known, and the token that it is shown.

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

/// How long each of a host's addresses, and the handshake, may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Longest token, in bytes.
const TOKEN_MAX: usize = 512;
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

/// How much of an answer is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Bytes of its body.
    pub bytes: usize,
    /// How long it may take with the connection, about.
    pub time: Duration,
}

/// Whether there was an answer, but no whole one of HTTP.
fn is_no_answer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof
    )
}

/// Whether a text can be a token: one word that a header can bear, and not too long.
pub fn is_token(text: &str) -> bool {
    (1..=TOKEN_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// TLS 1.3 (RFC 8446), as daemons speak it.
fn config(pinned: Option<Pin>, roots: Option<RootCertStore>) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| Error::Failed(format!("TLS cannot be spoken: {error}")))?;
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
        true => Err("there is none".to_owned()),
        false => Ok(roots),
    }
}

fn authorities(path: &Path) -> Result<RootCertStore, Error> {
    let found = CertificateDer::pem_file_iter(path).map_err(|error| error.to_string());
    found.and_then(roots).map_err(|why| {
        Error::Failed(format!(
            "the certificates in {} cannot be used: {why}: name a file of certificates in PEM with --ca",
            path.display()
        ))
    })
}

fn given(text: &str) -> Result<RootCertStore, Error> {
    roots(CertificateDer::pem_slice_iter(text.as_bytes())).map_err(|why| {
        Error::Usage(format!(
            "the certificates cannot be used: {why}: give certificates in PEM"
        ))
    })
}

/// TLS over a connection that is there.
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
fn unreachable(address: &Address, error: &io::Error) -> Error {
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
    Error::Failed(text)
}

impl Server {
    /// A way to a daemon; nothing is asked yet.
    ///
    /// # Errors
    /// When the authorities cannot be read.
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

    /// The same to a daemon whose certificate one of these (PEM) signed, and which is for its name, now.
    ///
    /// # Errors
    /// When they cannot be read.
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

    /// The token that it is shown.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A connection to it.
    ///
    /// # Errors
    /// When it cannot be reached, or is not the one that is known.
    pub fn connect(&self) -> Result<Tls, Error> {
        connect(&self.address, &self.config).map_err(|error| self.unreachable(&error))
    }

    /// The same over a connection that is there, for a caller that chooses where from it comes.
    ///
    /// # Errors
    /// As [`Server::connect`].
    pub fn over(&self, stream: TcpStream) -> io::Result<Tls> {
        begin(&self.address, &self.config, stream)
    }

    /// Asks for what only looks, and reads the answer whole. Nothing else is followed: no redirect, no other address.
    ///
    /// # Errors
    /// When it cannot be reached, is not the one that is known, refuses, or answers too much or too late.
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
                "{address} does not take the token: make one there with `convect token create`, and add it again"
            ))),
            403 => Err(Error::Failed(format!(
                "the token may not look at {address}: make one there with the role viewer, and add it again"
            ))),
            status => Err(Error::Failed(format!(
                "{address} answered with status {status}: see its log, and whether it is of this version"
            ))),
        }
    }

    /// A request with what is shown to the daemon.
    pub fn authorized(&self, request: request::Builder) -> request::Builder {
        let host = self.address.to_string();
        request
            .header(header::HOST, host.trim_start_matches("https://"))
            .header(header::CONNECTION, "close")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
    }

    fn no_daemon(&self) -> Error {
        Error::Failed(format!(
            "what answers at {} is no convect daemon, or it ended meanwhile",
            self.address
        ))
    }

    /// Why it could not be asked.
    pub fn unreachable(&self, error: &io::Error) -> Error {
        unreachable(&self.address, error)
    }
}

/// The fingerprint of the certificate that a server shows, which nobody vouches for. It is told nothing.
///
/// # Errors
/// When it cannot be reached.
pub fn fingerprint(address: &Address) -> Result<Pin, Error> {
    let shown = connect(address, &config(None, None)?);
    let shown = shown.map_err(|error| unreachable(address, &error))?;
    shown
        .certificate()
        .ok_or_else(|| Error::Failed(format!("{address} shows no certificate")))
}
