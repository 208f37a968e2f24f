//! HTTP requests as bytes, and TLS from an attacker's address.

use super::connect;
use crate::hostile::stage::Stage;
use remote::{Address, Server, Tls, Trust};
use std::io::{Error, Read, Result};
use std::net::IpAddr;

/// A request with a body.
pub fn request(method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: convect\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The header that shows a token.
pub fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

/// The daemon, as attackers know it.
///
/// # Errors
/// When TLS cannot be spoken.
pub fn server(stage: &Stage<'_>) -> Result<Server> {
    let places = stage.places;
    let address = Address::parse(&format!("https://{}", places.tls)).map_err(Error::other)?;
    let trust = Trust::Pin(places.pin.clone());
    Server::new(address, &trust, places.token.clone()).map_err(Error::other)
}

/// A connection by TLS from an address.
///
/// # Errors
/// When it is refused.
pub fn tls(stage: &Stage<'_>, server: &Server, from: IpAddr) -> Result<Tls> {
    server.over(connect(from, stage.places.tls)?)
}

/// Reads once: a part of an answer, or that there is none.
///
/// # Errors
/// When the connection broke, or nothing comes in time.
pub fn some_answer(stream: &mut impl Read) -> Result<usize> {
    stream.read(&mut [0; 4096])
}
