//! TLS settings of an export (`NBD_OPT_STARTTLS`; TLS 1.3, RFC 8446).

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use std::fs::OpenOptions;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// Maximum size of a file of certificates or of a key, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// TLS settings.
#[derive(Clone)]
pub(crate) struct Tls {
    pub config: Arc<ServerConfig>,
    /// Clients without TLS are refused.
    pub required: bool,
    /// Clients need a certificate.
    pub authenticates: bool,
}

/// Paths of the files.
pub(crate) struct Files<'a> {
    pub certificate: &'a str,
    pub key: &'a str,
    pub client_ca: Option<&'a str>,
}

fn refused(name: &str, path: &str, why: impl std::fmt::Display) -> Error {
    let text = format!("{name} {path}: {why}: specify the absolute path of a PEM file");
    Error::new(ErrorKind::InvalidInput, text)
}

/// Reads a regular file; pipes and devices are refused without blocking. Errors reveal nothing of
/// the content.
fn read(name: &str, path: &str, is_secret: bool) -> Result<Vec<u8>> {
    if !Path::new(path).is_absolute() {
        return Err(refused(name, path, "it is not an absolute path"));
    }
    let open = || {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)?;
        let meta = file.metadata()?;
        Ok::<_, Error>((file, meta))
    };
    let (file, meta) = open().map_err(|error| refused(name, path, error))?;
    if !meta.is_file() || meta.len() > FILE_MAX {
        return Err(refused(
            name,
            path,
            "it is not a regular file of at most 1 MiB",
        ));
    }
    if is_secret && meta.mode() & 0o007 != 0 {
        let text = format!("{name} {path}: it is accessible by every user: run chmod 600 {path}");
        return Err(Error::new(ErrorKind::InvalidInput, text));
    }
    let mut bytes = Vec::new();
    file.take(FILE_MAX)
        .read_to_end(&mut bytes)
        .map_err(|error| refused(name, path, error))?;
    Ok(bytes)
}

fn certificates(name: &str, path: &str) -> Result<Vec<CertificateDer<'static>>> {
    let bytes = read(name, path, false)?;
    let found: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(refused(name, path, "it contains no certificate")),
    }
}

/// Creates the TLS server configuration.
///
/// # Errors
/// One sentence that names the file and says what to do.
pub(crate) fn config(files: &Files<'_>) -> Result<Arc<ServerConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = certificates("tls-certificate", files.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&read("tls-key", files.key, true)?)
        .map_err(|_| refused("tls-key", files.key, "it contains no private key"))?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(Error::other)?;
    let builder = match files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let name = "tls-client-ca";
            let mut roots = RootCertStore::empty();
            for authority in certificates(name, path)? {
                roots
                    .add(authority)
                    .map_err(|error| refused(name, path, error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = verifier
                .build()
                .map_err(|error| refused(name, path, error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| refused("tls-key", files.key, error))?;
    // No session resumption: connections are long-lived, and the cache would be controlled by
    // peers.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}
