//! `convect snapshot schedule`.

use super::scrub::date;
use super::snapshot::{Group, filter, group, named, selection};
use crate::list_arguments::NamedList;
use crate::schedule_arguments::Schedule as Command;
use crate::show::{print, print_json, read};
use crate::table::{Column, Listing, Value};
use crate::{Client, Failure};
use api::Operation;
use api::v1::{Schedule, ScheduleList, ScheduleSet};
use daemon::Span;
use std::time::Duration;

/// An interval as `--every` takes it.
fn span(seconds: u64) -> String {
    Span(Duration::from_secs(seconds)).to_string()
}

fn columns() -> Vec<Column<Schedule>> {
    vec![
        Column::text("POOL", |schedule: &Schedule| Value::text(&schedule.pool)).matched(),
        Column::text("SCHEDULE", |schedule: &Schedule| {
            Value::text(&schedule.name)
        })
        .key(),
        Column::number("EVERY", |schedule: &Schedule| {
            Value::whole(schedule.every_s, span(schedule.every_s))
        }),
        Column::number("KEEP", |schedule: &Schedule| Value::count(schedule.keep)),
        Column::text("LAST", |schedule: &Schedule| {
            Value::or(schedule.last_s.map(Value::date), "")
        }),
        Column::text("NEXT", |schedule: &Schedule| Value::date(schedule.next_s)),
        Column::text("MISSED", |schedule: &Schedule| {
            match schedule.missed_since_s {
                None => Value::nothing(""),
                Some(since) => Value::whole(
                    schedule.missed,
                    format!("{} since {}", schedule.missed, date(since)),
                ),
            }
        }),
        Column::text("VOLUMES", |schedule: &Schedule| {
            Value::text(schedule.volumes.join(", "))
        }),
    ]
}

/// Why a schedule's last attempt failed, in one line.
fn failure(schedule: &Schedule) -> Option<String> {
    let error = schedule.error.as_ref()?;
    let at = schedule.error_s.map(date).unwrap_or_default();
    let (pool, name) = (&schedule.pool, &schedule.name);
    Some(format!("{pool}, {name}: failed at {at}: {error}\n"))
}

fn list(client: &Client, json: bool, list: &NamedList) -> Result<(), Failure> {
    let (of, names) = selection(&list.names);
    let listing = Listing::new(columns(), &list.options, names, json)?;
    let answer = client.call(Operation::ScheduleList, &[], &filter(of), None)?;
    let Some(list) = listing.read::<ScheduleList>(&answer)? else {
        return Ok(());
    };
    listing.print(&answer, &list.items)?;
    let failures: String = list.items.iter().filter_map(failure).collect();
    listing.note(&failures)
}

fn set(
    client: &Client,
    json: bool,
    schedules: &[String],
    (every, keep): (&str, u32),
) -> Result<(), Failure> {
    let Group {
        pool,
        volumes,
        name,
    } = group(schedules)?;
    let every = Span::parse(every).map_err(Failure::Usage)?;
    let request = ScheduleSet {
        pool: pool.to_owned(),
        volumes,
        name: name.to_owned(),
        every_s: every.0.as_secs(),
        keep,
    };
    let answer = client.send(Operation::ScheduleSet, &[], &request)?;
    if json {
        return print_json(&answer, true);
    }
    let set: Schedule = read(&answer)?;
    print(&format!(
        "{}: every {every}, keep {keep}; next at {}\n",
        schedules.join(", "),
        date(set.next_s)
    ))
}

fn remove(client: &Client, json: bool, schedules: &[String]) -> Result<(), Failure> {
    for text in schedules {
        named(text)?;
    }
    for text in schedules {
        let (pool, volume, name) = named(text)?;
        client.get(Operation::ScheduleRemove, &[pool, volume, name])?;
        if !json {
            print(&format!(
                "schedule {text} removed; its snapshots are kept\n"
            ))?;
        }
    }
    Ok(())
}

/// Runs `convect snapshot schedule`.
pub fn schedule(client: &Client, json: bool, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Set {
            schedules,
            every,
            keep,
        } => set(client, json, schedules, (every, *keep)),
        Command::List(with) => list(client, json, with),
        Command::Remove { schedules } => remove(client, json, schedules),
    }
}
