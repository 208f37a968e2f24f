//! Network listeners of the daemon and their certificate.

use crate::ServeError;
use crate::off::value_or_off;
use serde::Deserialize;
use serde::de::Deserializer;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// PEM files of a certificate chain and its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// File of the certificate chain.
    pub certificate: PathBuf,
    /// File of the key.
    pub key: PathBuf,
}

fn parse_address(text: &str, port: u16) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!(
            "'{text}' is not an address and a port: write it like 127.0.0.1:{port} or [::1]:{port}"
        )
    })
}

/// Parses the address of the metrics listener.
///
/// # Errors
/// A sentence that says what to do.
pub fn parse_metrics_address(text: &str) -> Result<SocketAddr, String> {
    parse_address(text, 9750)
}

/// Parses the address of the page and the API.
///
/// # Errors
/// A sentence that says what to do.
pub fn parse_listen_address(text: &str) -> Result<SocketAddr, String> {
    parse_address(text, 9443)
}

/// Address of the metrics listener; none if disabled.
pub(super) struct MetricsAddress(pub Option<SocketAddr>);

impl<'de> Deserialize<'de> for MetricsAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        value_or_off(deserializer, parse_metrics_address).map(Self)
    }
}

/// Address of the page and the API; none if disabled.
pub(super) struct ListenAddress(pub Option<SocketAddr>);

impl<'de> Deserialize<'de> for ListenAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        value_or_off(deserializer, parse_listen_address).map(Self)
    }
}

/// A PEM file; none for the generated certificate.
pub(super) struct PemFile(Option<PathBuf>);

impl<'de> Deserialize<'de> for PemFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Self((text != "made").then(|| text.into())))
    }
}

/// Either both files or none.
///
/// # Errors
/// When only one is given.
pub(super) fn tls_files(
    certificate: Option<PemFile>,
    key: Option<PemFile>,
    origin: &Path,
) -> Result<Option<TlsFiles>, ServeError> {
    let given = |file: Option<PemFile>| file.and_then(|file| file.0);
    match (given(certificate), given(key)) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        _ => Err(ServeError::new(format!(
            "{}: only one of tls_certificate and tls_key is set: set both, or none",
            origin.display()
        ))),
    }
}
