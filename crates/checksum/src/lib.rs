//! CRC32C (Castagnoli), the checksum of every block and record: of bytes where they lie, and of bytes on their way
//! from one place to another, in one pass.
//!
//! Responsible for: computing checksums. Leaves out: comparing them.

mod away;
mod copy;
#[cfg(target_arch = "x86_64")]
mod fold;
#[cfg(any(debug_assertions, feature = "known-checksums"))]
mod known;
mod sum;
#[cfg(target_arch = "x86_64")]
mod words;

pub use away::{settle, store};
pub use copy::{copy, copy_away};
#[cfg(any(debug_assertions, feature = "known-checksums"))]
pub use known::{Lookup, know_checksums};
pub use sum::crc32c;
