//! Who may do what: tokens, sessions, and the log of changes.

use crate::Secret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What somebody may do; each may do what those before it may.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look.
    Viewer,
    /// Change volumes, snapshots, exports and what belongs to them.
    Operator,
    /// Change pools, drives and tokens.
    Admin,
}

/// A token to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenCreate {
    /// As a pool's name; unique in the daemon.
    pub name: String,
    /// What its bearer may do.
    pub role: Role,
    /// Seconds until it counts no more, 60 to ten years; 90 days when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u64>,
}

/// A token, without its secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its name.
    pub name: String,
    /// What its bearer may do.
    pub role: Role,
    /// When it was made: seconds since 1970.
    pub created_s: u64,
    /// From when on it counts no more: seconds since 1970.
    pub expires_s: u64,
    /// That is past.
    pub expired: bool,
}

/// Tokens.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    /// One entry a token, by name.
    pub items: Vec<Token>,
}

/// A token that was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenMade {
    /// What is known of it from now on.
    pub token: Token,
    /// What its bearer shows; it is not kept.
    #[schema(value_type = String)]
    pub secret: Secret,
}

/// A session to be begun.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogIn {
    /// A token.
    #[schema(value_type = String)]
    pub token: Secret,
}

/// Who asks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Login {
    /// The token's name, or the user of the host.
    pub who: String,
    /// What they may do.
    pub role: Role,
    /// What a browser sends with each change as `X-Convect-CSRF`; nothing where there is no session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub csrf: Option<Secret>,
    /// When it ends: seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_s: Option<u64>,
}

/// A line of the log of changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its number, from 1 on without gaps.
    pub number: u64,
    /// When: seconds since 1970.
    pub at_s: u64,
    /// Who: a token's name, `uid N` of the Unix socket, or nobody.
    pub who: String,
    /// From where: an address, or `socket`.
    pub from: String,
    /// What was asked for: the operation's name.
    pub operation: String,
    /// Of what, as far as that is no secret.
    pub subject: String,
    /// `asked` before it is done; `done`, or why it was not, after that.
    pub outcome: String,
    /// The number of the entry that says that it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// SHA-256, in hex, over the entry before's and what this one says (docs/access.md).
    pub hash: String,
}

/// The log of changes, or a part of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    /// Newest first.
    pub items: Vec<AuditEntry>,
    /// The first entry that is not as it was written, as of the daemon's start; nothing: the log is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_at: Option<u64>,
}
