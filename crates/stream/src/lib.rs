//! Snapshots as a stream: records to bytes and back, and the token by which an interrupted one goes
//! on. See docs/stream.md.
//!
//! Responsible for: layout, checksums, order and bounds; what is decoded is within them.
//! Leaves out: where bytes come from and go to; it does no I/O.

mod decode;
mod encode;
mod error;
mod fields;
mod record;
mod token;

pub use decode::Decoder;
pub use encode::Encoder;
pub use error::StreamError;
pub use record::{Begin, DATA_MAX, FAILED_MAX, NAME_MAX, Record, SIZE_MAX, Totals, VERSION};
pub use token::Token;
