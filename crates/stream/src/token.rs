//! Tokens for resuming an interrupted stream.

use crate::StreamError;
use crate::fields::{Sum, get_id, get_id_or_none, get_u32, get_u64, push_id};
use crate::record::{ID, SIZE_MAX};
use std::fmt::{self, Write};
use std::str::FromStr;
use units::{BLOCK, SnapshotId};

/// The version of tokens.
const VERSION: u8 = 1;
/// Bytes of a token before its checksum: the version, two identities and how far it is.
const BODY: usize = 1 + 2 * ID + 8;

/// Which stream, and how much of the volume is there already. As text hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// The snapshot that is sent.
    pub to: SnapshotId,
    /// The one that the receiver has.
    pub from: Option<SnapshotId>,
    /// Bytes of the volume, from its first one, that the receiver has.
    pub done: u64,
}

fn checksum(body: &[u8]) -> u32 {
    let mut sum = Sum::new();
    sum.add(body);
    sum.value()
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![VERSION];
        push_id(&mut bytes, Some(self.to));
        push_id(&mut bytes, self.from);
        bytes.extend(self.done.to_le_bytes());
        bytes.extend(checksum(&bytes).to_le_bytes());
        let mut text = String::new();
        for byte in bytes {
            write!(text, "{byte:02x}")?;
        }
        f.write_str(&text)
    }
}

impl FromStr for Token {
    type Err = StreamError;

    fn from_str(text: &str) -> Result<Self, StreamError> {
        let digits = text.as_bytes();
        if digits.len() != 2 * (BODY + 4) {
            return Err(StreamError::Token);
        }
        let byte = |pair: &[u8]| {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            Some((digit(0)? * 16 + digit(1)?) as u8)
        };
        let bytes: Option<Vec<u8>> = digits.chunks_exact(2).map(byte).collect();
        let bytes = bytes.ok_or(StreamError::Token)?;
        let done = get_u64(&bytes, 1 + 2 * ID);
        let is_whole = checksum(&bytes[..BODY]) == get_u32(&bytes, BODY);
        if !is_whole || bytes[0] != VERSION || done > SIZE_MAX || !done.is_multiple_of(BLOCK as u64)
        {
            return Err(StreamError::Token);
        }
        Ok(Self {
            to: get_id(&bytes, 1),
            from: get_id_or_none(&bytes, 1 + ID),
            done,
        })
    }
}
