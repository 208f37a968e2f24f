//! Events and alerts (docs/events.md).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Severity of an event, in ascending order. `info`: for information; `warning`: needs attention
/// soon; `critical`: needs attention now, as data is at risk or hosts are not served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// For information.
    Info,
    /// Needs attention soon.
    Warning,
    /// Needs attention now: data is at risk, or hosts are not served.
    Critical,
}

macro_rules! codes {
    ($($code:ident, $name:literal, $severity:ident; $about:literal)*) => {
        /// Kind of an event; stable, for programs. docs/events.md has a section for each. Older
        /// names are kept: `leg_out` is a mirror without one of its members, `promise_unmet` a
        /// missed guarantee of a quality-of-service policy, `target_unmet` a missed performance
        /// target, `hosts_collide` two hosts with the same initiator name.
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum EventCode {
            $(#[doc = $about] $code,)*
        }

        impl EventCode {
            /// All codes.
            pub const ALL: &[Self] = &[$(Self::$code),*];

            /// Its name in JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)*
                }
            }

            /// Severity of events with this code.
            pub fn severity(self) -> Severity {
                match self {
                    $(Self::$code => Severity::$severity,)*
                }
            }
        }
    };
}

codes! {
    DriveSlow, "drive_slow", Warning; "A drive does not answer, or is far slower than usual."
    DriveFailing, "drive_failing", Warning; "Requests to a drive failed or timed out, or it reports that it is failing."
    DriveCorrupt, "drive_corrupt", Warning; "A drive returned other data than was written to it."
    LegOut, "leg_out", Critical; "A mirror runs without one of its members."
    DriveOld, "drive_old", Critical; "A pool was opened with a drive, or metadata, that was restored to an earlier state."
    PoolAbsent, "pool_absent", Critical; "A pool that should be open is not."
    PoolFailed, "pool_failed", Critical; "A pool cannot serve all of its data."
    PoolFull, "pool_full", Critical; "A pool accepts no new data."
    PoolFilling, "pool_filling", Warning; "A part of a pool reached a warning level."
    FlashWearing, "flash_wearing", Warning; "A drive has used 90 % of its endurance, or more is written to a drive of the fast tier than it endures."
    TargetUnmet, "target_unmet", Warning; "A volume missed a performance target."
    PromiseUnmet, "promise_unmet", Warning; "A volume or group missed the guarantee of its quality-of-service policy."
    LoginFailed, "login_failed", Warning; "Invalid, expired or revoked tokens were presented."
    ScrubFound, "scrub_found", Warning; "A scrub found bad copies."
    DataLost, "data_lost", Critical; "A scrub, or the opening of a pool, found data without any good copy."
    ExportRefused, "export_refused", Warning; "An export could not be started."
    ExportDisabled, "export_disabled", Info; "A user disabled an export: it is not offered until it is enabled."
    ExportEnabled, "export_enabled", Info; "A user enabled an export again."
    HostsCollide, "hosts_collide", Warning; "Two hosts log in with the same initiator name, and end each other's sessions."
    SnapshotMissed, "snapshot_missed", Warning; "A schedule failed to take a snapshot, or to delete old ones."
    JobFailed, "job_failed", Warning; "A job failed."
    DeliveryFailed, "delivery_failed", Warning; "A notification target does not accept events."
    AuditAltered, "audit_altered", Critical; "The audit log was altered."
    StateUnwritten, "state_unwritten", Warning; "A file in the state folder cannot be written."
    StateDamaged, "state_damaged", Critical; "A file in the state folder is damaged and is not used."
    DaemonStarted, "daemon_started", Info; "The daemon was started."
    DaemonStopped, "daemon_stopped", Info; "The daemon was stopped."
    DaemonKilled, "daemon_killed", Warning; "The previous daemon was killed or crashed."
    Test, "test", Info; "A user sent a test event to a notification target."
}

/// Effect of an event on its alert. `noted`: event without duration, no alert; `raised`: the alert
/// was raised, or became worse; `cleared`: the alert was cleared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventState {
    /// Event without duration: no alert.
    Noted,
    /// The alert was raised, or became worse.
    Raised,
    /// The alert was cleared.
    Cleared,
}

/// Kind of object that an event refers to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubjectKind {
    /// A pool, or a part of it.
    Pool,
    /// A drive of a pool.
    Drive,
    /// A volume.
    Volume,
    /// A group of volumes that share a policy.
    Group,
    /// An export.
    Export,
    /// A snapshot schedule.
    Schedule,
    /// A job.
    Job,
    /// A network address.
    Address,
    /// A notification target.
    Target,
    /// The daemon itself.
    Daemon,
}

/// Object that an event refers to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
pub struct Subject {
    /// Kind of object.
    pub kind: SubjectKind,
    /// Pool that it belongs to; absent if it belongs to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Name of the object; for a drive, its specification.
    pub name: String,
}

/// An event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Sequence number: it increases with each event.
    pub number: u64,
    /// Time, in seconds since 1970.
    pub at_s: u64,
    /// Severity.
    pub severity: Severity,
    /// Kind of event.
    pub code: EventCode,
    /// Whether it raises an alert, clears one, or neither.
    pub state: EventState,
    /// Object that it refers to.
    pub subject: Subject,
    /// What happened, and why.
    pub message: String,
    /// Recommended action; empty if none is needed.
    pub advice: String,
    /// Section of the documentation with details.
    pub runbook: String,
    /// Of an event that updates or clears an alert: number of the event that raised it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
}

/// A page of events.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct EventList {
    /// Events, newest first.
    pub items: Vec<Event>,
    /// Value of `before` for the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// An open alert: a condition that needs attention.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Alert {
    /// Number of the event that raised it.
    pub number: u64,
    /// When it was raised, in seconds since 1970.
    pub since_s: u64,
    /// Severity.
    pub severity: Severity,
    /// Kind of event.
    pub code: EventCode,
    /// Object that it refers to.
    pub subject: Subject,
    /// What is wrong, and why.
    pub message: String,
    /// Recommended action.
    pub advice: String,
    /// Section of the documentation with details.
    pub runbook: String,
    /// Degree of the condition, where it has degrees; each increase is reported as another event.
    #[serde(default)]
    pub grade: u8,
}

/// Open alerts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AlertList {
    /// Alerts, by severity (most severe first), then by age.
    pub items: Vec<Alert>,
}

impl Severity {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

impl EventCode {
    /// Its section of the documentation.
    pub fn runbook(self) -> String {
        format!("docs/events.md#{}", self.as_str())
    }
}
