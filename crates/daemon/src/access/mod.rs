//! Who may do what: tokens, browser sessions, and the log of what was changed (docs/access.md).
//!
//! Responsible for: what is believed of a caller, and what is written down of changes.
//! Leaves out: headers and sockets (`http`), which operation needs which role (`api`).

mod anchor;
mod attempts;
mod audit;
mod caller;
mod doors;
mod secret;
mod sessions;
mod tokens;

pub use attempts::Failures;
pub use caller::{Caller, Credential};
pub use doors::Access;
pub use secret::sha256_hex;
