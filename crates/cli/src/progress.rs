//! Waits for a job with a progress bar; the job continues after Ctrl-C.

use crate::show::read;
use crate::{Client, Failure};
use api::Operation;
use api::v1::{Job, JobState};
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::format_bytes;

/// Polling interval of a job.
const LOOK: Duration = Duration::from_millis(200);

/// A duration for people.
pub fn duration(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// Rate, time left and what the job is waiting for.
pub fn pace(job: &Job) -> String {
    let mut text = format!("{}/s", format_bytes(job.rate));
    if let Some(seconds) = job.seconds_left {
        text.push_str(&format!(", {} left", duration(seconds)));
    }
    if !job.message.is_empty() {
        text.push_str(&format!(", {}", job.message));
    }
    text
}

/// A progress bar in thousandths.
pub fn bar() -> ProgressBar {
    let bar = ProgressBar::new(1000);
    if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:30} {msg}") {
        bar.set_style(style.progress_chars("█░ "));
    }
    bar
}

/// Waits until a job has finished, and returns it.
///
/// # Errors
/// When it failed or was cancelled, the user quit, or the daemon is unreachable.
pub fn wait(client: &Client, id: u64, quiet: bool) -> Result<Job, Failure> {
    let left = Arc::new(AtomicBool::new(false));
    let taken = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&left));
    let taken = taken
        .map_err(|error| Failure::Failed(format!("cannot install signal handlers: {error}")))?;
    let bar = match quiet {
        true => ProgressBar::hidden(),
        false => bar(),
    };
    let ended = watch(client, id, &bar, &left);
    bar.finish_and_clear();
    signal_hook::low_level::unregister(taken);
    ended
}

fn continues(id: u64) -> Failure {
    Failure::Left(format!("job {id} continues; see `convect job show {id}`"))
}

fn watch(client: &Client, id: u64, bar: &ProgressBar, left: &AtomicBool) -> Result<Job, Failure> {
    loop {
        let answer = client.get(Operation::JobShow, &[&id.to_string()]);
        if answer.is_err() && left.load(Ordering::Relaxed) {
            // The signal interrupts a read that has a timeout.
            return Err(continues(id));
        }
        let job: Job = read(&answer?)?;
        bar.set_prefix(format!("{} {}", job.kind, job.subject));
        bar.set_position((job.percent * 10.0) as u64);
        bar.set_message(format!("{:.1} %, {}", job.percent, pace(&job)));
        match job.state {
            JobState::Done => return Ok(job),
            JobState::Failed => {
                return Err(Failure::Failed(format!("job {id} failed: {}", job.message)));
            }
            JobState::Cancelled => {
                return Err(Failure::Failed(format!("job {id} was cancelled")));
            }
            JobState::Running | JobState::Paused if left.load(Ordering::Relaxed) => {
                return Err(continues(id));
            }
            JobState::Running | JobState::Paused => std::thread::sleep(LOOK),
        }
    }
}
