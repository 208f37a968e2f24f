//! Why a stream is not taken.

use thiserror::Error;

/// Why a stream, or a token, is not taken: half a sentence.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum StreamError {
    /// It does not begin as one.
    #[error("not a stream of `convect send`")]
    NoStream,
    /// Its version is not known.
    #[error(
        "it was written by another version of Convect (the stream has version {0}, this program supports \
         1): use that version"
    )]
    Version(u32),
    /// It has features that are not known.
    #[error(
        "it was written by a newer version of Convect (with features {0:#x}, which this program does \
         not support): use that version"
    )]
    Features(u64),
    /// A record is not as its checksum says, or of no kind.
    #[error("record {0} is damaged, or a part before it is missing: send it again")]
    Damaged(u64),
    /// A record is whole and says what cannot be.
    #[error("record {0} is invalid ({1}): it was written incorrectly")]
    Wrong(u64, &'static str),
    /// It ends early.
    #[error("it is truncated after {0} complete records: send it again")]
    Cut(u64),
    /// Something follows its end.
    #[error("data follows its end")]
    Trailing,
    /// A token is not one.
    #[error("invalid or incomplete resume token: copy all of it")]
    Token,
}
