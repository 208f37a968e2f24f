//! What drives tell of their own health (docs/metrics.md#smart).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a drive says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthState {
    /// It says that it is well.
    Good,
    /// It says that it fails, or is about to.
    Failing,
    /// Nothing is known; the reason says why.
    #[default]
    Unknown,
}

/// A drive's health, by SMART. What it does not tell is left out.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct DriveHealth {
    /// What it says.
    pub state: HealthState,
    /// Why it fails, or why nothing is known.
    pub why: String,
    /// It slept when it was asked last, and was not woken up: the rest is what it said before.
    pub asleep: bool,
    /// When it said so: seconds since 1970.
    pub at_s: u64,
    /// Its model.
    pub model: String,
    /// Its serial number.
    pub serial: String,
    /// Its temperature in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<u64>,
    /// Hours that it was switched on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_on_hours: Option<u64>,
    /// What it means to have used of its endurance, in per cent; may be more than 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_percent: Option<u64>,
    /// What is left of its spare blocks, in per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_percent: Option<u64>,
    /// Sectors that it replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reallocated: Option<u64>,
    /// Sectors that cannot be read now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<u64>,
    /// Sectors that could not be mended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncorrectable: Option<u64>,
    /// Times that it could not give back what it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_errors: Option<u64>,
}
