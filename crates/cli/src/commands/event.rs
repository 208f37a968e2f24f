//! `convect event` and `convect alert`.

use super::scrub::date;
use crate::event_arguments::{Alert as AlertCommand, Event as Command, EventFilter};
use crate::list_arguments::ListOptions;
use crate::show::{print, print_json};
use crate::table::{Column, Listing, Value};
use crate::terminal::{fold, width};
use crate::top::told;
use crate::{Client, Failure};
use api::Operation;
use api::v1::{Alert, AlertList, Event, EventList, EventState, Subject};

fn subject(subject: &Subject) -> String {
    match &subject.pool {
        Some(pool) if *pool != subject.name => format!("{pool}: {}", subject.name),
        _ => subject.name.clone(),
    }
}

fn state(event: &Event) -> &'static str {
    match event.state {
        EventState::Noted => "",
        EventState::Raised => "raised",
        EventState::Cleared => "cleared",
    }
}

fn columns() -> Vec<Column<Event>> {
    vec![
        Column::number("NUMBER", |event: &Event| Value::count(event.number)),
        Column::text("TIME", |event: &Event| Value::date(event.at_s)),
        Column::text("SEVERITY", |event: &Event| {
            Value::text(event.severity.as_str())
        }),
        Column::text("CODE", |event: &Event| Value::text(event.code.as_str())),
        Column::text("STATE", |event: &Event| Value::text(state(event))),
        Column::text("SUBJECT", |event: &Event| {
            Value::text(subject(&event.subject))
        }),
        Column::text("MESSAGE", |event: &Event| Value::text(&event.message)),
        Column::text("ADVICE", |event: &Event| Value::text(&event.advice)).hidden(),
    ]
}

fn list(
    client: &Client,
    json: bool,
    which: &EventFilter,
    (limit, before): (usize, Option<u64>),
    options: &ListOptions,
) -> Result<(), Failure> {
    let listing = Listing::new(columns(), options, &[], json)?;
    let (limit, before) = (limit.to_string(), before.map(|before| before.to_string()));
    let asked = [
        ("limit", Some(limit.as_str())),
        ("before", before.as_deref()),
        ("severity", which.severity.as_deref()),
        ("code", which.code.as_deref()),
        ("pool", which.pool.as_deref()),
    ];
    let query: Vec<(&str, &str)> = asked
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    let answer = client.call(Operation::EventList, &[], &query, None)?;
    let Some(list) = listing.read::<EventList>(&answer)? else {
        return Ok(());
    };
    listing.print(&answer, &list.items)?;
    match list.next {
        Some(next) => listing.note(&format!("more: --before {next}\n")),
        None => Ok(()),
    }
}

fn line(event: &Event) -> String {
    let advice = match event.advice.is_empty() {
        true => String::new(),
        false => format!(": {}", event.advice),
    };
    let words = [
        date(event.at_s),
        event.severity.as_str().to_owned(),
        event.code.as_str().to_owned(),
        state(event).to_owned(),
        format!("{}{advice}", event.message),
    ];
    let words = words.into_iter().filter(|word| !word.is_empty());
    format!("{}\n", words.collect::<Vec<_>>().join("  "))
}

fn watch(client: &Client, json: bool) -> Result<(), Failure> {
    let stream = client.download(Operation::Live, &[], &[])?;
    for event in told::<Event>(stream, "event") {
        let event = event?;
        if json {
            let text = serde_json::to_vec(&event);
            let text = text.map_err(|error| Failure::Failed(error.to_string()))?;
            print_json(&text, false)?;
        } else {
            print(&line(&event))?;
        }
    }
    Ok(())
}

/// Runs `convect event`.
pub fn event(client: &Client, json: bool, command: &Command) -> Result<(), Failure> {
    match command {
        Command::List {
            which,
            limit,
            before,
            options,
        } => list(client, json, which, (*limit, *before), options),
        Command::Watch => watch(client, json),
    }
}

fn alert_text(alert: &Alert) -> String {
    format!(
        "{}  {} {}, since {}\n  {}\n  action: {} ({})\n",
        alert.number,
        alert.severity.as_str(),
        alert.code.as_str(),
        date(alert.since_s),
        alert.message,
        alert.advice,
        alert.runbook
    )
}

fn alerts() -> Vec<Column<Alert>> {
    vec![
        Column::number("NUMBER", |alert: &Alert| Value::count(alert.number)),
        Column::text("SINCE", |alert: &Alert| Value::date(alert.since_s)),
        Column::text("SEVERITY", |alert: &Alert| {
            Value::text(alert.severity.as_str())
        }),
        Column::text("CODE", |alert: &Alert| Value::text(alert.code.as_str())),
        Column::text("SUBJECT", |alert: &Alert| {
            Value::text(subject(&alert.subject))
        }),
        Column::text("MESSAGE", |alert: &Alert| Value::text(&alert.message)),
        Column::text("ADVICE", |alert: &Alert| Value::text(&alert.advice)).hidden(),
        Column::text("RUNBOOK", |alert: &Alert| Value::text(&alert.runbook)).hidden(),
    ]
}

/// Runs `convect alert`.
pub fn alert(client: &Client, json: bool, command: &AlertCommand) -> Result<(), Failure> {
    match command {
        AlertCommand::List(options) => {
            let listing = Listing::new(alerts(), options, &[], json)?;
            let answer = client.get(Operation::AlertList, &[])?;
            let Some(list) = listing.read::<AlertList>(&answer)? else {
                return Ok(());
            };
            if json || options.is_any() {
                return listing.print(&answer, &list.items);
            }
            let text: String = list.items.iter().map(alert_text).collect();
            let folded = text.lines().map(|line| fold(line, 2, width()) + "\n");
            print(&folded.collect::<String>())
        }
        AlertCommand::Target(command) => super::target::target(client, json, command),
    }
}
