//! Key and certificate of the network listener: configured, or self-signed at the first start.

use crate::access::sha256_hex;
use crate::config::TlsFiles;
use crate::state::StateFiles;
use crate::{Config, ServeError};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
/// Maximum size of either file in the state folder in bytes, and the beginning of its content.
const PEM_MAX: u64 = 1 << 20;
const PEM_BEGIN: &[u8] = b"-----BEGIN ";

fn fail(what: &str, path: &Path, why: impl std::fmt::Display) -> ServeError {
    ServeError::new(format!(
        "cannot {what} {}: {why}: set tls_certificate and tls_key in the configuration, or remove \
         both to use a self-signed certificate",
        path.display()
    ))
}

/// This host's names, as far as known.
fn names(at: SocketAddr) -> Vec<String> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut names = vec![
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ];
    names.push(host.trim().to_owned());
    if !at.ip().is_unspecified() {
        names.push(at.ip().to_string());
    }
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    names
}

/// A certificate and its key in PEM format.
struct Pair {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// Generates a key and a self-signed certificate.
fn make(at: SocketAddr) -> Result<Pair, rcgen::Error> {
    let key = rcgen::KeyPair::generate()?;
    let mut wanted = rcgen::CertificateParams::new(names(at))?;
    wanted
        .distinguished_name
        .push(rcgen::DnType::CommonName, "Convect");
    wanted.not_before = rcgen::date_time_ymd(2020, 1, 1);
    wanted.not_after = rcgen::date_time_ymd(2049, 12, 31);
    let certificate = wanted.self_signed(&key)?;
    Ok(Pair {
        certificate: certificate.pem().into_bytes(),
        key: key.serialize_pem().into_bytes(),
    })
}

/// The certificate and key in the state folder, generated if there are none or they are invalid. If
/// they cannot be stored, they are used until the daemon stops.
fn load_or_generate(files: &StateFiles, at: SocketAddr) -> Result<Pair, ServeError> {
    let pem = |what: &'static str| {
        move |text: &[u8]| match pem_has(text) {
            true => Ok(text.to_vec()),
            false => Err(format!("it contains no {what}")),
        }
    };
    let key = files.read(KEY, PEM_MAX, pem("key"));
    let certificate = files.read(CERTIFICATE, PEM_MAX, pem("certificate"));
    if let (Some(key), Some(certificate)) = (key, certificate) {
        return Ok(Pair { certificate, key });
    }
    let pair =
        make(at).map_err(|error| fail("generate a certificate in", files.folder(), error))?;
    let kept = files
        .write(KEY, &pair.key, 0o600)
        .and_then(|()| files.write(CERTIFICATE, &pair.certificate, 0o644));
    if let Err(error) = kept {
        tracing::error!(
            "cannot store the generated certificate; another one is generated at the next start: \
             {error}"
        );
    }
    Ok(pair)
}

/// Whether a text contains PEM (RFC 7468).
fn pem_has(text: &[u8]) -> bool {
    text.windows(PEM_BEGIN.len()).any(|part| part == PEM_BEGIN)
}

/// Loads the configured certificate and key.
fn load_configured(files: &TlsFiles) -> Result<Pair, ServeError> {
    let read = |what: &str, path: &Path| {
        std::fs::read(path).map_err(|error| fail(&format!("read the {what}"), path, error))
    };
    Ok(Pair {
        certificate: read("certificate", &files.certificate)?,
        key: read("key", &files.key)?,
    })
}

/// TLS server configuration: version 1.3 only (RFC 8446).
///
/// # Errors
/// One line that says what to do.
pub fn server_config(
    config: &Config,
    files: &StateFiles,
    at: SocketAddr,
) -> Result<Arc<ServerConfig>, ServeError> {
    let folder = &config.state_dir;
    let (pair, certificate, key) = match &config.tls {
        Some(files) => (
            load_configured(files)?,
            files.certificate.clone(),
            files.key.clone(),
        ),
        None => (
            load_or_generate(files, at)?,
            folder.join(CERTIFICATE),
            folder.join(KEY),
        ),
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pair.certificate).collect();
    let chain = chain.map_err(|error| fail("read the certificate", &certificate, error))?;
    let Some(own) = chain.first() else {
        return Err(fail(
            "read the certificate",
            &certificate,
            "it contains none",
        ));
    };
    let fingerprint = sha256_hex(&[own.as_ref()]);
    let secret = PrivateKeyDer::from_pem_slice(&pair.key)
        .map_err(|error| fail("read the key", &key, error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let built = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(chain, secret)
        });
    let mut built = built.map_err(|error| fail("use the key", &key, error))?;
    built.alpn_protocols = vec![b"http/1.1".to_vec()];
    tracing::info!("the certificate's SHA-256 fingerprint is {fingerprint}");
    Ok(Arc::new(built))
}
