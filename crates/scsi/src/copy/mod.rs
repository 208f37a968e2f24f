//! Third-party copies: EXTENDED COPY (SPC-4 6.3, 6.4) with RECEIVE COPY RESULTS among the units that the
//! session may reach, and copies by tokens. A unit that was not granted cannot be named.

mod offload;
mod page;
mod parameters;
mod run;
mod tokens;

pub(crate) use offload::{Ended, populate, status as long_status, token_information, write_using};
pub(crate) use page::page;
pub(crate) use run::{CopyEnded, extended_copy, extended_copy_long, parameters, status};
pub(crate) use tokens::UnitTokens;
