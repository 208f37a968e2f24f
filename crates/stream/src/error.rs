//! Why a stream is not taken.

use thiserror::Error;

/// Why a stream, or a token, is not taken: half a sentence.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum StreamError {
    /// It does not begin as one.
    #[error("it is no stream of `convect send`")]
    NoStream,
    /// Its version is not known.
    #[error(
        "it was made by another version of Convect (the stream's version is {0}, this program knows \
         1): use that version"
    )]
    Version(u32),
    /// It has features that are not known.
    #[error(
        "it was made by a newer version of Convect (with features {0:#x}, which this program does \
         not know): use that version"
    )]
    Features(u64),
    /// A record is not as its checksum says, or of no kind.
    #[error("record {0} is damaged, or something before it is missing: send it again")]
    Damaged(u64),
    /// A record is whole and says what cannot be.
    #[error("record {0} cannot be ({1}): it was made wrongly")]
    Wrong(u64, &'static str),
    /// It ends early.
    #[error("it ends before its end, after {0} whole records: the rest was lost on the way")]
    Cut(u64),
    /// Something follows its end.
    #[error("something follows its end")]
    Trailing,
    /// A token is not one.
    #[error("it is no resume token, or a part of it is missing: copy all of it")]
    Token,
}
