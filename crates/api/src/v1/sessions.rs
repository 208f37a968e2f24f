//! Sessions of hosts with exports.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A session of a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Number of the session, never reused by this daemon.
    pub id: u64,
    /// Accessible exports, as `POOL/NAME`.
    pub exports: Vec<String>,
    /// Protocol.
    pub kind: String,
    /// Initiator name of the host, as the host states it.
    pub initiator: String,
    /// Address of the host.
    pub address: String,
    /// Target that the host logged in to.
    pub target: String,
    /// Local address that the host connected to.
    pub portal: String,
    /// Authenticated name (CHAP); absent without authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Start time, in seconds since 1970.
    pub since_s: u64,
    /// Number of connections.
    pub connections: u32,
    /// Commands in flight.
    pub commands: u64,
    /// Bytes read by the host.
    pub bytes_read: u64,
    /// Bytes written by the host.
    pub bytes_written: u64,
}

/// Sessions of hosts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    /// Sessions, oldest first.
    pub items: Vec<Session>,
}
