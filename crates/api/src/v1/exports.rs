//! Exports and protocols.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A parameter of a protocol's exports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Parameter {
    /// Name of the parameter, for example `listen`.
    pub name: String,
    /// Meaning, format and default.
    pub about: String,
    /// Every export of the protocol must set it.
    pub required: bool,
}

/// An export protocol.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FrontEnd {
    /// Name of the protocol, for example `nbd`.
    pub name: String,
    /// Description.
    pub about: String,
    /// Parameters of its exports.
    pub parameters: Vec<Parameter>,
}

/// Available export protocols.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FrontEndList {
    /// The protocols.
    pub items: Vec<FrontEnd>,
}

/// An export to create. It is stored in the pool and started whenever the pool is opened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportCreate {
    /// Name of the export, unique on this daemon; same syntax as a pool name.
    pub name: String,
    /// Pool of the volume.
    pub pool: String,
    /// Volume, or a snapshot `VOLUME@SNAPSHOT`, which is exported read-only.
    pub volume: String,
    /// For a snapshot: export a writable clone of it instead, with the name of the export.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writable: bool,
    /// Protocol, for example `nbd`.
    pub kind: String,
    /// Parameters of the protocol.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// Initiator name of all I/O through this export, as used by the volume's `bypass`: 1 to 223
    /// bytes without control characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiator: Option<String>,
}

/// Parameters to change while hosts are connected.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportChange {
    /// New values by name; an empty value removes the parameter. Others are unchanged.
    pub parameters: BTreeMap<String, String>,
}

/// An export and its state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Export {
    /// Name of the export.
    pub name: String,
    /// Pool of the volume.
    pub pool: String,
    /// Exported volume, or snapshot.
    pub volume: String,
    /// Protocol.
    pub kind: String,
    /// Parameters of the protocol.
    pub parameters: BTreeMap<String, String>,
    /// Initiator name of all I/O through this export; absent if none is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiator: Option<String>,
    /// `online`, `failed`, or `disabled` by a user.
    pub state: String,
    /// Address at which it is offered, for example `unix:/run/convect/a.sock`.
    pub address: Option<String>,
    /// Commands with which a host can use it.
    pub hints: Vec<String>,
    /// Connected hosts.
    pub sessions: u64,
    /// Why it could not be started.
    pub error: Option<String>,
}

/// List of exports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExportList {
    /// The exports.
    pub items: Vec<Export>,
}
