//! Access control: roles, tokens, browser sessions and the audit log (docs/access.md).

use crate::Secret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Role of a caller. `viewer`: read everything except tokens, the audit log and the content of
/// volumes; `operator`: also change volumes, snapshots, schedules and exports, scrub, cancel jobs,
/// send and receive; `admin`: also change pools, drives, tokens and notification targets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Read only.
    Viewer,
    /// Also change volumes, snapshots, schedules and exports.
    Operator,
    /// Also change pools, drives, tokens and notification targets.
    Admin,
}

/// A token to create.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenCreate {
    /// Name of the token, unique on this daemon; same syntax as a pool name.
    pub name: String,
    /// Role of its bearer.
    pub role: Role,
    /// Lifetime in seconds, from 60 to ten years; 90 days by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u64>,
}

/// A token, without its secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Name of the token.
    pub name: String,
    /// Role of its bearer.
    pub role: Role,
    /// Creation time, in seconds since 1970.
    pub created_s: u64,
    /// Expiry time, in seconds since 1970.
    pub expires_s: u64,
    /// The token has expired.
    pub expired: bool,
}

/// List of tokens.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    /// Tokens, sorted by name.
    pub items: Vec<Token>,
}

/// A newly created token, with its secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenMade {
    /// The token as it is listed.
    pub token: Token,
    /// The secret that clients send as `Authorization: Bearer`. Shown only once: the daemon stores
    /// its SHA-256.
    #[schema(value_type = String)]
    pub secret: Secret,
}

/// Login of a browser.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogIn {
    /// Secret of a token.
    #[schema(value_type = String)]
    pub token: Secret,
}

/// Identity of the caller.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Login {
    /// Name of the token, or the user of this host.
    pub who: String,
    /// Role of the caller.
    pub role: Role,
    /// CSRF token of the session, required in the header `X-Convect-CSRF` of every change; absent
    /// without a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub csrf: Option<Secret>,
    /// Expiry time of the session or token, in seconds since 1970; absent on the Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_s: Option<u64>,
}

/// An entry of the audit log. Each change has two: before it is executed, and with its result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Number of the entry, from 1 without gaps.
    pub number: u64,
    /// Time, in seconds since 1970.
    pub at_s: u64,
    /// Caller: name of a token, `uid N` on the Unix socket, or `nobody` if unauthenticated.
    pub who: String,
    /// Origin: an IP address, or `socket`.
    pub from: String,
    /// Name of the operation.
    pub operation: String,
    /// Object of the operation, without secrets.
    pub subject: String,
    /// `asked` before execution; afterwards `done`, or the reason for the failure.
    pub outcome: String,
    /// Of a result: number of the entry that was written before execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// SHA-256 over the hash of the previous entry and this entry, in hexadecimal digits
    /// (docs/access.md).
    pub hash: String,
}

/// Entries of the audit log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    /// Entries, newest first.
    pub items: Vec<AuditEntry>,
    /// Number of the first entry at which the hash chain is broken, as checked at the daemon's
    /// start; absent if the log is intact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_at: Option<u64>,
}
