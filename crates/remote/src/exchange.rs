//! HTTP/1.1 (RFC 9112) with one exchange per connection: sends a request and reads its response.
//!
//! `ureq-proto`, a state machine without I/O, formats requests and parses responses; this module
//! moves bytes between it and a blocking stream, whose owner limits the time. A server may refuse
//! before it has read the whole request, so its response is read even if sending failed. Redirects
//! are not followed.

use std::io::{self, ErrorKind, Read, Write};
use ureq_proto::BodyMode;
use ureq_proto::client::state::{Await100, RecvBody, RecvResponse, SendBody, SendRequest};
use ureq_proto::client::{Await100Result, Call, RecvResponseResult, SendRequestResult};
use ureq_proto::http::{Request, header};

/// Maximum size of the head of a request or response, in bytes.
const HEAD_MAX: usize = 64 << 10;
/// Bytes per read.
const PART: usize = 64 << 10;
/// Bytes of a body per write, and the maximum overhead of chunked encoding (RFC 9112, section 7.1).
const BODY_PART: usize = 256 << 10;
const CHUNK_MORE: usize = 64;

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The request is invalid, or the connection failed before a response arrived.
    #[error("{0}")]
    Connection(io::Error),
    /// The response is not HTTP, or ended within its head.
    #[error("{0}")]
    Answer(io::Error),
    /// The source of the request body could not be read.
    #[error("{0}")]
    Source(io::Error),
}

/// A stream with a buffer of bytes that were read ahead.
struct Input<S> {
    stream: S,
    read: Vec<u8>,
}

/// A response whose body is read as it arrives.
pub struct Answer<S> {
    status: u16,
    input: Input<S>,
    /// Nothing if the response has no body.
    body: Option<Call<RecvBody>>,
}

fn invalid(error: ureq_proto::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error.to_string())
}

impl<S: Read> Input<S> {
    /// Reads more bytes into the buffer. Returns their number; 0 at the end.
    fn more(&mut self) -> io::Result<usize> {
        let before = self.read.len();
        self.read.resize(before + PART, 0);
        let length = self.stream.read(&mut self.read[before..]);
        self.read.truncate(before + *length.as_ref().unwrap_or(&0));
        match length {
            // Some peers close without close_notify (RFC 8446, section 6.1); HTTP framing tells
            // whether the response is complete.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof && before > 0 => Ok(0),
            length => length,
        }
    }

    /// Reads more of the head. `sent`: the result of sending, returned if the server responds
    /// nothing.
    fn more_of_head(&mut self, sent: &mut io::Result<()>) -> Result<(), Broken> {
        if self.read.len() >= HEAD_MAX {
            let text = format!("the head of its response is longer than {HEAD_MAX} bytes");
            return Err(Broken::Answer(io::Error::new(ErrorKind::InvalidData, text)));
        }
        let nothing = self.read.is_empty();
        match (self.more(), nothing) {
            (Ok(1..), _) => Ok(()),
            (Ok(0), true) if sent.is_err() => {
                let sent = std::mem::replace(sent, Ok(()));
                sent.map_err(Broken::Connection)
            }
            (Ok(0), _) => Err(Broken::Answer(ErrorKind::UnexpectedEof.into())),
            (Err(error), true) => Err(Broken::Connection(error)),
            (Err(error), false) => Err(Broken::Answer(error)),
        }
    }

    /// Waits until the server accepts the body (RFC 9110, section 10.1.1), or responds with a final
    /// status.
    fn await_continue(
        &mut self,
        call: &mut Call<Await100>,
        sent: &mut io::Result<()>,
    ) -> Result<(), Broken> {
        while call.can_keep_await_100() {
            let used = call.try_read_100(&self.read);
            let used = used.map_err(|error| Broken::Answer(invalid(error)))?;
            self.read.drain(..used);
            if used == 0 && call.can_keep_await_100() {
                self.more_of_head(sent)?;
            }
        }
        Ok(())
    }

    /// Reads the head of the response.
    fn answer(
        mut self,
        mut call: Call<RecvResponse>,
        mut sent: io::Result<()>,
    ) -> Result<Answer<S>, Broken> {
        let status = loop {
            let taken = call.try_response(&self.read, false);
            let (used, response) = taken.map_err(|error| Broken::Answer(invalid(error)))?;
            self.read.drain(..used);
            match response {
                Some(response) => break response.status().as_u16(),
                None if used > 0 => {}
                None => self.more_of_head(&mut sent)?,
            }
        };
        let body = match call.proceed() {
            Some(RecvResponseResult::RecvBody(body)) => Some(body),
            _ => None,
        };
        Ok(Answer {
            status,
            input: self,
            body,
        })
    }
}

