//! Buffered input of headers and data segments from a peer, with digests.

use crate::digest::{self, DIGEST_LEN, padding};
use crate::pdu::{HEAD_LEN, Head};
use reactor::{ReadBuffer, Stream};
use std::io::{Error, ErrorKind, Result};
use std::rc::Rc;

/// Read-ahead buffer; larger than a header with all additional segments.
const BUFFER: usize = 64 << 10;
/// Remaining data longer than this bypasses the read-ahead buffer.
const DIRECT: usize = 16 << 10;

/// The receiving side of a connection.
pub(crate) struct Input(ReadBuffer);

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

impl Input {
    pub(crate) fn new(stream: Rc<Stream>) -> Self {
        Self(ReadBuffer::new(stream, BUFFER, DIRECT))
    }

    /// Whether unprocessed data was read ahead.
    pub(crate) fn has_more(&self) -> bool {
        self.0.has_more()
    }

    /// The next header if it was read ahead completely.
    pub(crate) fn head_at_hand(&mut self, with_digest: bool) -> Option<Result<Head>> {
        let bytes = self.0.at_hand();
        let head = Head(*bytes.first_chunk()?);
        let len = HEAD_LEN + head.additional_len();
        let all = len + if with_digest { DIGEST_LEN } else { 0 };
        let bytes = bytes.get(..all)?;
        if with_digest && digest::of(&bytes[..len]) != bytes[len..] {
            // The start of the next PDU is unknown (RFC 7143, section 7.8).
            return Some(Err(damaged("header digest")));
        }
        self.0.consume(all);
        Some(Ok(head))
    }

    /// The next header. Additional header segments are skipped, as none is used. Cancel-safe.
    pub(crate) async fn head(&mut self, with_digest: bool) -> Result<Head> {
        let mut need = HEAD_LEN;
        loop {
            let bytes = self.0.fill(need).await?;
            if let Some(head) = bytes.first_chunk() {
                need = HEAD_LEN + Head(*head).additional_len();
                need += if with_digest { DIGEST_LEN } else { 0 };
            }
            if let Some(head) = self.head_at_hand(with_digest) {
                return head;
            }
        }
    }

    /// Copies the data segment of a PDU into `target`, which has its length, if it was read ahead
    /// completely; false if its digest is wrong.
    pub(crate) fn data_at_hand(&mut self, target: &mut [u8], with_digest: bool) -> Option<bool> {
        let len = target.len();
        if len == 0 {
            return Some(true);
        }
        let padded = len + padding(len);
        let all = padded + if with_digest { DIGEST_LEN } else { 0 };
        let bytes = self.0.at_hand().get(..all)?;
        target.copy_from_slice(&bytes[..len]);
        let whole = !with_digest || digest::of(&bytes[..padded]) == bytes[padded..];
        self.0.consume(all);
        Some(whole)
    }

    /// Reads the data segment of a PDU into `target`, which has its length; false if its digest is
    /// wrong.
    pub(crate) async fn data_into(&mut self, target: &mut [u8], with_digest: bool) -> Result<bool> {
        if let Some(whole) = self.data_at_hand(target, with_digest) {
            return Ok(whole);
        }
        self.0.exact(target).await?;
        let pad = padding(target.len());
        let mut tail = [0; 3 + DIGEST_LEN];
        let tail = &mut tail[..pad + if with_digest { DIGEST_LEN } else { 0 }];
        self.0.exact(tail).await?;
        if !with_digest {
            return Ok(true);
        }
        let right = match pad {
            0 => digest::of(target),
            _ => digest::of_two(target, &tail[..pad]),
        };
        Ok(right == tail[pad..])
    }

    /// The data segment of a PDU, in a new allocation. The caller limits `len`.
    pub(crate) async fn data(&mut self, len: usize, with_digest: bool) -> Result<(Vec<u8>, bool)> {
        let mut bytes = vec![0; len];
        let whole = self.data_into(&mut bytes, with_digest).await?;
        Ok((bytes, whole))
    }
}
