//! Snapshot schedules (docs/snapshots.md#schedules).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A snapshot schedule to create or change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleSet {
    /// The pool.
    pub pool: String,
    /// Volumes whose snapshots are taken atomically. They are removed from other schedules with
    /// this name.
    pub volumes: Vec<String>,
    /// Name of the schedule, at most 40 bytes; it prefixes the names of its snapshots.
    pub name: String,
    /// Interval in seconds, from 60 to 366 days.
    pub every_s: u64,
    /// Number of snapshots to keep per volume, 1 to 1,000; those that are held, cloned or exported
    /// do not count.
    pub keep: u32,
}

/// A snapshot schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    /// Name of the schedule.
    pub name: String,
    /// The pool.
    pub pool: String,
    /// Its volumes.
    pub volumes: Vec<String>,
    /// Interval in seconds.
    pub every_s: u64,
    /// Number of snapshots to keep per volume.
    pub keep: u32,
    /// Start of the schedule, in seconds since 1970.
    pub since_s: u64,
    /// When the latest snapshot was taken, in seconds since 1970; null if none was.
    pub last_s: Option<u64>,
    /// When the next snapshot is due, in seconds since 1970.
    pub next_s: u64,
    /// Due times without a snapshot, up to the latest one that was taken.
    pub missed: u64,
    /// First missed due time, in seconds since 1970; null if none was missed.
    pub missed_since_s: Option<u64>,
    /// Why the latest attempt failed to take a snapshot or to delete old ones; null if it
    /// succeeded.
    pub error: Option<String>,
    /// Time of that failure, in seconds since 1970.
    pub error_s: Option<u64>,
}

/// List of snapshot schedules.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduleList {
    /// The schedules.
    pub items: Vec<Schedule>,
}
