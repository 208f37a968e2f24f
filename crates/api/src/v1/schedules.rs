//! Snapshots that are taken by themselves.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// When snapshots of volumes are to be taken by themselves.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleSet {
    /// The pool.
    pub pool: String,
    /// The volumes, of which snapshots are taken at one moment. They leave the schedules of this
    /// name that they were in.
    pub volumes: Vec<String>,
    /// Its name, at most 40 bytes, with which the names of its snapshots begin.
    pub name: String,
    /// From one due time to the next, in seconds: 60 to 366 days.
    pub every_s: u64,
    /// Snapshots that are kept of each volume, 1 to 1,000, without those that are held, cloned from
    /// or exported.
    pub keep: u32,
}

/// When snapshots of volumes are taken by themselves.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    /// Its name.
    pub name: String,
    /// The pool.
    pub pool: String,
    /// The volumes.
    pub volumes: Vec<String>,
    /// From one due time to the next, in seconds.
    pub every_s: u64,
    /// Snapshots that are kept of each volume.
    pub keep: u32,
    /// Since when it counts: seconds since 1970.
    pub since_s: u64,
    /// When it took the last one: seconds since 1970.
    pub last_s: Option<u64>,
    /// When the next one is due: seconds since 1970.
    pub next_s: u64,
    /// Due times for which none was taken, up to the last one that was.
    pub missed: u64,
    /// The first of them: seconds since 1970.
    pub missed_since_s: Option<u64>,
    /// Why its last try took none, or did not delete old ones.
    pub error: Option<String>,
    /// When that was: seconds since 1970.
    pub error_s: Option<u64>,
}

/// Schedules.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduleList {
    /// One entry a schedule.
    pub items: Vec<Schedule>,
}
