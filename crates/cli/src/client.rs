//! HTTP/1.1 client of the daemon: one request per connection over either transport, bounded in size
//! and time.

use crate::Failure;
use crate::show;
use crate::transport::Transport;
use api::v1::Problem;
use api::{Method, Operation};
use remote::{Answer, Broken, Connection, Patience, Request, exchange};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::time::Duration;

/// Maximum size of a response, in bytes.
const ANSWER_MAX: usize = 64 << 20;
/// Time limits of responses: of queries, of changes, and of operations that move all data.
const LOOK_TIME: Duration = Duration::from_secs(60);
const CHANGE_TIME: Duration = Duration::from_secs(600);
const MOVE_TIME: Duration = Duration::from_secs(24 * 3600);
/// Content type of request bodies; and the folder of hosts without one.
const JSON: &str = "application/json";

/// A client of one daemon.
pub struct Client {
    transport: Transport,
}

/// Percent-encodes a segment of a path or query.
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

/// Body of a response that delimits itself, whether or not the connection was closed cleanly.
struct Download(Answer<Connection>);

impl Read for Download {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.0.read(into) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(0),
            read => read,
        }
    }
}

impl Client {
    /// A client over this transport. Nothing is sent yet.
    pub fn new(transport: Transport) -> Self {
        Self { transport }
    }

    /// Folder against which relative paths of daemon files are resolved; nothing where the daemon
    /// is on another host.
    pub fn folder(&self) -> Option<PathBuf> {
        match &self.transport {
            Transport::Socket(_) => Some(std::env::current_dir().unwrap_or_else(|_| "/".into())),
            Transport::Server(_) => None,
        }
    }

    /// Sends a request and reads the head of the response. `body`: its type, and its length if
    /// known.
    fn exchange(
        &self,
        (operation, segments, query): (Operation, &[&str], &[(&str, &str)]),
        patience: Patience,
        (body, length): (&str, Option<usize>),
        source: &mut dyn Read,
    ) -> Result<Answer<Connection>, Failure> {
        let connection = self.transport.connect(patience)?;
        let request = Request::builder()
            .method(operation.route().method.as_str())
            .uri(target(operation, segments, query));
        let request = self
            .transport
            .authorized(request)
            .header("Content-Type", body);
        let request = match (length, operation.route().method) {
            (Some(0), Method::Get) => request,
            (Some(length), _) => request.header("Content-Length", length),
            // Send the body only after the daemon has accepted the request (RFC 9110, section
            // 10.1.1): a refusal could be lost behind a body that is never read.
            (None, _) => request.header("Expect", "100-continue"),
        };
        let request = request.body(());
        let request = request.map_err(|error| Failure::Failed(error.to_string()))?;
        exchange(connection, request, source).map_err(|broken| match broken {
            Broken::Connection(error) => self.transport.unreachable(&error),
            Broken::Answer(_) => self.no_daemon(),
            Broken::Source(error) => {
                Failure::Failed(format!("cannot read the input stream: {error}"))
            }
        })
    }

    fn no_daemon(&self) -> Failure {
        Failure::Unreachable(format!(
            "the server at {} is not a convect daemon, or it stopped meanwhile: check the address \
             and the daemon's log",
            self.transport.name()
        ))
    }

    /// Calls an operation. `segments` fill the placeholders of its path, in order.
    ///
    /// # Errors
    /// When no daemon responds, or it refuses.
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
        let answer = self.exchange(
            (operation, segments, query),
            Patience::Each(patience, LOOK_TIME),
            (JSON, Some(body.len())),
            &mut &body[..],
        )?;
        self.check_status(answer)
    }

    /// The body of a successful response.
    fn check_status(&self, answer: Answer<Connection>) -> Result<Vec<u8>, Failure> {
        let status = answer.status();
        let body = answer.whole(ANSWER_MAX).map_err(|_| self.no_daemon())?;
        if status < 400 {
            return Ok(body);
        }
        match show::read::<Problem>(&body) {
            Ok(problem) => Err(Failure::Refused(problem)),
            Err(_) => Err(Failure::Failed(format!(
                "the daemon responded with status {status} and no reason: see its log"
            ))),
        }
    }

    /// Calls an operation whose response is a self-delimiting stream, which is read as it arrives.
    ///
    /// # Errors
    /// When no daemon responds, or it refuses.
    pub fn download(
        &self,
        operation: Operation,
        segments: &[&str],
        query: &[(&str, &str)],
    ) -> Result<impl Read + use<>, Failure> {
        let answer = self.exchange(
            (operation, segments, query),
            Patience::Each(CHANGE_TIME, LOOK_TIME),
            (JSON, Some(0)),
            &mut io::empty(),
        )?;
        if answer.status() == 200 {
            return Ok(Download(answer));
        }
        self.check_status(answer)?;
        Err(Failure::Failed(format!(
            "the daemon at {} sent no stream: use the convect client of its version",
            self.transport.name()
        )))
    }

    /// Calls an operation with a stream as its body.
    ///
    /// # Errors
    /// When no daemon responds, it refuses, or the stream cannot be read.
    pub fn upload(
        &self,
        operation: Operation,
        segments: &[&str],
        query: &[(&str, &str)],
        source: &mut impl Read,
    ) -> Result<Vec<u8>, Failure> {
        let answer = self.exchange(
            (operation, segments, query),
            Patience::Each(CHANGE_TIME, CHANGE_TIME),
            ("application/octet-stream", None),
            source,
        )?;
        self.check_status(answer)
    }

    /// Calls an operation without a body.
    ///
    /// # Errors
    /// When no daemon responds, or it refuses.
    pub fn get(&self, operation: Operation, segments: &[&str]) -> Result<Vec<u8>, Failure> {
        self.call(operation, segments, &[], None)
    }

    /// Calls an operation with a body.
    ///
    /// # Errors
    /// When no daemon responds, or it refuses.
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
    fn user_input_cannot_leave_its_path_segment() {
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
