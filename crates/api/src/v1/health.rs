//! Health of drives as reported by SMART (docs/metrics.md#smart).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Health as reported by the drive itself. `good`; `failing`: failing or about to fail; `unknown`:
/// nothing was reported, and `why` says why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthState {
    /// The drive reports that it is healthy.
    Good,
    /// The drive reports that it is failing or about to fail.
    Failing,
    /// The drive reported nothing; the reason says why.
    #[default]
    Unknown,
}

/// SMART health of a drive. Attributes that the drive does not report are absent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct DriveHealth {
    /// Overall state.
    pub state: HealthState,
    /// Why the drive is failing, or why its state is unknown.
    pub why: String,
    /// The drive was in standby at the last query and was not woken up: the other values are older.
    pub asleep: bool,
    /// Time of these values, in seconds since 1970.
    pub at_s: u64,
    /// Model.
    pub model: String,
    /// Serial number.
    pub serial: String,
    /// Temperature in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<u64>,
    /// Power-on time in hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_on_hours: Option<u64>,
    /// Used endurance in percent, as the drive estimates it; may exceed 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_percent: Option<u64>,
    /// Remaining spare blocks in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_percent: Option<u64>,
    /// Reallocated sectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reallocated: Option<u64>,
    /// Pending sectors: currently unreadable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<u64>,
    /// Uncorrectable sectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncorrectable: Option<u64>,
    /// Media errors: data that could not be read back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_errors: Option<u64>,
}
