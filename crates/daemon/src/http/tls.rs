//! The key and certificate of the network's door: given, or made at the first start.

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
/// Longest file of either that is read from the state folder, in bytes, and how what is in it begins.
const PEM_MAX: u64 = 1 << 20;
const PEM_BEGIN: &[u8] = b"-----BEGIN ";

fn fail(what: &str, path: &Path, why: impl std::fmt::Display) -> ServeError {
    ServeError::new(format!(
        "cannot {what} {}: {why}: give the files of a certificate and its key with tls_certificate and tls_key \
         in the configuration, or remove both and a certificate is made",
        path.display()
    ))
}

/// This host's names, as far as they are known.
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

/// A certificate and its key, as PEM.
struct Pair {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// Makes a key and a certificate that it signed itself.
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

/// The certificate and key of the state folder, which are made where there are none that can be used. Where they cannot
/// be kept they count until the daemon ends.
fn own(files: &StateFiles, at: SocketAddr) -> Result<Pair, ServeError> {
    let pem = |what: &'static str| {
        move |text: &[u8]| match pem_has(text) {
            true => Ok(text.to_vec()),
            false => Err(format!("there is no {what} in it")),
        }
    };
    let key = files.read(KEY, PEM_MAX, pem("key"));
    let certificate = files.read(CERTIFICATE, PEM_MAX, pem("certificate"));
    if let (Some(key), Some(certificate)) = (key, certificate) {
        return Ok(Pair { certificate, key });
    }
    let pair = make(at).map_err(|error| fail("make a certificate in", files.folder(), error))?;
    let kept = files
        .write(KEY, &pair.key, 0o600)
        .and_then(|()| files.write(CERTIFICATE, &pair.certificate, 0o644));
    if let Err(error) = kept {
        tracing::error!(
            "the certificate that was made is not kept, and another is made at the next start: {error}"
        );
    }
    Ok(pair)
}

/// Whether a text has anything that is written as PEM (RFC 7468).
fn pem_has(text: &[u8]) -> bool {
    text.windows(PEM_BEGIN.len()).any(|part| part == PEM_BEGIN)
}

/// The certificate and key that a configuration names.
fn given(files: &TlsFiles) -> Result<Pair, ServeError> {
    let read = |what: &str, path: &Path| {
        std::fs::read(path).map_err(|error| fail(&format!("read the {what}"), path, error))
    };
    Ok(Pair {
        certificate: read("certificate", &files.certificate)?,
        key: read("key", &files.key)?,
    })
}

/// What connections by TLS are taken with: version 1.3 alone (RFC 8446).
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
        Some(files) => (given(files)?, files.certificate.clone(), files.key.clone()),
        None => (own(files, at)?, folder.join(CERTIFICATE), folder.join(KEY)),
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pair.certificate).collect();
    let chain = chain.map_err(|error| fail("read the certificate", &certificate, error))?;
    let Some(own) = chain.first() else {
        return Err(fail(
            "read the certificate",
            &certificate,
            "there is none in it",
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
