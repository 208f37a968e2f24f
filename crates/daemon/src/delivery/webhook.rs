//! Delivers an event by HTTP POST (RFC 9110), signed if there is a secret. Only the response's
//! status is evaluated.

use super::addresses::addresses;
use super::tls::client_config;
use api::Secret;
use api::v1::Event;
use axum::http::Uri;
use remote::{Broken, Connection, Patience, Request, Timed, Tls, exchange};
use ring::hmac;
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Time limit of a delivery, from the first byte to the response's status.
const WHOLE_TIME: Duration = Duration::from_secs(15);

/// The body.
#[derive(Serialize)]
struct Message<'a> {
    host: &'a str,
    event: &'a Event,
}

/// The URL of a webhook.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    tls: bool,
    host: String,
    port: u16,
    path: Secret,
}

impl Place {
    /// Parses a URL.
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub fn parse(url: &str) -> Result<Self, String> {
        let wrong = || {
            "this is not a webhook URL: write it like https://alerts.example.com/convect".to_owned()
        };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        if authority.as_str().contains('@') {
            return Err(
                "the URL contains a user name: sign requests with a secret instead".to_owned(),
            );
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

    /// The public part of the URL: paths of webhooks are often secrets.
    pub fn shown(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}/...", self.authority())
    }
}

fn connect(place: &Place, link_local: bool, until: Instant) -> io::Result<Timed<TcpStream>> {
    let addresses = addresses(&place.host, place.port, link_local)?;
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Timed::new(stream, Patience::Until(until)),
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

fn request(place: &Place, secret: Option<&str>, body: &[u8]) -> io::Result<Request<()>> {
    let request = Request::post(place.path.expose())
        .header("Host", place.authority())
        .header("User-Agent", concat!("convect/", env!("CARGO_PKG_VERSION")))
        .header("Connection", "close")
        .header("Content-Type", "application/json")
        .header("Content-Length", body.len());
    let request = match secret {
        Some(secret) => {
            let signature = format!("sha256={}", hex_hmac(secret, body));
            request.header("X-Convect-Signature", signature)
        }
        None => request,
    };
    request.body(()).map_err(io::Error::other)
}

/// Posts a body and returns the response's status.
fn post(
    place: &Place,
    link_local: bool,
    (secret, ca): (Option<&str>, Option<&str>),
    body: &[u8],
) -> io::Result<u16> {
    let stream = connect(place, link_local, Instant::now() + WHOLE_TIME)?;
    let connection = match place.tls {
        false => Connection::Tcp(stream),
        true => {
            let config = client_config(ca).map_err(io::Error::other)?;
            let name = ServerName::try_from(place.host.clone()).map_err(io::Error::other)?;
            let tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
            Connection::Tls(Box::new(Tls::begin(tls, stream)?))
        }
    };
    let answered = exchange(connection, request(place, secret, body)?, &mut &body[..]);
    match answered {
        Ok(answer) => Ok(answer.status()),
        Err(Broken::Answer(error)) if error.kind() == ErrorKind::InvalidData => Err(
            io::Error::new(ErrorKind::InvalidData, "the server does not speak HTTP"),
        ),
        Err(Broken::Connection(error) | Broken::Answer(error) | Broken::Source(error)) => {
            Err(error)
        }
    }
}

/// Delivers an event to a webhook.
///
/// # Errors
/// Why it was not accepted: any status other than 200 to 299.
pub fn send(
    (url, secret, ca): (&str, Option<&str>, Option<&str>),
    link_local: bool,
    host: &str,
    event: &Event,
) -> Result<(), String> {
    let place = Place::parse(url)?;
    let body = serde_json::to_vec(&Message { host, event }).map_err(|error| error.to_string())?;
    match post(&place, link_local, (secret, ca), &body) {
        Ok(200..=299) => Ok(()),
        Ok(status) => Err(format!("{} responded with status {status}", place.shown())),
        Err(error) => Err(match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                format!("{} did not respond within {WHOLE_TIME:?}", place.shown())
            }
            _ => format!("{} cannot be reached: {error}", place.shown()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed_and_shown_without_path() {
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
    fn signature_matches_the_standard() {
        // RFC 4231, test case 2.
        assert_eq!(
            hex_hmac("Jefe", b"what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
