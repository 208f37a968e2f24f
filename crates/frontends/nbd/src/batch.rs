//! Batches of replies that are sent with one system call.

use crate::channel::Channel;
use crate::contexts::Context;
use crate::errors;
use crate::flight::{Answer, Request};
use crate::handshake::Agreed;
use crate::protocol::{
    SIMPLE_REPLY_MAGIC, STATE_CHANGED, STATE_HOLE_ZERO, STRUCTURED_REPLY_MAGIC, chunk,
};
use block::{AllocationState, IoError, StatusExtent};
use std::io::{IoSlice, Result};
use std::ops::Range;

/// Number of replies, and bytes of data, at which a batch is sent.
const REPLIES_MAX: usize = 64;
const BYTES_MAX: usize = 1 << 20;
/// Maximum length of an error message that is sent, in bytes.
const TEXT_MAX: usize = 256;
/// Maximum number of extents in a block status reply.
pub(crate) const EXTENTS_MAX: usize = 4096;

/// Replies to be sent; reused from batch to batch for its allocations.
#[derive(Default)]
pub(crate) struct Batch {
    heads: Vec<u8>,
    /// Requests, each with its header's range in `heads`.
    replies: Vec<(Range<usize>, Request)>,
    bytes: usize,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.replies.len() >= REPLIES_MAX || self.bytes >= BYTES_MAX
    }

    /// Adds the reply to a completed request.
    pub(crate) fn push(&mut self, request: Request, agreed: &Agreed) {
        let start = self.heads.len();
        encode(&mut self.heads, &request, agreed);
        self.bytes += request.held;
        self.replies.push((start..self.heads.len(), request));
    }

    /// Sends all replies.
    pub(crate) async fn write(&self, stream: &Channel) -> Result<()> {
        let mut parts = Vec::with_capacity(2 * self.replies.len());
        for (head, request) in &self.replies {
            parts.push(IoSlice::new(&self.heads[head.clone()]));
            if request.answer == Answer::Data && request.error.is_none() {
                let bytes = request.buffers().filter_map(|buf| buf.as_bytes());
                parts.extend(bytes.map(IoSlice::new));
            }
        }
        stream.write_all(&mut parts).await
    }

    /// Empties the batch and returns its requests.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Request> + '_ {
        self.heads.clear();
        self.bytes = 0;
        self.replies.drain(..).map(|(_, request)| request)
    }
}

fn simple(heads: &mut Vec<u8>, cookie: u64, error: u32) {
    heads.extend_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    heads.extend_from_slice(&error.to_be_bytes());
    heads.extend_from_slice(&cookie.to_be_bytes());
}

/// The header of a structured reply of one chunk with a payload of `len` bytes.
fn structured(heads: &mut Vec<u8>, cookie: u64, kind: u16, len: u32) {
    chunk_of(heads, cookie, kind, len, true);
}

/// The header of a chunk of a structured reply with a payload of `len` bytes, the last one or not.
fn chunk_of(heads: &mut Vec<u8>, cookie: u64, kind: u16, len: u32, last: bool) {
    let flags = if last { chunk::FLAG_DONE } else { 0 };
    heads.extend_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    heads.extend_from_slice(&flags.to_be_bytes());
    heads.extend_from_slice(&kind.to_be_bytes());
    heads.extend_from_slice(&cookie.to_be_bytes());
    heads.extend_from_slice(&len.to_be_bytes());
}

fn error_chunk(heads: &mut Vec<u8>, cookie: u64, error: &IoError) {
    let text = error.to_string();
    let text = &text[..text.floor_char_boundary(TEXT_MAX)];
    structured(heads, cookie, chunk::ERROR, 6 + text.len() as u32);
    heads.extend_from_slice(&errors::code(error.kind).to_be_bytes());
    heads.extend_from_slice(&(text.len() as u16).to_be_bytes());
    heads.extend_from_slice(text.as_bytes());
}

/// Encodes a reply except for read data.
fn encode(heads: &mut Vec<u8>, request: &Request, agreed: &Agreed) {
    let (cookie, with_structure) = (request.cookie, agreed.structured);
    match (&request.error, request.answer) {
        (Some(error), Answer::Data | Answer::Status { .. }) if with_structure => {
            error_chunk(heads, cookie, error);
        }
        (Some(error), _) => simple(heads, cookie, errors::code(error.kind)),
        (None, Answer::Data) if with_structure => {
            structured(heads, cookie, chunk::OFFSET_DATA, 8 + request.len);
            heads.extend_from_slice(&request.offset.to_be_bytes());
        }
        (None, Answer::Done | Answer::Data) => simple(heads, cookie, 0),
        (None, Answer::Status { one }) => {
            for (index, context) in agreed.contexts.iter().enumerate() {
                let found = request.found.get(index);
                let extents = found.map_or(&[][..], |found| &found.extents);
                let runs = runs(extents, request.len, one, *context);
                let len = 4 + 8 * runs.len() as u32;
                let last = index + 1 == agreed.contexts.len();
                chunk_of(heads, cookie, chunk::BLOCK_STATUS, len, last);
                heads.extend_from_slice(&(index as u32 + 1).to_be_bytes());
                for (len, state) in runs {
                    heads.extend_from_slice(&len.to_be_bytes());
                    heads.extend_from_slice(&state.to_be_bytes());
                }
            }
        }
    }
}

/// The extents of a context with equal neighbours merged, clipped to `len` bytes.
fn runs(extents: &[StatusExtent], len: u32, one: bool, context: Context) -> Vec<(u32, u32)> {
    let most = if one { 1 } else { EXTENTS_MAX };
    let mut left = len;
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for extent in extents {
        let take = u64::from(left).min(extent.len) as u32;
        let state = match extent.state {
            AllocationState::Data | AllocationState::Same => 0,
            AllocationState::Hole => STATE_HOLE_ZERO,
            AllocationState::Changed => STATE_CHANGED,
        };
        if take == 0 {
            continue;
        }
        if let Some(last) = runs.last_mut()
            && last.1 == state
        {
            last.0 += take;
        } else if runs.len() == most {
            break;
        } else {
            runs.push((take, state));
        }
        left -= take;
    }
    if runs.is_empty() {
        runs.push((len, context.unknown()));
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(len: u64, hole: bool) -> StatusExtent {
        StatusExtent {
            len,
            state: if hole {
                AllocationState::Hole
            } else {
                AllocationState::Data
            },
        }
    }

    fn allocation(extents: &[StatusExtent], len: u32, one: bool) -> Vec<(u32, u32)> {
        runs(extents, len, one, Context::Allocation)
    }

    #[test]
    fn extents_are_merged_and_clipped() {
        let extents = [
            extent(4096, true),
            extent(4096, true),
            extent(u64::MAX, false),
        ];
        assert_eq!(allocation(&extents, 16384, false), [(8192, 3), (8192, 0)]);
        assert_eq!(allocation(&extents, 16384, true), [(8192, 3)]);
        assert_eq!(allocation(&extents, 4096, false), [(4096, 3)]);
    }

    #[test]
    fn status_without_extents_counts_as_data() {
        assert_eq!(allocation(&[], 4096, false), [(4096, 0)]);
        assert_eq!(allocation(&[extent(0, true)], 4096, false), [(4096, 0)]);
    }

    #[test]
    fn extents_of_a_reply_are_bounded() {
        let extents: Vec<_> = (0..10_000).map(|n| extent(512, n % 2 == 0)).collect();
        assert_eq!(allocation(&extents, u32::MAX, false).len(), EXTENTS_MAX);
    }
}
