//! Block traces: the formats that the field uses, and synthetic ones, as one kind of request.
//!
//! Responsible for: recognising a trace's format, decompressing it, and checking all that is read;
//! a damaged record is an error that says where it is. [`synthetic`] makes traces from a seed.
//! Leaves out: the use of the requests. The memory is that of the requests.

mod collector;
mod compression;
mod error;
mod fields;
mod formats;
mod input;
pub mod law;
mod read;
mod request;
pub mod synthetic;

pub use error::{Position, TraceError, TraceErrorKind};
pub use formats::{Format, UnknownFormat};
pub use read::{Trace, parse, read};
pub use request::{Request, SECTOR};
