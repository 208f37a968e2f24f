//! What happened, and what is wrong now (docs/events.md).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How much an event matters; each matters more than those before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Somebody should look at it soon.
    Warning,
    /// Somebody should look at it now: data is in danger, or hosts are not served.
    Critical,
}

macro_rules! codes {
    ($($code:ident, $name:literal, $severity:ident; $about:literal)*) => {
        /// What kind of event it is; stable, for programs. Each has a section of its name in docs/events.md.
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum EventCode {
            $(#[doc = $about] $code,)*
        }

        impl EventCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$code),*];

            /// Its name, as JSON writes it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)*
                }
            }

            /// How much events of this code matter.
            pub fn severity(self) -> Severity {
                match self {
                    $(Self::$code => Severity::$severity,)*
                }
            }
        }
    };
}

codes! {
    DriveSlow, "drive_slow", Warning; "A drive does not answer, or takes far longer than its own usual time."
    DriveFailing, "drive_failing", Warning; "Requests to a drive failed or were not answered in time."
    DriveCorrupt, "drive_corrupt", Warning; "A drive gave back something else than was written to it."
    LegOut, "leg_out", Critical; "A drive is out: its mirror goes on without it."
    DriveOld, "drive_old", Critical; "A pool was opened with a drive, or metadata, that was put back to an earlier state."
    PoolAbsent, "pool_absent", Critical; "A pool that should be open is not."
    PoolFailed, "pool_failed", Critical; "A pool cannot serve everything that it stores."
    PoolFull, "pool_full", Critical; "A pool takes no new data."
    PoolFilling, "pool_filling", Warning; "A part of a pool has reached one of its warning levels."
    FlashWearing, "flash_wearing", Warning; "More is written to a drive of the fast tier than it is made for."
    TargetUnmet, "target_unmet", Warning; "A volume does not get what is expected for it."
    PromiseUnmet, "promise_unmet", Warning; "A volume does not get what its quality-of-service policy promises."
    LoginFailed, "login_failed", Warning; "Somebody shows tokens that are no good."
    ScrubFound, "scrub_found", Warning; "A scrub found copies that were not right."
    DataLost, "data_lost", Critical; "A scrub, or the opening of a pool, found data of which no right copy is left."
    ExportRefused, "export_refused", Warning; "An export could not be started."
    HostsCollide, "hosts_collide", Warning; "Two hosts log in by one name, and each ends the other's session."
    SnapshotMissed, "snapshot_missed", Warning; "A schedule took no snapshot, or could not delete old ones."
    JobFailed, "job_failed", Warning; "A job could not end."
    DeliveryFailed, "delivery_failed", Warning; "A target does not take what it is to be told."
    AuditAltered, "audit_altered", Critical; "The log of changes is not as it was written."
    StateUnwritten, "state_unwritten", Warning; "A file of the state folder cannot be written."
    StateDamaged, "state_damaged", Critical; "A file of the state folder was damaged, and is not used."
    DaemonStarted, "daemon_started", Info; "The daemon was started."
    DaemonStopped, "daemon_stopped", Info; "The daemon ended in order."
    DaemonKilled, "daemon_killed", Warning; "The daemon before this one did not end in order."
    Test, "test", Info; "Somebody tries whether a target is reached."
}

/// What an event is to the state of things.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventState {
    /// It happened, and that was all.
    Noted,
    /// Something is wrong from now on, or became worse.
    Raised,
    /// It is wrong no more.
    Cleared,
}

/// What kind of thing an event is about.
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
    /// A schedule of snapshots.
    Schedule,
    /// A job.
    Job,
    /// An address in the network.
    Address,
    /// A target of alerts.
    Target,
    /// The daemon itself.
    Daemon,
}

/// What an event is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
pub struct Subject {
    /// What kind of thing.
    pub kind: SubjectKind,
    /// The pool that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Its name; a drive's is its specification.
    pub name: String,
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Its number: each event has a greater one than those before.
    pub number: u64,
    /// When: seconds since 1970.
    pub at_s: u64,
    /// How much it matters.
    pub severity: Severity,
    /// What kind it is.
    pub code: EventCode,
    /// What it is to the state of things.
    pub state: EventState,
    /// What it is about.
    pub subject: Subject,
    /// What happened, and why.
    pub message: String,
    /// What to do; empty when there is nothing to do.
    pub advice: String,
    /// Where to read on: a section of the documentation.
    pub runbook: String,
    /// Of one that became worse or is over: the number of the event by which it was raised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
}

/// Events.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct EventList {
    /// Newest first.
    pub items: Vec<Event>,
    /// `before` of the next page; nothing: there is no older one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Something that is wrong now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Alert {
    /// The number of the event by which it was raised.
    pub number: u64,
    /// Since when: seconds since 1970.
    pub since_s: u64,
    /// How much it matters.
    pub severity: Severity,
    /// What kind it is.
    pub code: EventCode,
    /// What it is about.
    pub subject: Subject,
    /// What is wrong, and why.
    pub message: String,
    /// What to do.
    pub advice: String,
    /// Where to read on: a section of the documentation.
    pub runbook: String,
    /// How bad it is, where it has degrees; it is told of anew when that grows.
    #[serde(default)]
    pub grade: u8,
}

/// What is wrong now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AlertList {
    /// What matters most first, then by age.
    pub items: Vec<Alert>,
}

impl Severity {
    /// Its name, as JSON writes it.
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
