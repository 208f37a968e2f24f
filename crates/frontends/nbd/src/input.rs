//! Buffered input from a peer; payloads go directly into the buffers of operations.

use crate::channel::Channel;
use block::IoBuf;
use reactor::ReadBuffer;
use std::io::Result;
use std::rc::Rc;

/// Read-ahead buffer; and during the handshake, before authentication.
const BUFFER: usize = 128 << 10;
const BUFFER_FIRST: usize = 4 << 10;
/// Remaining payloads longer than this bypass the read-ahead buffer.
const DIRECT: usize = 32 << 10;

/// Size of an option's header, whose last four bytes are the length of the data.
const OPTION_LEN: usize = 16;

/// The receiving side of a connection.
pub(crate) struct Input(ReadBuffer<Channel>);

impl Input {
    pub(crate) fn new(stream: Rc<Channel>) -> Self {
        Self(ReadBuffer::new(stream, BUFFER_FIRST, BUFFER_FIRST / 2))
    }

    /// Enlarges the read-ahead buffer after the handshake.
    pub(crate) fn read_ahead(&mut self) {
        self.0.read_ahead(BUFFER, DIRECT);
    }

    /// Whether unprocessed data was read ahead.
    pub(crate) fn has_more(&self) -> bool {
        self.0.has_more()
    }

    /// Whether a complete handshake option was read ahead, so that it can be processed without
    /// waiting.
    pub(crate) fn has_option(&self) -> bool {
        let bytes = self.0.at_hand();
        let Some((head, data)) = bytes.split_at_checked(OPTION_LEN) else {
            return false;
        };
        let len = head.last_chunk().map(|len| u32::from_be_bytes(*len));
        len.is_some_and(|len| data.len() >= len as usize)
    }

    /// The next `N` bytes.
    pub(crate) async fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.0.array().await
    }

    /// The next `len` bytes, in a new allocation. The caller limits `len`.
    pub(crate) async fn bytes(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.0.exact(&mut bytes).await?;
        Ok(bytes)
    }

    /// Fills `buf` from the input and returns it.
    pub(crate) async fn payload(&mut self, mut buf: IoBuf) -> Result<IoBuf> {
        let len = buf.len();
        if len <= DIRECT {
            buf.write(0, &self.0.fill(len).await?[..len]);
            self.0.consume(len);
            return Ok(buf);
        }
        let mut bytes = buf
            .into_bytes()
            .unwrap_or_else(|| vec![0; len].into_boxed_slice());
        self.0.exact(&mut bytes).await?;
        Ok(IoBuf::from_bytes(bytes))
    }

    /// Discards the next `len` bytes.
    pub(crate) async fn skip(&mut self, mut len: u64) -> Result<()> {
        while len > 0 {
            let step = len.min(self.0.fill(1).await?.len() as u64);
            self.0.consume(step as usize);
            len -= step;
        }
        Ok(())
    }
}
