//! Addresses of daemons: `https://HOST[:PORT]` (RFC 3986).

use crate::Error;
use rustls::pki_types::ServerName;
use std::fmt;

/// The port of `https` (RFC 9110, section 4.2.2).
const PORT: u16 = 443;

/// A host and a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// A DNS name, or an IP address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Address {
    /// Parses `https://HOST[:PORT]`, with an optional trailing slash.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let bad = |why: &str| {
            let advice = "write https://HOST:PORT, like https://storage1:9443";
            Error::Usage(format!("'{text}' is not a server address: {why}: {advice}"))
        };
        let Some(rest) = text.strip_prefix("https://") else {
            return Err(bad("it does not begin with https://"));
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some((host, after)) => (host, after),
                None => return Err(bad("a bracket is missing")),
            },
            None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(digits) => match digits.parse() {
                Ok(port @ 1..) => port,
                _ => return Err(bad("its port is invalid")),
            },
            None if port.is_empty() => PORT,
            None => return Err(bad("there is text after the host")),
        };
        if ServerName::try_from(host).is_err() {
            return Err(bad("its host is invalid"));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "https://[{}]:{}", self.host, self.port),
            false => write!(f, "https://{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_address_is_host_and_port() {
        for (text, host, port, shown) in [
            ("https://a.b:9443", "a.b", 9443, "https://a.b:9443"),
            ("https://a.b", "a.b", 443, "https://a.b:443"),
            ("https://10.0.0.1:1/", "10.0.0.1", 1, "https://10.0.0.1:1"),
            ("https://[::1]:9443", "::1", 9443, "https://[::1]:9443"),
            ("https://[::1]", "::1", 443, "https://[::1]:443"),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(
                (address.host.as_str(), address.port),
                (host, port),
                "{text}"
            );
            assert_eq!(address.to_string(), shown);
            assert_eq!(Address::parse(shown).unwrap(), address);
        }
        for text in [
            "",
            "storage1",
            "http://a:9443",
            "https://",
            "https://:9443",
            "https://a:",
            "https://a:0",
            "https://a:65536",
            "https://a:1/v1",
            "https://me:secret@a:1",
            "https://[::1",
            "https://[::1]x",
            "https://::1",
            "https://a b",
            "https://a\r\nX: y",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }
}
