//! Listen addresses of an export: parsing and validation.

use reactor::ListenAddress;
use std::io::{Error, ErrorKind, Result};
use std::path::PathBuf;

pub(crate) fn invalid(text: String) -> Error {
    Error::new(ErrorKind::InvalidInput, text)
}

/// Parses `unix:PATH` or `tcp:ADDRESS:PORT`.
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
    let (host, port) = rest.rsplit_once(':').ok_or_else(form)?;
    if host.is_empty() || port.parse::<u16>().is_err() {
        return Err(form());
    }
    Ok(ListenAddress::Tcp(reactor::resolve(rest)?[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_in_every_form() {
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
    fn invalid_address_is_refused_with_the_expected_form() {
        for text in [
            "",
            "unix:",
            "unix:a.sock",
            "tcp:",
            "tcp:1.2.3.4",
            "tcp:1.2.3.4:99999",
            "/a",
        ] {
            let error = parse_listen(text).unwrap_err().to_string();
            assert!(error.contains("write"), "{text}: {error}");
        }
    }
}
