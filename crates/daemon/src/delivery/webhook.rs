//! A POST of an event (RFC 9110), signed when there is a secret. Only the answer's status counts.

use super::addresses::addresses;
use super::tls::client_config;
use api::Secret;
use api::v1::Event;
use axum::http::Uri;
use ring::hmac;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A delivery takes at most so long, from the first byte to the answer's status.
const WHOLE_TIME: Duration = Duration::from_secs(15);
/// Longest status line that is read, in bytes.
const STATUS_MAX: usize = 1024;

/// What is sent.
#[derive(Serialize)]
struct Message<'a> {
    host: &'a str,
    event: &'a Event,
}

/// Where a webhook is.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    tls: bool,
    host: String,
    port: u16,
    path: Secret,
}

impl Place {
    /// Reads a URL.
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub fn parse(url: &str) -> Result<Self, String> {
        let wrong = || {
            "this is no address of a webhook: write it like https://alerts.example.com/convect"
                .to_owned()
        };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        if authority.as_str().contains('@') {
            return Err("the address has a user in it: sign with a secret instead".to_owned());
        }
        let host = authority.host();
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        if host.is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            tls,
            host: host.to_owned(),
            port: authority.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            path: Secret::new(uri.path_and_query().map_or("/", |path| path.as_str())),
        })
    }

    fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        format!("{host}:{}", self.port)
    }

    /// What may be shown of it: paths of webhooks are often secrets.
    pub fn shown(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}/...", self.authority())
    }
}

/// A stream that ends at a time, however slow the other side is.
struct Timed {
    stream: TcpStream,
    until: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(ErrorKind::TimedOut.into()),
            false => Ok(Some(left)),
        }
    }
}

impl Read for Timed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(bytes)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn connect(place: &Place, link_local: bool, until: Instant) -> io::Result<Timed> {
    let addresses = addresses(&place.host, place.port, link_local)?;
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(Timed { stream, until }),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn hex_hmac(secret: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, body);
    tag.as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn request(place: &Place, secret: Option<&str>, body: &[u8]) -> Vec<u8> {
    let signature = secret.map_or(String::new(), |secret| {
        format!("X-Convect-Signature: sha256={}\r\n", hex_hmac(secret, body))
    });
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: convect/{}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{signature}\r\n",
        place.path.expose(),
        place.authority(),
        env!("CARGO_PKG_VERSION"),
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Sends a request and reads the status.
fn exchange(stream: &mut (impl Read + Write), request: &[u8]) -> io::Result<u16> {
    stream.write_all(request)?;
    stream.flush()?;
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < STATUS_MAX && !line.ends_with(b"\n") && stream.read(&mut byte)? == 1 {
        line.extend(byte);
    }
    let status = line
        .strip_prefix(b"HTTP/1.")
        .and_then(|rest| std::str::from_utf8(rest.get(2..5)?).ok())
        .and_then(|digits| digits.parse().ok());
    status.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "what answers speaks no HTTP"))
}

fn post(place: &Place, link_local: bool, ca: Option<&str>, request: &[u8]) -> io::Result<u16> {
    let mut stream = connect(place, link_local, Instant::now() + WHOLE_TIME)?;
    if !place.tls {
        return exchange(&mut stream, request);
    }
    let config = client_config(ca).map_err(io::Error::other)?;
    let name = ServerName::try_from(place.host.clone()).map_err(io::Error::other)?;
    let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
    exchange(&mut StreamOwned::new(connection, stream), request)
}

/// Tells a webhook of an event.
///
/// # Errors
/// Why it did not take it: anything but a status of 200 to 299.
pub fn send(
    (url, secret, ca): (&str, Option<&str>, Option<&str>),
    link_local: bool,
    host: &str,
    event: &Event,
) -> Result<(), String> {
    let place = Place::parse(url)?;
    let body = serde_json::to_vec(&Message { host, event }).map_err(|error| error.to_string())?;
    match post(&place, link_local, ca, &request(&place, secret, &body)) {
        Ok(200..=299) => Ok(()),
        Ok(status) => Err(format!("{} answers with status {status}", place.shown())),
        Err(error) => Err(match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                format!("{} did not answer within {WHOLE_TIME:?}", place.shown())
            }
            _ => format!("{} cannot be reached: {error}", place.shown()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_not_shown_as_a_whole() {
        let place = |tls, host: &str, port, path: &str| Place {
            tls,
            host: host.to_owned(),
            port,
            path: Secret::new(path),
        };
        for (url, wanted, shown) in [
            (
                "https://a.example/x?token=1",
                place(true, "a.example", 443, "/x?token=1"),
                "https://a.example:443/...",
            ),
            (
                "http://127.0.0.1:8080",
                place(false, "127.0.0.1", 8080, "/"),
                "http://127.0.0.1:8080/...",
            ),
            (
                "https://[::1]:1/a",
                place(true, "::1", 1, "/a"),
                "https://[::1]:1/...",
            ),
        ] {
            let read = Place::parse(url).unwrap();
            assert_eq!((read.shown().as_str(), &read), (shown, &wanted));
            assert!(!format!("{read:?}").contains("token"));
        }
        for wrong in [
            "",
            "/x",
            "a.example",
            "ftp://a/",
            "https://",
            "https://u:p@a/",
            "https://a b/",
            "https://a/\r\nX: y",
        ] {
            assert!(Place::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_signature_is_that_of_the_standard() {
        // RFC 4231, test case 2.
        assert_eq!(
            hex_hmac("Jefe", b"what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
