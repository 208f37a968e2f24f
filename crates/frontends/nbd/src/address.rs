//! Where an export listens, read and checked.

use reactor::ListenAddress;
use std::io::{Error, ErrorKind, Result};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

pub(crate) fn invalid(text: String) -> Error {
    Error::new(ErrorKind::InvalidInput, text)
}

/// Reads `unix:PATH` or `tcp:ADDRESS:PORT`.
pub(crate) fn parse_listen(text: &str) -> Result<ListenAddress> {
    if let Some(path) = text.strip_prefix("unix:") {
        let path = PathBuf::from(path);
        if !path.is_absolute() {
            return Err(invalid(format!(
                "'{text}' is not an absolute path: write it like unix:/run/convect/disk.sock"
            )));
        }
        return Ok(ListenAddress::Unix(path));
    }
    let form = || {
        invalid(format!(
            "'{text}' is not an address: write unix:/PATH or tcp:ADDRESS:PORT, \
             for example tcp:127.0.0.1:10809"
        ))
    };
    let rest = text.strip_prefix("tcp:").ok_or_else(form)?;
    // Names are not looked up: that may take as long as a server of names likes.
    let at = match rest.strip_prefix("localhost:") {
        Some(port) => SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().map_err(|_| form())?)),
        None => rest.parse().map_err(|_| form())?,
    };
    Ok(ListenAddress::Tcp(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_every_form() {
        for (text, written) in [
            ("unix:/run/a.sock", "unix:/run/a.sock"),
            ("tcp:127.0.0.1:10809", "tcp:127.0.0.1:10809"),
            ("tcp:[::1]:0", "tcp:[::1]:0"),
            ("tcp:localhost:1", "tcp:127.0.0.1:1"),
        ] {
            assert_eq!(parse_listen(text).unwrap().to_string(), written);
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_form_to_use() {
        for text in [
            "",
            "unix:",
            "unix:a.sock",
            "tcp:",
            "tcp:1.2.3.4",
            "tcp:1.2.3.4:99999",
            "tcp:storage.example:10809",
            "/a",
        ] {
            let error = parse_listen(text).unwrap_err().to_string();
            assert!(error.contains("write"), "{text}: {error}");
        }
    }
}
