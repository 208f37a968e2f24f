//! Buffered reading from a peer: several small requests cost one system call.

use crate::Stream;
use std::io::{ErrorKind, Result};
use std::rc::Rc;

/// Initial size for a connection until it sends more at a time, in bytes: thousands may be idle.
const FIRST: usize = 4 << 10;

/// The source of a [`ReadBuffer`]: a stream of bytes.
pub trait Source {
    /// As [`Stream::read`].
    ///
    /// # Errors
    /// When the connection broke.
    fn read(&self, buf: &mut [u8]) -> impl Future<Output = Result<usize>>;

    /// As [`Stream::read_soon`].
    ///
    /// # Errors
    /// When the connection broke.
    fn read_soon(&self, buf: &mut [u8]) -> impl Future<Output = Result<usize>>;
}

impl Source for Stream {
    fn read(&self, buf: &mut [u8]) -> impl Future<Output = Result<usize>> {
        Self::read(self, buf)
    }

    fn read_soon(&self, buf: &mut [u8]) -> impl Future<Output = Result<usize>> {
        Self::read_soon(self, buf)
    }
}

/// The reading end of a connection.
pub struct ReadBuffer<S = Stream> {
    stream: Rc<S>,
    buf: Box<[u8]>,
    /// Its maximum size, in bytes.
    size: usize,
    start: usize,
    end: usize,
    direct: usize,
}

impl<S: Source> ReadBuffer<S> {
    /// Reads ahead at most `size` bytes; what is wanted beyond the buffer and is longer than `direct`
    /// bytes, which is at most `size`, goes straight to where it belongs.
    pub fn new(stream: Rc<S>, size: usize, direct: usize) -> Self {
        assert!(direct <= size, "a rest that is read ahead fits the buffer");
        Self {
            stream,
            buf: vec![0; size.min(FIRST)].into_boxed_slice(),
            size,
            start: 0,
            end: 0,
            direct,
        }
    }

    /// Changes how much is read ahead at most, and what goes straight to where it belongs, from now on.
    pub fn read_ahead(&mut self, size: usize, direct: usize) {
        assert!(direct <= size, "a rest that is read ahead fits the buffer");
        assert!(size >= self.buf.len(), "what is there has room");
        (self.size, self.direct) = (size, direct);
    }

    fn grow(&mut self) {
        let mut buf = vec![0; self.size].into_boxed_slice();
        buf[..self.end].copy_from_slice(&self.buf[..self.end]);
        self.buf = buf;
    }

    /// Waits until `need` bytes, at most the buffer's size, are there, and returns all that are. Nothing
    /// is lost when this is dropped.
    ///
    /// # Errors
    /// `UnexpectedEof` when the stream ends first.
    pub async fn fill(&mut self, need: usize) -> Result<&[u8]> {
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
            if self.end == self.buf.len() && self.buf.len() < self.size {
                self.grow();
            }
        }
        Ok(&self.buf[self.start..self.end])
    }

    /// Bytes read ahead.
    pub fn at_hand(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    /// Whether unread bytes are available.
    pub fn has_more(&self) -> bool {
        self.start < self.end
    }

    /// Drops `count` bytes that are there.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.end - self.start, "they are there");
        self.start += count;
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// As [`ReadBuffer::fill`].
    pub async fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.fill(N).await?[..N]);
        self.consume(N);
        Ok(bytes)
    }

    /// Fills the whole of `target`.
    ///
    /// # Errors
    /// As [`ReadBuffer::fill`].
    pub async fn exact(&mut self, target: &mut [u8]) -> Result<()> {
        let buffered = (self.end - self.start).min(target.len());
        target[..buffered].copy_from_slice(&self.buf[self.start..self.start + buffered]);
        self.start += buffered;
        let mut rest = &mut target[buffered..];
        if rest.len() > self.direct {
            while !rest.is_empty() {
                match self.stream.read(rest).await? {
                    0 => return Err(ErrorKind::UnexpectedEof.into()),
                    count => rest = &mut rest[count..],
                }
            }
            return Ok(());
        }
        let len = rest.len();
        rest.copy_from_slice(&self.fill(len).await?[..len]);
        self.consume(len);
        Ok(())
    }
}