/// Sends the head of a request and advances the state even if sending fails.
fn send_head(
    stream: &mut impl Write,
    mut call: Call<SendRequest>,
) -> io::Result<(Option<SendRequestResult>, io::Result<()>)> {
    let (mut part, mut sent) = (vec![0; HEAD_MAX], Ok(()));
    while !call.can_proceed() {
        let length = call.write(&mut part).map_err(invalid)?;
        sent = sent.and_then(|()| stream.write_all(&part[..length]));
    }
    let sent = sent.and_then(|()| stream.flush());
    Ok((call.proceed().map_err(invalid)?, sent))
}

/// Sends a body to its end, or until the server stops reading.
fn send_body(
    stream: &mut impl Write,
    mut call: Call<SendBody>,
    source: &mut dyn Read,
    mut sent: io::Result<()>,
) -> Result<(Option<Call<RecvResponse>>, io::Result<()>), Broken> {
    let (mut part, mut out) = (vec![0; BODY_PART], vec![0; BODY_PART + CHUNK_MORE]);
    loop {
        // A chunked body may end anywhere; with a content length, count the rest.
        let length = match sent.is_ok() || !call.is_chunked() {
            true => source.read(&mut part).map_err(Broken::Source)?,
            false => 0,
        };
        let mut left = &part[..length];
        loop {
            let written = call.write(left, &mut out);
            let (used, encoded) = written.map_err(|error| Broken::Source(invalid(error)))?;
            sent = sent.and_then(|()| stream.write_all(&out[..encoded]));
            left = &left[used..];
            if left.is_empty() {
                break;
            }
        }
        if length == 0 {
            let sent = sent.and_then(|()| stream.flush());
            return Ok((call.proceed(), sent));
        }
    }
}

/// Sends a request and reads the head of the response. The length of the body is the request's
/// `Content-Length`; without one it is sent in chunks. With `Expect: 100-continue` the body is sent
/// after the server has accepted it.
///
/// # Errors
/// When there is no valid response, or `source` cannot be read or does not match the length.
pub fn exchange<S: Read + Write>(
    mut stream: S,
    request: Request<()>,
    source: &mut dyn Read,
) -> Result<Answer<S>, Broken> {
    let sized = request.headers().contains_key(header::CONTENT_LENGTH);
    let mut call = Call::new(request).map_err(|error| Broken::Connection(invalid(error)))?;
    if sized {
        call.force_send_body();
    }
    let (next, mut sent) = send_head(&mut stream, call.proceed()).map_err(Broken::Connection)?;
    let mut input = Input {
        stream,
        read: Vec::new(),
    };
    let next = match next {
        Some(SendRequestResult::Await100(mut call)) => {
            input.await_continue(&mut call, &mut sent)?;
            let next = call.proceed();
            match next.map_err(|error| Broken::Answer(invalid(error)))? {
                Await100Result::SendBody(call) => Next::Body(call),
                Await100Result::RecvResponse(call) => Next::Answer(call),
            }
        }
        Some(SendRequestResult::SendBody(call)) => Next::Body(call),
        Some(SendRequestResult::RecvResponse(call)) => Next::Answer(call),
        None => return Err(Broken::Connection(ErrorKind::InvalidInput.into())),
    };
    let next = match next {
        Next::Answer(call) => Some(call),
        Next::Body(call) => {
            let (next, done) = send_body(&mut input.stream, call, source, sent)?;
            sent = done;
            next
        }
    };
    match next {
        Some(call) => input.answer(call, sent),
        None => Err(Broken::Source(ErrorKind::UnexpectedEof.into())),
    }
}

/// Next step after the head of a request.
enum Next {
    Body(Call<SendBody>),
    Answer(Call<RecvResponse>),
}

impl<S: Read> Answer<S> {
    /// Its status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The body, limited to `bytes_max`.
    ///
    /// # Errors
    /// When it is longer, or truncated (`UnexpectedEof`).
    pub fn whole(self, bytes_max: usize) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        self.take(bytes_max as u64 + 1).read_to_end(&mut body)?;
        match body.len() > bytes_max {
            true => Err(io::Error::other(format!(
                "its response is longer than {bytes_max} bytes"
            ))),
            false => Ok(body),
        }
    }
}

