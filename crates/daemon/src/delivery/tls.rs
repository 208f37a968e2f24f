//! Whom targets are trusted by: the system's certificates, and one's own.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

/// Certificates in a PEM text.
///
/// # Errors
/// When there is none, or one of them is damaged.
pub fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match read {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err("there is no certificate in it".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// What a server is spoken to with, by TLS 1.2 or 1.3.
///
/// # Errors
/// When nobody is trusted.
pub fn client_config(ca: Option<&str>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for certificate in ca.map(certificates).transpose()?.into_iter().flatten() {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err(
            "no certificate is trusted here: install ca-certificates, or give the target's own"
                .to_owned(),
        );
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
