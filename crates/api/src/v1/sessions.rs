//! Hosts' sessions with exports.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A session of a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Its number, which no other session of this daemon has had.
    pub id: u64,
    /// The exports that it reaches, as `POOL/NAME`.
    pub exports: Vec<String>,
    /// The front end.
    pub kind: String,
    /// Who the host says it is.
    pub initiator: String,
    /// The host's address.
    pub address: String,
    /// What it logged in to.
    pub target: String,
    /// The address that it came to.
    pub portal: String,
    /// The name whose secret it proved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// When it began: seconds since 1970.
    pub since_s: u64,
    /// Its connections.
    pub connections: u32,
    /// Commands that are not answered yet.
    pub commands: u64,
    /// Bytes that it read.
    pub bytes_read: u64,
    /// Bytes that it wrote.
    pub bytes_written: u64,
}

/// Sessions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    /// One entry a session, the oldest first.
    pub items: Vec<Session>,
}
