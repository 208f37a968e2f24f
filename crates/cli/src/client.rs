//! Asking the daemon: one request of HTTP/1.1 a connection, whichever way it goes, bounded in size
//! and time.

use crate::Failure;
use crate::show;
use crate::way::{Way, Wire};
use api::v1::Problem;
use api::{Method, Operation};
use remote::split;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Longest answer that is read, in bytes.
const ANSWER_MAX: u64 = 64 << 20;
/// How long an answer may take: of what only looks, of what changes, and of what moves all data.
const LOOK_TIME: Duration = Duration::from_secs(60);
const CHANGE_TIME: Duration = Duration::from_secs(600);
const MOVE_TIME: Duration = Duration::from_secs(24 * 3600);
/// Longest head of an answer whose body is a stream, in bytes.
const HEAD_MAX: usize = 64 << 10;
/// Bytes of a stream that are sent at a time.
const PART: usize = 256 << 10;

/// What asks one daemon.
pub struct Client {
    way: Way,
}

/// Writes what would mean something in a path or query as `%XX`.
fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

/// The operation's path with its segments filled in, in order, and the query.
fn target(operation: Operation, segments: &[&str], query: &[(&str, &str)]) -> String {
    let mut left = segments.iter();
    let filled: Vec<String> = operation
        .route()
        .path
        .split('/')
        .map(|part| match part.starts_with('{') {
            true => encode(left.next().copied().unwrap_or_default()),
            false => part.to_owned(),
        })
        .collect();
    let mut target = filled.join("/");
    for (index, (name, value)) in query.iter().enumerate() {
        let before = if index == 0 { '?' } else { '&' };
        let _ = write!(target, "{before}{name}={}", encode(value));
    }
    target
}

/// Reads a head and nothing behind it: as much as there is of it when the other side ends.
fn read_head(wire: &mut Wire, head: &mut Vec<u8>) -> io::Result<()> {
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_MAX {
        if wire.read(&mut byte)? == 0 {
            break;
        }
        head.extend(byte);
    }
    Ok(())
}

impl Client {
    /// What asks the daemon that this way leads to; nothing is asked yet.
    pub fn new(way: Way) -> Self {
        Self { way }
    }

    /// The folder that relative paths of the daemon's files begin at; nothing where it has other files than this host.
    pub fn folder(&self) -> Option<PathBuf> {
        match &self.way {
            Way::Socket(_) => Some(std::env::current_dir().unwrap_or_else(|_| "/".into())),
            Way::Server(_) => None,
        }
    }

    /// The beginning of a request; the rest of its head follows.
    fn head(
        &self,
        operation: Operation,
        segments: &[&str],
        query: &[(&str, &str)],
        version: &str,
    ) -> String {
        format!(
            "{} {} HTTP/{version}\r\nHost: {}\r\n{}",
            operation.route().method.as_str(),
            target(operation, segments, query),
            self.way.host(),
            self.way.authorization()
        )
    }

    fn connect(&self, reading: Duration, writing: Duration) -> Result<Wire, Failure> {
        let wire = self.way.connect()?;
        let set = wire.set_patience(reading, writing);
        set.map_err(|error| self.way.unreachable(&error))?;
        Ok(wire)
    }

    /// The whole answer to what was sent, or not to its end.
    fn answer(
        &self,
        wire: &mut Wire,
        sent: io::Result<()>,
        mut answer: Vec<u8>,
    ) -> Result<Vec<u8>, Failure> {
        // A daemon that refuses the caller may close before it has read everything; its answer
        // is there all the same.
        let read = wire.take(ANSWER_MAX + 1).read_to_end(&mut answer);
        if answer.is_empty() {
            let done = sent.and(read.map(|_| ()));
            done.map_err(|error| self.way.unreachable(&error))?;
        }
        self.judge(&answer)
    }

