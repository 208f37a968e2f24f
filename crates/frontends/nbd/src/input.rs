//! What a peer sends, through a buffer: several small requests cost one system call.

use block::IoBuf;
use reactor::Stream;
use std::io::{ErrorKind, Result};
use std::rc::Rc;

/// Bytes read ahead.
const BUFFER: usize = 128 << 10;
/// A rest of a payload longer than this is read straight to where it belongs.
const DIRECT: usize = 32 << 10;

/// The reading end of a connection.
pub(crate) struct Input {
    stream: Rc<Stream>,
    buf: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Input {
    pub(crate) fn new(stream: Rc<Stream>) -> Self {
        Self {
            stream,
            buf: vec![0; BUFFER].into_boxed_slice(),
            start: 0,
            end: 0,
        }
    }

    /// Waits until `need` bytes (at most the buffer's size) are in the buffer.
    async fn fill(&mut self, need: usize) -> Result<()> {
        while self.end - self.start < need {
            if self.start == self.end {
                (self.start, self.end) = (0, 0);
            } else if self.buf.len() - self.start < need {
                self.buf.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            match self.stream.read(&mut self.buf[self.end..]).await? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => self.end += count,
            }
        }
        Ok(())
    }

    /// The next `N` bytes.
    pub(crate) async fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.fill(N).await?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.buf[self.start..self.start + N]);
        self.start += N;
        Ok(bytes)
    }

    /// The next `len` bytes, on the heap. The caller has bounded `len`.
    pub(crate) async fn bytes(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.exact(&mut bytes).await?;
        Ok(bytes)
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

    /// Fills the whole of `buf`, which has memory of its own, and gives it back.
    pub(crate) async fn payload(&mut self, mut buf: IoBuf) -> Result<IoBuf> {
        let len = buf.len();
        if len <= DIRECT {
            self.fill(len).await?;
            buf.write(0, &self.buf[self.start..self.start + len]);
            self.start += len;
            return Ok(buf);
        }
        let mut bytes = buf
            .into_bytes()
            .unwrap_or_else(|| vec![0; len].into_boxed_slice());
        self.exact(&mut bytes).await?;
        Ok(IoBuf::from_bytes(bytes))
    }

    /// Drops the next `len` bytes.
    pub(crate) async fn skip(&mut self, mut len: u64) -> Result<()> {
        while len > 0 {
            self.fill(1).await?;
            let step = len.min((self.end - self.start) as u64);
            self.start += step as usize;
            len -= step;
        }
        Ok(())
    }
}
