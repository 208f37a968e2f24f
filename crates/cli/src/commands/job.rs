//! `convect job`.

use crate::job_arguments::Job as Command;
use crate::progress::{duration, pace, wait};
use crate::show::{facts, print, print_json, read};
use crate::table::{Column, Listing, Value};
use crate::{Client, Failure};
use api::Operation;
use api::v1::{Job, JobList, JobRef, JobState};
use units::format_bytes;

/// Waits for the job of a response, or prints how to find it again. Prints `done` when the job has
/// succeeded.
pub fn follow(
    client: &Client,
    json: bool,
    background: bool,
    answer: &[u8],
    done: &str,
) -> Result<(), Failure> {
    let id = read::<JobRef>(answer)?.job;
    if background {
        return match json {
            true => print_json(answer, true),
            false => print(&format!("job {id} started; see `convect job show {id}`\n")),
        };
    }
    let job = wait(client, id, json)?;
    if json {
        let text = serde_json::to_vec(&job).map_err(|error| Failure::Failed(error.to_string()))?;
        return print_json(&text, true);
    }
    print(&format!("{done}\n"))
}

fn columns() -> Vec<Column<Job>> {
    vec![
        Column::number("JOB", |job: &Job| Value::count(job.id)),
        Column::text("KIND", |job: &Job| Value::text(&job.kind)),
        Column::text("SUBJECT", |job: &Job| Value::text(&job.subject)),
        Column::text("STATE", |job: &Job| Value::text(job.state.name())),
        Column::number("DONE", |job: &Job| Value::percent(job.percent)),
        Column::text("INFO", |job: &Job| {
            Value::text(match job.state == JobState::Running {
                true => pace(job),
                false => job.message.clone(),
            })
        }),
        Column::number("RATE", |job: &Job| Value::rate(job.rate)).hidden(),
        Column::text("BEGAN", |job: &Job| Value::date(job.began_s)).hidden(),
        Column::text("ENDED", |job: &Job| {
            Value::or(job.ended_s.map(Value::date), "")
        })
        .hidden(),
    ]
}

fn show(job: &Job) -> String {
    facts(&[
        ("job", job.id.to_string()),
        ("kind", job.kind.clone()),
        ("subject", job.subject.clone()),
        ("state", job.state.name().to_owned()),
        (
            "done",
            format!(
                "{:.1} % ({} of {})",
                job.percent,
                format_bytes(job.done),
                format_bytes(job.total)
            ),
        ),
        ("rate", format!("{}/s", format_bytes(job.rate))),
        ("left", job.seconds_left.map(duration).unwrap_or_default()),
        ("message", job.message.clone()),
    ])
}

/// Runs `convect job`.
pub fn job(client: &Client, json: bool, command: &Command) -> Result<(), Failure> {
    match command {
        Command::List(options) => {
            let listing = Listing::new(columns(), options, &[], json)?;
            let answer = client.get(Operation::JobList, &[])?;
            let Some(list) = listing.read::<JobList>(&answer)? else {
                return Ok(());
            };
            listing.print(&answer, &list.items)
        }
        Command::Show { id } => {
            let answer = client.get(Operation::JobShow, &[&id.to_string()])?;
            match json {
                true => print_json(&answer, true),
                false => print(&show(&read(&answer)?)),
            }
        }
        Command::Wait { id } => {
            let answer = serde_json::to_vec(&JobRef { job: *id });
            let answer = answer.map_err(|error| Failure::Failed(error.to_string()))?;
            follow(client, json, false, &answer, &format!("job {id} completed"))
        }
        Command::Cancel { id } => {
            let done = format!("job {id} cancelled");
            change(client, json, Operation::JobCancel, *id, &done)
        }
        Command::Pause { id } => {
            let done = format!("job {id} paused; resume it with `convect job resume {id}`");
            change(client, json, Operation::JobPause, *id, &done)
        }
        Command::Resume { id } => {
            let done = format!("job {id} resumed");
            change(client, json, Operation::JobResume, *id, &done)
        }
    }
}

/// Changes a job and prints `done`.
fn change(
    client: &Client,
    json: bool,
    operation: Operation,
    id: u64,
    done: &str,
) -> Result<(), Failure> {
    client.get(operation, &[&id.to_string()])?;
    match json {
        true => Ok(()),
        false => print(&format!("{done}\n")),
    }
}