    /// Asks for an operation: `segments` are what its path leaves open, in order.
    ///
    /// # Errors
    /// When no daemon answers, or it refuses.
    pub fn call(
        &self,
        operation: Operation,
        segments: &[&str],
        query: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> Result<Vec<u8>, Failure> {
        let patience = match operation {
            Operation::PoolCool => MOVE_TIME,
            _ if operation.route().method == Method::Get => LOOK_TIME,
            _ => CHANGE_TIME,
        };
        let body = body.unwrap_or_default();
        let mut request = self.head(operation, segments, query, "1.1");
        let _ = write!(
            request,
            "Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut request = request.into_bytes();
        request.extend(body);
        let mut wire = self.connect(patience, LOOK_TIME)?;
        let sent = wire.write_all(&request);
        self.answer(&mut wire, sent, Vec::new())
    }

    /// The body of a good answer.
    fn judge(&self, answer: &[u8]) -> Result<Vec<u8>, Failure> {
        let Some((status, body)) = split(answer) else {
            return Err(Failure::Failed(format!(
                "what answers at {} is no convect daemon, or it ended meanwhile",
                self.way.name()
            )));
        };
        if status < 400 {
            return Ok(body.to_vec());
        }
        match show::read::<Problem>(body) {
            Ok(problem) => Err(Failure::Refused(problem)),
            Err(_) => Err(Failure::Failed(format!(
                "the daemon answered with status {status} and no reason: see its log"
            ))),
        }
    }

    /// Asks for an operation whose answer is a stream, which says by itself where it ends: it is
    /// read as it comes.
    ///
    /// # Errors
    /// When no daemon answers, or it refuses.
    pub fn download(
        &self,
        operation: Operation,
        segments: &[&str],
        query: &[(&str, &str)],
    ) -> Result<impl Read, Failure> {
        // By this version the body comes as it is, up to the end of the connection.
        let request = self.head(operation, segments, query, "1.0") + "\r\n";
        let mut wire = self.connect(CHANGE_TIME, LOOK_TIME)?;
        let sent = wire.write_all(request.as_bytes());
        let mut head = Vec::new();
        let read = read_head(&mut wire, &mut head);
        if head.is_empty() {
            let done = sent.and(read);
            done.map_err(|error| self.way.unreachable(&error))?;
        }
        let good = head.starts_with(b"HTTP/1.") && head.get(9..12) == Some(b"200");
        if good && head.ends_with(b"\r\n\r\n") {
            return Ok(wire);
        }
        self.answer(&mut wire, Ok(()), head)?;
        Err(Failure::Failed(format!(
            "what answers at {} gives no stream: use the convect of its version",
            self.way.name()
        )))
    }

    /// Asks for an operation with a stream as its body.
    ///
    /// # Errors
    /// When no daemon answers, it refuses, or the stream cannot be read.
    pub fn upload(
        &self,
        operation: Operation,
        segments: &[&str],
        query: &[(&str, &str)],
        source: &mut impl Read,
    ) -> Result<Vec<u8>, Failure> {
        // Nothing is sent before the daemon says that it takes it (RFC 9110, section 10.1.1): a refusal could get lost
        // behind what nobody reads.
        let head = self.head(operation, segments, query, "1.1")
            + "Connection: close\r\nContent-Type: application/octet-stream\r\n\
               Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n";
        let mut wire = self.connect(CHANGE_TIME, CHANGE_TIME)?;
        let sent = wire.write_all(head.as_bytes());
        let mut answer = Vec::new();
        let read = read_head(&mut wire, &mut answer);
        if !answer.starts_with(b"HTTP/1.1 100 ") {
            return self.answer(&mut wire, sent.and(read), answer);
        }
        // A daemon that refuses answers before it has read everything.
        let mut sent = Ok(());
        let mut part = vec![0; PART];
        while sent.is_ok() {
            let length = source
                .read(&mut part)
                .map_err(|error| Failure::Failed(format!("the stream cannot be read: {error}")))?;
            let length_line = format!("{length:x}\r\n");
            let chunk = [length_line.as_bytes(), &part[..length], b"\r\n"];
            sent = wire.write_all(&chunk.concat());
            if length == 0 {
                break;
            }
        }
        self.answer(&mut wire, sent, Vec::new())
    }

    /// Asks for an operation without a body.
    ///
    /// # Errors
    /// When no daemon answers, or it refuses.
    pub fn get(&self, operation: Operation, segments: &[&str]) -> Result<Vec<u8>, Failure> {
        self.call(operation, segments, &[], None)
    }

    /// Asks for an operation with a body.
    ///
    /// # Errors
    /// When no daemon answers, or it refuses.
    pub fn send<T: Serialize>(
        &self,
        operation: Operation,
        segments: &[&str],
        request: &T,
    ) -> Result<Vec<u8>, Failure> {
        let body =
            serde_json::to_vec(request).map_err(|error| Failure::Failed(error.to_string()))?;
        self.call(operation, segments, &[], Some(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_writes_cannot_leave_its_segment() {
        for (name, path) in [
            ("tank", "/v1/pools/tank"),
            ("../x", "/v1/pools/..%2Fx"),
            ("a b?c#d\r\n", "/v1/pools/a%20b%3Fc%23d%0D%0A"),
            ("é", "/v1/pools/%C3%A9"),
        ] {
            assert_eq!(target(Operation::PoolShow, &[name], &[]), path);
        }
        assert_eq!(
            target(Operation::ExportShow, &["a"], &[("pool", "p&q")]),
            "/v1/exports/a?pool=p%26q"
        );
    }
}
