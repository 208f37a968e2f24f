//! `convect event` and `convect alert`.

use super::scrub::date;
use crate::event_arguments::{Alert as AlertCommand, Event as Command, EventFilter};
use crate::show::{print, print_json, print_styled, read, table};
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

fn row(event: &Event) -> Vec<String> {
    vec![
        event.number.to_string(),
        date(event.at_s),
        event.severity.as_str().to_owned(),
        event.code.as_str().to_owned(),
        state(event).to_owned(),
        subject(&event.subject),
        event.message.clone(),
    ]
}

fn list(
    client: &Client,
    json: bool,
    which: &EventFilter,
    limit: usize,
    before: Option<u64>,
) -> Result<(), Failure> {
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
    if json {
        return print_json(&answer, true);
    }
    let list: EventList = read(&answer)?;
    let head = [
        ">NUMBER", "TIME", "SEVERITY", "CODE", "", "SUBJECT", "MESSAGE",
    ];
    print_styled(&table(&head, list.items.iter().map(row)))?;
    match list.next {
        Some(next) => print(&format!("more: --before {next}\n")),
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
        } => list(client, json, which, *limit, *before),
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

/// Runs `convect alert`.
pub fn alert(client: &Client, json: bool, command: &AlertCommand) -> Result<(), Failure> {
    match command {
        AlertCommand::List => {
            let answer = client.get(Operation::AlertList, &[])?;
            if json {
                return print_json(&answer, true);
            }
            let list: AlertList = read(&answer)?;
            print(&list.items.iter().map(alert_text).collect::<String>())
        }
        AlertCommand::Target(command) => super::target::target(client, json, command),
    }
}
