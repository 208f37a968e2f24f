//! The key and certificate of the network's door: given, or made at the first start.

use crate::access::{sha256_hex, write_whole};
use crate::{Config, ServeError};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";

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

/// Makes a key and a certificate that it signed itself, where there is none yet.
fn make(folder: &Path, at: SocketAddr) -> Result<(), ServeError> {
    if folder.join(CERTIFICATE).exists() && folder.join(KEY).exists() {
        return Ok(());
    }
    let made = || -> Result<(), Box<dyn std::error::Error>> {
        let key = rcgen::KeyPair::generate()?;
        let mut wanted = rcgen::CertificateParams::new(names(at))?;
        wanted
            .distinguished_name
            .push(rcgen::DnType::CommonName, "Convect");
        wanted.not_before = rcgen::date_time_ymd(2020, 1, 1);
        wanted.not_after = rcgen::date_time_ymd(2049, 12, 31);
        let certificate = wanted.self_signed(&key)?;
        write_whole(folder, KEY, key.serialize_pem().as_bytes(), 0o600)?;
        write_whole(folder, CERTIFICATE, certificate.pem().as_bytes(), 0o644)?;
        Ok(())
    };
    made().map_err(|error| fail("make a certificate in", folder, error))
}

/// What connections by TLS are taken with: version 1.3 alone (RFC 8446).
///
/// # Errors
/// One line that says what to do.
pub fn server_config(config: &Config, at: SocketAddr) -> Result<Arc<ServerConfig>, ServeError> {
    let (certificate, key): (PathBuf, PathBuf) = match &config.tls {
        Some(files) => (files.certificate.clone(), files.key.clone()),
        None => {
            make(&config.state_dir, at)?;
            (
                config.state_dir.join(CERTIFICATE),
                config.state_dir.join(KEY),
            )
        }
    };
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(&certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|error| fail("read the certificate", &certificate, error))?;
    let Some(own) = chain.first() else {
        return Err(fail(
            "read the certificate",
            &certificate,
            "there is none in it",
        ));
    };
    let fingerprint = sha256_hex(&[own.as_ref()]);
    let secret =
        PrivateKeyDer::from_pem_file(&key).map_err(|error| fail("read the key", &key, error))?;
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
