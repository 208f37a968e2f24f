//! Other daemons, seen from this one (docs/access.md).

use super::Severity;
use crate::Secret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A daemon on another host that is to be looked at from here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerCreate {
    /// As a pool's name; unique in the daemon.
    pub name: String,
    /// `https://HOST[:PORT]`: where it listens, for this daemon and for browsers.
    pub url: String,
    /// The SHA-256 of its certificate: `sha256:` and 64 hexadecimal digits. This or `ca`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// Certificates in PEM, one of which signed its certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    /// A token of that daemon; the role viewer suffices. It is kept, and never told.
    #[schema(value_type = String)]
    pub token: Secret,
}

/// What became of the last time that it was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// It was not asked yet, and is asked now.
    Asking,
    /// It answered.
    Online,
    /// It did not, or is not the one that is known.
    Unreachable,
}

/// A pool of a server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ServerPool {
    /// Its name.
    pub name: String,
    /// As a pool's.
    pub state: String,
    /// Usable bytes.
    pub capacity: u64,
    /// Bytes that hold the only valid copy of something.
    pub used: u64,
    /// Seconds until a part of it is full, at the pace at which it filled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_to_full: Option<u64>,
    /// Reads and writes a second, and bytes a second of both, since it was asked before. Nothing when that was too long
    /// ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<ServerLoad>,
}

/// What hosts do with a pool.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ServerLoad {
    /// Reads a second.
    pub reads: f64,
    /// Writes a second.
    pub writes: f64,
    /// Bytes read a second.
    pub read_bytes: f64,
    /// Bytes written a second.
    pub write_bytes: f64,
}

/// Something that is wrong with a server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ServerAlert {
    /// How much it matters.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
}

/// A server at a glance.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Server {
    /// Its name here; empty for this one.
    pub name: String,
    /// Where its page is; empty for this one.
    pub url: String,
    /// The fingerprint by which its certificate is known; nothing where it is known by who signed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// What became of the last time that it was asked.
    pub state: ServerState,
    /// Why it could not be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it answered last: seconds since 1970. What follows is of then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_s: Option<u64>,
    /// Its pools, at most 64.
    pub pools: Vec<ServerPool>,
    /// What is wrong there, what matters most first; at most 8.
    pub alerts: Vec<ServerAlert>,
    /// How many alerts there are.
    pub alerts_open: u64,
    /// Jobs that run.
    pub jobs_running: u64,
}

/// Servers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ServerList {
    /// The one that answers.
    pub this: Server,
    /// The others, by name.
    pub items: Vec<Server>,
}
