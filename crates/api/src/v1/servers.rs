//! Other daemons that this one monitors (docs/access.md#other-servers).

use super::Severity;
use crate::Secret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A daemon on another host to monitor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerCreate {
    /// Name of the server, unique on this daemon; same syntax as a pool name.
    pub name: String,
    /// `https://HOST[:PORT]`: its address, for this daemon and for browsers.
    pub url: String,
    /// SHA-256 fingerprint of its certificate: `sha256:` and 64 hexadecimal digits. Required unless
    /// `ca` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// CA certificates in PEM, one of which signed its certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    /// Token of that daemon; the role viewer suffices. It is stored, and never shown.
    #[schema(value_type = String)]
    pub token: Secret,
}

/// Result of the latest query. `asking`: the first query is in progress; `online`: it answered;
/// `unreachable`: it did not answer, or its certificate is not the expected one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// The first query is in progress.
    Asking,
    /// The server answered.
    Online,
    /// The server did not answer, or its certificate is not the expected one.
    Unreachable,
}

/// A pool of a server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ServerPool {
    /// Name of the pool.
    pub name: String,
    /// State, as in a pool.
    pub state: String,
    /// Usable bytes.
    pub capacity: u64,
    /// Stored bytes, without clean copies.
    pub used: u64,
    /// Forecast: seconds until a part of the pool is full at the recent rate; absent while none
    /// fills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_to_full: Option<u64>,
    /// Host I/O since the previous query; absent if that was too long ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<ServerLoad>,
}

/// Host I/O of a pool.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ServerLoad {
    /// Reads per second.
    pub reads: f64,
    /// Writes per second.
    pub writes: f64,
    /// Bytes read per second.
    pub read_bytes: f64,
    /// Bytes written per second.
    pub write_bytes: f64,
}

/// An open alert of a server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ServerAlert {
    /// Severity.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
}

/// Summary of a server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Server {
    /// Name of the server on this daemon; empty for this daemon itself.
    pub name: String,
    /// Address of its web page; empty for this daemon itself.
    pub url: String,
    /// Pinned fingerprint of its certificate; absent if the certificate is verified by its issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// Result of the latest query.
    pub state: ServerState,
    /// Why the query failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Time of its latest answer, from which the following values are; in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_s: Option<u64>,
    /// Its pools, at most 64.
    pub pools: Vec<ServerPool>,
    /// Its open alerts, most severe first; at most 8.
    pub alerts: Vec<ServerAlert>,
    /// Number of its open alerts.
    pub alerts_open: u64,
    /// Number of running jobs.
    pub jobs_running: u64,
}

/// This daemon, and the servers that it monitors.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ServerList {
    /// This daemon.
    pub this: Server,
    /// The other servers, by name.
    pub items: Vec<Server>,
}
