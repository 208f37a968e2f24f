//! Asking the daemon: one request of HTTP/1.1 a connection, over either transport, bounded in size
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

/// Longest answer that is read, in bytes.
const ANSWER_MAX: usize = 64 << 20;
/// How long an answer may take: of what only looks, of what changes, and of what moves all data.
const LOOK_TIME: Duration = Duration::from_secs(60);
const CHANGE_TIME: Duration = Duration::from_secs(600);
const MOVE_TIME: Duration = Duration::from_secs(24 * 3600);
/// What requests bear, and where they bear nothing.
const JSON: &str = "application/json";

/// What asks one daemon.
pub struct Client {
    transport: Transport,
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

/// A body that says by itself where it ends, whether the connection ended with it or before.
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
    /// A client of the daemon that this transport reaches; nothing is sent yet.
    pub fn new(transport: Transport) -> Self {
        Self { transport }
    }

    /// The folder that relative paths of the daemon's files begin at; nothing where it has other files than this host.
    pub fn folder(&self) -> Option<PathBuf> {
        match &self.transport {
            Transport::Socket(_) => Some(std::env::current_dir().unwrap_or_else(|_| "/".into())),
            Transport::Server(_) => None,
        }
    }

    /// Sends a request and reads the head of the answer. `body`: its type, and its length where it has one.
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
            // Nothing is sent before the daemon says that it takes it (RFC 9110, section 10.1.1): a refusal could get
            // lost behind what nobody reads.
            (None, _) => request.header("Expect", "100-continue"),
        };
        let request = request.body(());
        let request = request.map_err(|error| Failure::Failed(error.to_string()))?;
        exchange(connection, request, source).map_err(|broken| match broken {
            Broken::Connection(error) => self.transport.unreachable(&error),
            Broken::Answer(_) => self.no_daemon(),
            Broken::Source(error) => Failure::Failed(format!("the stream cannot be read: {error}")),
        })
    }

    fn no_daemon(&self) -> Failure {
        Failure::Failed(format!(
            "what answers at {} is no convect daemon, or it ended meanwhile",
            self.transport.name()
        ))
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
        let answer = self.exchange(
            (operation, segments, query),
            Patience::Each(patience, LOOK_TIME),
            (JSON, Some(body.len())),
            &mut &body[..],
        )?;
        self.judge(answer)
    }

    /// The body of a good answer.
    fn judge(&self, answer: Answer<Connection>) -> Result<Vec<u8>, Failure> {
        let status = answer.status();
        let body = answer.whole(ANSWER_MAX).map_err(|_| self.no_daemon())?;
        if status < 400 {
            return Ok(body);
        }
        match show::read::<Problem>(&body) {
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
        let answer = self.exchange(
            (operation, segments, query),
            Patience::Each(CHANGE_TIME, LOOK_TIME),
            (JSON, Some(0)),
            &mut io::empty(),
        )?;
        if answer.status() == 200 {
            return Ok(Download(answer));
        }
        self.judge(answer)?;
        Err(Failure::Failed(format!(
            "what answers at {} gives no stream: use the convect of its version",
            self.transport.name()
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
        let answer = self.exchange(
            (operation, segments, query),
            Patience::Each(CHANGE_TIME, CHANGE_TIME),
            ("application/octet-stream", None),
            source,
        )?;
        self.judge(answer)
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
