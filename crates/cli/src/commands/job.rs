//! `convect job`.

use crate::job_arguments::Job as Command;
use crate::progress::{duration, pace, wait};
use crate::show::{facts, print, print_json, print_styled, read, table};
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

fn row(job: &Job) -> Vec<String> {
    let running = job.state == JobState::Running;
    vec![
        job.id.to_string(),
        job.kind.clone(),
        job.subject.clone(),
        job.state.name().to_owned(),
        format!("{:.1} %", job.percent),
        match running {
            true => pace(job),
            false => job.message.clone(),
        },
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
        Command::List => {
            let answer = client.get(Operation::JobList, &[])?;
            if json {
                return print_json(&answer, true);
            }
            let list: JobList = read(&answer)?;
            let head = [">JOB", "KIND", "SUBJECT", "STATE", ">DONE", ""];
            print_styled(&table(&head, list.items.iter().map(row)))
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
