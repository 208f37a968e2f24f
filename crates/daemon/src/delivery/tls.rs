//! TLS trust of notification targets: the system's CA certificates and those of the target.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

/// Parses the certificates of a PEM text.
///
/// # Errors
/// When the text has no certificate, or a malformed one.
pub fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match read {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err("it contains no certificate".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// TLS client configuration, for TLS 1.2 and 1.3.
///
/// # Errors
/// When there is no trusted CA.
pub fn client_config(ca: Option<&str>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for certificate in ca.map(certificates).transpose()?.into_iter().flatten() {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err(
            "no trusted CA certificates: install ca-certificates, or provide the target's CA"
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
