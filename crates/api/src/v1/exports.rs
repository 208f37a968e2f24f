//! Exports, and the front ends that offer them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A parameter that exports of a front end have.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Parameter {
    /// As it is written: `listen`.
    pub name: String,
    /// What it means, its form and its default.
    pub about: String,
    /// Whether an export must have it.
    pub required: bool,
}

/// A kind of front end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FrontEnd {
    /// As it is written: `nbd`.
    pub name: String,
    /// What it is.
    pub about: String,
    /// What can be set.
    pub parameters: Vec<Parameter>,
}

/// Front ends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FrontEndList {
    /// One entry a front end.
    pub items: Vec<FrontEnd>,
}

/// An export to be made. It is kept in the pool and started again with it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportCreate {
    /// As a pool's name; unique in the daemon.
    pub name: String,
    /// The volume's pool.
    pub pool: String,
    /// The volume; or a snapshot, `VOLUME@SNAPSHOT`, to be read.
    pub volume: String,
    /// Of a snapshot: hosts may write. A clone of it is made, with the export's name, and exported in its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writable: bool,
    /// The front end: `nbd`.
    pub kind: String,
    /// Values of the front end's parameters.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// Whose reads and writes all come through it, for `bypass` of the volume: a name of 1 to 223 bytes without
    /// control characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiator: Option<String>,
}

/// Parameters of an export that change while hosts go on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportChange {
    /// New values by name; an empty one takes the parameter away. Others stay as they are.
    pub parameters: BTreeMap<String, String>,
}

/// State of an export.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// The volume's pool.
    pub pool: String,
    /// The volume.
    pub volume: String,
    /// The front end.
    pub kind: String,
    /// Values of the front end's parameters.
    pub parameters: BTreeMap<String, String>,
    /// Whose reads and writes all come through it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiator: Option<String>,
    /// `online` or `failed`.
    pub state: String,
    /// Where it is offered, e.g. `unix:/run/convect/a.sock`.
    pub address: Option<String>,
    /// Lines that a person can paste to use it.
    pub hints: Vec<String>,
    /// Connected hosts.
    pub sessions: u64,
    /// Why it could not be started.
    pub error: Option<String>,
}

/// Exports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExportList {
    /// One entry an export.
    pub items: Vec<Export>,
}
