//! Access control: tokens, browser sessions, and the audit log (docs/access.md).
//!
//! Responsible for: authentication of callers, and the record of changes.
//! Leaves out: headers and sockets (`http`), the role required by each operation (`api`).

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
