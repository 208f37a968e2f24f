//! Certificate pinning: a certificate is accepted by its SHA-256 alone; names, validity and issuer
//! are ignored.

use crate::Error;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, SignatureScheme};
use std::fmt;
use std::sync::Arc;

const MARK: &str = "sha256:";
/// Hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// SHA-256 of a certificate's DER encoding (RFC 5280): `sha256:` and 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pin(String);

impl Pin {
    /// Parses a fingerprint, also in the form that openssl prints: upper case with colons.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let digits = text.trim().to_ascii_lowercase();
        let digits = digits
            .strip_prefix(MARK)
            .unwrap_or(&digits)
            .replace(':', "");
        match digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            true => Ok(Self(digits)),
            false => Err(Error::Usage(format!(
                "'{text}' is not a fingerprint: write sha256: and the 64 digits that the daemon \
                 logs at startup"
            ))),
        }
    }

    /// Computes the fingerprint of a certificate.
    pub fn of(certificate: &CertificateDer<'_>) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, certificate.as_ref());
        let digits = digest.as_ref().iter();
        Self(digits.map(|byte| format!("{byte:02x}")).collect())
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}{}", self.0)
    }
}

/// The server presented a certificate other than the pinned one.
#[derive(Debug)]
pub struct OtherCertificate {
    /// The presented certificate.
    pub shown: Pin,
    /// The pinned certificate.
    pub known: Pin,
}

impl fmt::Display for OtherCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shown, known } = self;
        write!(
            f,
            "its certificate {shown} does not match the pinned {known}"
        )
    }
}

impl std::error::Error for OtherCertificate {}

/// Verifier that accepts only the pinned certificate, or any certificate without a pin; in that
/// case the connection must not carry secrets. Possession of the private key is verified in both
/// cases.
#[derive(Debug)]
pub struct Pinned {
    known: Option<Pin>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    /// Accepts only `known`, or any certificate.
    pub fn new(known: Option<Pin>, provider: Arc<CryptoProvider>) -> Self {
        Self { known, provider }
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _issuers: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let shown = Pin::of(certificate);
        match &self.known {
            Some(known) if *known != shown => {
                let known = known.clone();
                let other = OtherError(Arc::new(OtherCertificate { shown, known }));
                Err(CertificateError::Other(other).into())
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let known = &self.provider.signature_verification_algorithms;
        known.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_parsed_in_common_forms() {
        let plain = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let pin = Pin::parse(plain).unwrap();
        assert_eq!(pin.to_string(), format!("sha256:{plain}"));
        let pairs: Vec<&str> = (0..32).map(|at| &plain[2 * at..2 * at + 2]).collect();
        let colons = pairs.join(":").to_uppercase();
        for text in [&pin.to_string(), &colons, &format!("SHA256:{colons}\n")] {
            assert_eq!(Pin::parse(text).unwrap(), pin, "{text}");
        }
        let swapped = format!("sha1:{plain}");
        for text in [
            "",
            "sha256:",
            &plain[1..],
            &plain.replace('a', "g"),
            &swapped,
        ] {
            assert!(Pin::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_the_pinned_certificate_is_accepted() {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let shown = CertificateDer::from(b"abc".to_vec());
        let name = ServerName::try_from("a").unwrap();
        let taken = |known| {
            let pinned = Pinned::new(known, Arc::clone(&provider));
            pinned.verify_server_cert(&shown, &[], &name, &[], UnixTime::now())
        };
        let other = Pin::of(&CertificateDer::from(b"abd".to_vec()));
        assert!(taken(Some(Pin::of(&shown))).is_ok());
        assert!(taken(Some(other)).is_err());
        assert!(taken(None).is_ok());
    }
}
