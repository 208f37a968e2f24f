//! What a peer sends, through a buffer: several small PDUs cost one system call.

use crate::digest::{self, DIGEST_LEN, padding};
use crate::pdu::{HEAD_LEN, Head};
use reactor::Stream;
use std::io::{Error, ErrorKind, Result};
use std::rc::Rc;

/// Bytes read ahead; more than a header with all that may follow it.
const BUFFER: usize = 64 << 10;
/// What a connection has of those until it sends more at a time: thousands may be there and send little.
const FIRST_BUFFER: usize = 4 << 10;
/// A rest of a data segment longer than this is read straight to where it belongs.
const DIRECT: usize = 16 << 10;

/// The reading end of a connection.
pub(crate) struct Input {
    stream: Rc<Stream>,
    buf: Box<[u8]>,
    start: usize,
    end: usize,
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

impl Input {
    pub(crate) fn new(stream: Rc<Stream>) -> Self {
        Self {
            stream,
            buf: vec![0; FIRST_BUFFER].into_boxed_slice(),
            start: 0,
            end: 0,
        }
    }

    fn grow(&mut self) {
        let mut buf = vec![0; BUFFER].into_boxed_slice();
        buf[..self.end].copy_from_slice(&self.buf[..self.end]);
        self.buf = buf;
    }

    /// Waits until `need` bytes are in the buffer. Nothing is lost when this is given up.
    async fn fill(&mut self, need: usize) -> Result<()> {
        if need > self.buf.len() {
            self.grow();
        }
        while self.end - self.start < need {
            if self.start == self.end {
                (self.start, self.end) = (0, 0);
            } else if self.buf.len() - self.start < need {
                self.buf.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            match self.stream.read_soon(&mut self.buf[self.end..]).await? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => self.end += count,
            }
            if self.end == self.buf.len() && self.buf.len() < BUFFER {
                self.grow();
            }
        }
        Ok(())
    }

    /// The next header. Additional segments are read and left out: nothing here needs one. May be
    /// given up and called again.
    pub(crate) async fn head(&mut self, with_digest: bool) -> Result<Head> {
        self.fill(HEAD_LEN).await?;
        let mut head = [0; HEAD_LEN];
        head.copy_from_slice(&self.buf[self.start..self.start + HEAD_LEN]);
        let head = Head(head);
        let len = HEAD_LEN + head.additional_len();
        let all = len + if with_digest { DIGEST_LEN } else { 0 };
        self.fill(all).await?;
        let bytes = &self.buf[self.start..self.start + all];
        if with_digest && digest::of(&bytes[..len]) != bytes[len..] {
            // Where the next PDU begins is not known any more (RFC 7143, section 7.8).
            return Err(damaged("header digest"));
        }
        self.start += all;
        Ok(head)
    }

    async fn exact(&mut self, target: &mut [u8]) -> Result<()> {
        let buffered = (self.end - self.start).min(target.len());
        target[..buffered].copy_from_slice(&self.buf[self.start..self.start + buffered]);
        self.start += buffered;
        let rest = &mut target[buffered..];
        if rest.len() > DIRECT {
            return self.stream.read_exact(rest).await;
        }
        self.fill(rest.len()).await?;
        rest.copy_from_slice(&self.buf[self.start..self.start + rest.len()]);
        self.start += rest.len();
        Ok(())
    }

    /// The data segment of a PDU into `target`, which is as long as it; false when its digest says
    /// that it was damaged.
    pub(crate) async fn data_into(&mut self, target: &mut [u8], with_digest: bool) -> Result<bool> {
        if target.is_empty() {
            return Ok(true);
        }
        self.exact(target).await?;
        let pad = padding(target.len());
        let mut tail = [0; 3 + DIGEST_LEN];
        let tail = &mut tail[..pad + if with_digest { DIGEST_LEN } else { 0 }];
        self.exact(tail).await?;
        if !with_digest {
            return Ok(true);
        }
        let right = match pad {
            0 => digest::of(target),
            _ => digest::of_two(target, &tail[..pad]),
        };
        Ok(right == tail[pad..])
    }

    /// The data segment of a PDU, on the heap. The caller has bounded `len`.
    pub(crate) async fn data(&mut self, len: usize, with_digest: bool) -> Result<(Vec<u8>, bool)> {
        let mut bytes = vec![0; len];
        let whole = self.data_into(&mut bytes, with_digest).await?;
        Ok((bytes, whole))
    }
}