impl<S: Read> Read for Answer<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(body) = self.body.as_mut().filter(|_| !into.is_empty()) else {
            return Ok(0);
        };
        loop {
            let (used, length) = body.read(&self.input.read, into).map_err(invalid)?;
            self.input.read.drain(..used);
            let closes = body.body_mode() == BodyMode::CloseDelimited;
            if length > 0 || (body.can_proceed() && !closes) {
                return Ok(length);
            }
            if used == 0 && self.input.more()? == 0 {
                return match closes {
                    true => Ok(0),
                    false => Err(ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer with a canned response, which records a limited number of received bytes.
    struct Peer<'a> {
        answer: &'a [u8],
        sent: &'a mut Vec<u8>,
        takes: usize,
    }

    impl Read for Peer<'_> {
        /// Returns one byte at a time.
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.answer.read(&mut into[..1])
        }
    }

    impl Write for Peer<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.sent.len() + bytes.len() > self.takes {
                return Err(ErrorKind::BrokenPipe.into());
            }
            self.sent.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn request(method: &str, headers: &[(&str, &str)]) -> Request<()> {
        let request = Request::builder().method(method).uri("/v1/x?y=%20");
        let request = headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, *value)
        });
        request.body(()).unwrap()
    }

    /// Status, and the result of reading the body.
    type Answered = (u16, io::Result<Vec<u8>>);

    fn ask(
        request: Request<()>,
        body: &mut dyn Read,
        answer: &[u8],
        takes: usize,
    ) -> (Result<Answered, Broken>, String) {
        let mut sent = Vec::new();
        let peer = Peer {
            answer,
            sent: &mut sent,
            takes,
        };
        let answered = exchange(peer, request, body);
        let answered = answered.map(|answer| (answer.status(), answer.whole(1 << 20)));
        (answered, String::from_utf8_lossy(&sent).into_owned())
    }

    const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

    #[test]
    fn bodies_end_as_framed() {
        for (answer, status, body) in [
            (GOOD, 200, Some(&b"{}"[..])),
            (b"HTTP/1.1 204 No Content\r\ndate: x\r\n\r\n", 204, Some(b"")),
            (b"HTTP/1.0 200 OK\r\n\r\n{}", 200, Some(b"{}")),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
                200,
                Some(b"{}"),
            ),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 1\r\n\r\nx", 302, Some(b"x")),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}", 200, None),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}",
                200,
                None,
            ),
        ] {
            let (answered, sent) = ask(request("GET", &[("host", "a")]), &mut io::empty(), answer, 1 << 10);
            let (code, read) = answered.unwrap();
            let shown = String::from_utf8_lossy(answer);
            assert_eq!((code, read.ok().as_deref()), (status, body), "{shown}");
            assert_eq!(sent, "GET /v1/x?y=%20 HTTP/1.1\r\nhost: a\r\n\r\n");
        }
    }

    #[test]
    fn malformed_responses_are_errors() {
        for answer in [
            &b""[..],
            b"HTTP/1.1 200 OK\r\ncontent-length: 2",
            b"SSH-2.0\r\n\r\n",
            b"HTTP/1.1 \xff\r\n\r\n",
            &[b'x'; 2 * HEAD_MAX],
        ] {
            let (answered, _) = ask(request("GET", &[]), &mut io::empty(), answer, 1 << 10);
            assert!(matches!(answered, Err(Broken::Answer(_))), "{answered:?}");
        }
        let (answered, _) = ask(request("GET", &[]), &mut io::empty(), b"", 0);
        assert!(
            matches!(answered, Err(Broken::Connection(_))),
            "{answered:?}"
        );
    }

    #[test]
    fn bodies_are_sent_with_length_or_chunked() {
        let sized = request("DELETE", &[("content-length", "2")]);
        let (answered, sent) = ask(sized, &mut &b"{}"[..], GOOD, 1 << 10);
        assert_eq!(answered.unwrap().0, 200);
        assert!(sent.ends_with("content-length: 2\r\n\r\n{}"), "{sent}");
        let none = request("PUT", &[("content-length", "0")]);
        assert!(ask(none, &mut io::empty(), GOOD, 1 << 10).0.is_ok());
        let (answered, sent) = ask(request("PUT", &[]), &mut &b"abc"[..], GOOD, 1 << 10);
        assert_eq!(answered.unwrap().0, 200);
        assert!(sent.ends_with("\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), "{sent}");
    }

    #[test]
    fn body_is_sent_after_continue() {
        let expecting = || request("PUT", &[("expect", "100-continue")]);
        let (answered, sent) = ask(expecting(), &mut &b"abc"[..], GOOD, 1 << 10);
        assert_eq!(answered.unwrap().0, 200);
        assert!(
            sent.ends_with("\r\n\r\n") && !sent.contains("abc"),
            "{sent}"
        );
        let taken = [b"HTTP/1.1 100 Continue\r\n\r\n", GOOD].concat();
        let (answered, sent) = ask(expecting(), &mut &b"abc"[..], &taken, 1 << 10);
        assert_eq!(answered.unwrap().0, 200);
        assert!(sent.ends_with("3\r\nabc\r\n0\r\n\r\n"), "{sent}");
    }

    #[test]
    fn early_refusal_is_read() {
        let refused = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno";
        let long = vec![0; 3 * BODY_PART];
        let length = long.len().to_string();
        for headers in [&[("content-length", length.as_str())][..], &[]] {
            let request = request("POST", headers);
            let (answered, _) = ask(request, &mut &long[..], refused, 1 << 10);
            let (status, body) = answered.unwrap();
            assert_eq!((status, &body.unwrap()[..]), (403, &b"no"[..]));
        }
    }

    #[test]
    fn response_size_is_limited() {
        let mut sent = Vec::new();
        let peer = Peer {
            answer: GOOD,
            sent: &mut sent,
            takes: 1 << 10,
        };
        let answer = exchange(peer, request("GET", &[]), &mut io::empty()).unwrap();
        assert!(answer.whole(1).is_err());
    }
}
