//! Where the daemon is reached by the network, and with which certificate.

use crate::ServeError;
use crate::off::value_or_off;
use serde::Deserialize;
use serde::de::Deserializer;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A certificate, with those that it was signed with, and its key, both as PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The certificate's file.
    pub certificate: PathBuf,
    /// The key's file.
    pub key: PathBuf,
}

fn parse_address(text: &str, port: u16) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!(
            "'{text}' is not an address and a port: write it like 127.0.0.1:{port} or [::1]:{port}"
        )
    })
}

/// Reads where figures are to be served.
///
/// # Errors
/// A sentence that says what to do.
pub fn parse_metrics_address(text: &str) -> Result<SocketAddr, String> {
    parse_address(text, 9750)
}

/// Reads where the page is to be served.
///
/// # Errors
/// A sentence that says what to do.
pub fn parse_listen_address(text: &str) -> Result<SocketAddr, String> {
    parse_address(text, 9443)
}

/// Where figures are served; nothing: nowhere.
pub(super) struct MetricsAddress(pub Option<SocketAddr>);

impl<'de> Deserialize<'de> for MetricsAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        value_or_off(deserializer, parse_metrics_address).map(Self)
    }
}

/// Where the page is served; nothing: nowhere.
pub(super) struct ListenAddress(pub Option<SocketAddr>);

impl<'de> Deserialize<'de> for ListenAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        value_or_off(deserializer, parse_listen_address).map(Self)
    }
}

/// Nothing for the one that is made.
pub(super) struct PemFile(Option<PathBuf>);

impl<'de> Deserialize<'de> for PemFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Self((text != "made").then(|| text.into())))
    }
}

/// Both files, or neither.
///
/// # Errors
/// When one is given and the other is not.
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
            "{}: of tls_certificate and tls_key one is there and one is not: give both files, or neither",
            origin.display()
        ))),
    }
}
