//! Long work.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How far a job is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It goes on.
    Running,
    /// It rests until somebody has it go on.
    Paused,
    /// It ended well.
    Done,
    /// It could not end; the message says why.
    Failed,
    /// Somebody ended it.
    Cancelled,
}

impl JobState {
    /// Whether nothing more comes of it.
    pub fn is_ended(self) -> bool {
        !matches!(self, Self::Running | Self::Paused)
    }

    /// Its name.
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

/// Long work.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Its number, which it keeps when the daemon is restarted.
    pub id: u64,
    /// `evacuate`, `delete`, `scrub`, `resync`, `reclaim`, `send` or `receive`.
    pub kind: String,
    /// Pool and object, for people.
    pub subject: String,
    /// How far it is.
    pub state: JobState,
    /// Bytes done.
    pub done: u64,
    /// Bytes in all; may shrink or grow as hosts write.
    pub total: u64,
    /// Done, in hundredths of the whole; 100 only when the job is done.
    pub percent: f64,
    /// Bytes a second over the last seconds in which it was at work; 0 while it is paused.
    pub rate: u64,
    /// Seconds left at that rate.
    pub seconds_left: Option<u64>,
    /// Why it failed, or what it waits for.
    pub message: String,
    /// When it began: seconds since 1970.
    #[serde(default)]
    pub began_s: u64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_s: Option<u64>,
}

/// Jobs, running and of late, newest first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobList {
    /// One entry a job.
    pub items: Vec<Job>,
}

/// A job that was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobRef {
    /// Its number.
    pub job: u64,
}
