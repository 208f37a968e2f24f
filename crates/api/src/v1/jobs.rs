//! Long-running jobs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// State of a job. `running`; `paused`: until it is resumed; `done`: completed; `failed`: the
/// message says why; `cancelled`: by a user.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// The job is running.
    Running,
    /// The job is paused until it is resumed.
    Paused,
    /// The job has completed.
    Done,
    /// The job failed; the message says why.
    Failed,
    /// A user cancelled the job.
    Cancelled,
}

impl JobState {
    /// Whether the job has ended.
    pub fn is_ended(self) -> bool {
        !matches!(self, Self::Running | Self::Paused)
    }

    /// Name of the state.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Number of the job; it is kept across restarts of the daemon.
    pub id: u64,
    /// `evacuate`, `delete`, `scrub`, `resync`, `reclaim`, `send` or `receive`.
    pub kind: String,
    /// Pool and object, for display.
    pub subject: String,
    /// State.
    pub state: JobState,
    /// Completed bytes.
    pub done: u64,
    /// Total bytes; may change as hosts write.
    pub total: u64,
    /// Progress in percent, to hundredths; 100 only when the job has completed.
    pub percent: f64,
    /// Recent rate in bytes per second, of the last seconds in which it was running; 0 while it is
    /// paused.
    pub rate: u64,
    /// Estimated seconds left at that rate.
    pub seconds_left: Option<u64>,
    /// Why it failed, or what it waits for.
    pub message: String,
    /// Start time, in seconds since 1970.
    #[serde(default)]
    pub began_s: u64,
    /// End time, in seconds since 1970; absent until the job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_s: Option<u64>,
}

/// Current and recent jobs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobList {
    /// Jobs, newest first.
    pub items: Vec<Job>,
}

/// A job that was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobRef {
    /// Number of the job.
    pub job: u64,
}
