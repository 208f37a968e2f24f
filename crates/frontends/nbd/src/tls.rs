//! Certificates of an export that offers TLS (`NBD_OPT_STARTTLS`; TLS 1.3, RFC 8446).

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use std::fs::OpenOptions;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// Longest file of certificates or of a key, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// How an export offers TLS.
#[derive(Clone)]
pub(crate) struct Tls {
    pub config: Arc<ServerConfig>,
    /// Clients that do not use it get nothing.
    pub required: bool,
    /// Clients need a certificate.
    pub authenticates: bool,
}

/// The files that it is made of.
pub(crate) struct Files<'a> {
    pub certificate: &'a str,
    pub key: &'a str,
    pub client_ca: Option<&'a str>,
}

fn refused(name: &str, path: &str, why: impl std::fmt::Display) -> Error {
    let text = format!("{name} {path}: {why}: give the absolute path of a file in PEM format");
    Error::new(ErrorKind::InvalidInput, text)
}

/// What is in a regular file; a pipe or a device is refused without waiting for it. Nothing of it is in an error.
fn read(name: &str, path: &str, is_secret: bool) -> Result<Vec<u8>> {
    if !Path::new(path).is_absolute() {
        return Err(refused(name, path, "it is no absolute path"));
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
        return Err(refused(name, path, "it is no file of at most 1 MiB"));
    }
    if is_secret && meta.mode() & 0o007 != 0 {
        let text = format!("{name} {path}: every user may use it: chmod 600 {path}");
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
        _ => Err(refused(name, path, "there is no certificate in it")),
    }
}

/// What TLS is offered with.
///
/// # Errors
/// One sentence that names the file and says what to do.
pub(crate) fn config(files: &Files<'_>) -> Result<Arc<ServerConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = certificates("tls-certificate", files.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&read("tls-key", files.key, true)?)
        .map_err(|_| refused("tls-key", files.key, "there is no private key in it"))?;
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
    // Connections last: what would be kept of them for the next one would be a peer's choice.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}
