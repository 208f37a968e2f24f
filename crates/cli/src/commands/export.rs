//! `convect export`.

use crate::confirm::{confirm, query_of};
use crate::export_arguments::Export as Command;
use crate::show::{facts, print, print_json, read};
use crate::table::{Column, Listing, Value};
use crate::{Client, Failure, front_end_parameters, object};
use api::Operation;
use api::v1::{Export, ExportChange, ExportCreate, ExportList, FrontEnd, FrontEndList, Parameter};

/// Parses `[POOL/]NAME`.
fn export_name(text: &str) -> Result<(Option<&str>, &str), Failure> {
    match text.contains('/') {
        true => object(text).map(|(pool, name)| (Some(pool), name)),
        false => Ok((None, text)),
    }
}

fn show(export: &Export) -> String {
    let parameters: Vec<String> = export
        .parameters
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let mut text = facts(&[
        ("export", export.name.clone()),
        ("volume", format!("{}/{}", export.pool, export.volume)),
        ("protocol", export.kind.clone()),
        ("parameters", parameters.join(" ")),
        ("initiator", export.initiator.clone().unwrap_or_default()),
        ("state", export.state.clone()),
        ("error", export.error.clone().unwrap_or_default()),
        ("address", export.address.clone().unwrap_or_default()),
        ("sessions", export.sessions.to_string()),
    ]);
    if !export.hints.is_empty() {
        text.push_str("connect with:\n");
        for hint in &export.hints {
            text.push_str(&format!("  {hint}\n"));
        }
    }
    text
}

fn columns() -> Vec<Column<Export>> {
    vec![
        Column::text("EXPORT", |export: &Export| Value::text(&export.name)),
        Column::text("VOLUME", |export: &Export| {
            Value::text(format!("{}/{}", export.pool, export.volume))
        })
        .matched(),
        Column::text("PROTOCOL", |export: &Export| Value::text(&export.kind)),
        Column::text("INITIATOR", |export: &Export| {
            Value::or(export.initiator.as_ref().map(Value::text), "")
        }),
        Column::text("STATE", |export: &Export| Value::text(&export.state)),
        Column::number("SESSIONS", |export: &Export| Value::count(export.sessions)),
        Column::text("ADDRESS", |export: &Export| {
            let place = export.address.as_ref().or(export.error.as_ref());
            Value::or(place.map(Value::text), "")
        }),
    ]
}

fn front_end(client: &Client, kind: &str) -> Result<FrontEnd, Failure> {
    let list: FrontEndList = read(&client.get(Operation::FrontEndList, &[])?)?;
    let names: Vec<String> = list.items.iter().map(|row| row.name.clone()).collect();
    let found = list.items.into_iter().find(|row| row.name == kind);
    found.ok_or_else(|| {
        Failure::Usage(format!(
            "unknown protocol '{kind}': choose one of {}",
            names.join(", ")
        ))
    })
}

/// The parameter that exports of every protocol have.
fn initiator() -> Parameter {
    Parameter {
        name: "initiator".to_owned(),
        about: "Initiator name of all I/O through this export, as used by `volume set --bypass`"
            .to_owned(),
        required: false,
    }
}

fn create(
    client: &Client,
    json: bool,
    (name, volume, writable): (&str, &str, bool),
    kind: &str,
    given: Option<&str>,
    words: &[String],
) -> Result<(), Failure> {
    let (pool, volume) = object(volume)?;
    let mut row = front_end(client, kind)?;
    row.parameters.push(initiator());
    // Arguments after the protocol are its own parameters; only these two flags are common to all.
    let has = |flag: &str| words.iter().any(|word| word == flag);
    let (json, writable) = (json || has("--json"), writable || has("--writable"));
    let words: Vec<String> = words
        .iter()
        .filter(|word| *word != "--json" && *word != "--writable")
        .cloned()
        .collect();
    let mut parameters = front_end_parameters(&row, &words)?;
    let among = parameters.remove("initiator");
    if given.is_some() && among.is_some() {
        let text = "--initiator is given twice: write it once";
        return Err(Failure::Usage(text.to_owned()));
    }
    let request = ExportCreate {
        name: name.to_owned(),
        pool: pool.to_owned(),
        volume: volume.to_owned(),
        writable,
        kind: kind.to_owned(),
        parameters,
        initiator: given.map(str::to_owned).or(among),
    };
    let answer = client.send(Operation::ExportCreate, &[], &request)?;
    match json {
        true => print_json(&answer, true),
        false => print(&show(&read(&answer)?)),
    }
}

fn set(client: &Client, json: bool, name: &str, words: &[String]) -> Result<(), Failure> {
    let (pool, name) = export_name(name)?;
    let query = pool.map(|pool| ("pool", pool));
    let query = query.as_slice();
    let answer = client.call(Operation::ExportShow, &[name], query, None)?;
    let mut row = front_end(client, &read::<Export>(&answer)?.kind)?;
    for parameter in &mut row.parameters {
        parameter.required = false;
    }
    let json = json || words.iter().any(|word| word == "--json");
    let words: Vec<String> = words
        .iter()
        .filter(|word| *word != "--json")
        .cloned()
        .collect();
    let change = ExportChange {
        parameters: front_end_parameters(&row, &words)?,
    };
    let body = serde_json::to_vec(&change).map_err(|error| Failure::Failed(error.to_string()))?;
    let answer = client.call(Operation::ExportSet, &[name], query, Some(body))?;
    match json {
        true => print_json(&answer, true),
        false => print(&show(&read(&answer)?)),
    }
}

/// Disables or enables an export.
fn switch(
    client: &Client,
    json: bool,
    name: &str,
    (operation, force): (Operation, &[(&str, &str)]),
    done: &str,
) -> Result<(), Failure> {
    let (pool, name) = export_name(name)?;
    let pool = pool.map(|pool| ("pool", pool));
    let query: Vec<_> = pool.into_iter().chain(force.iter().copied()).collect();
    let answer = client.call(operation, &[name], &query, None)?;
    if json {
        return print_json(&answer, true);
    }
    let export: Export = read(&answer)?;
    match export.address {
        Some(address) => print(&format!("export {name} {done} at {address}\n")),
        None => print(&format!("export {name} {done}\n")),
    }
}

/// Runs `convect export`.
pub fn export(client: &Client, json: bool, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Create {
            name,
            volume,
            kind,
            initiator,
            writable,
            parameters,
        } => {
            let (what, given) = (
                (name.as_str(), volume.as_str(), *writable),
                initiator.as_deref(),
            );
            create(client, json, what, kind, given, parameters)
        }
        Command::Set { name, parameters } => set(client, json, name, parameters),
        Command::List(list) => {
            let listing = Listing::new(columns(), &list.options, &list.names, json)?;
            let answer = client.get(Operation::ExportList, &[])?;
            let Some(list) = listing.read::<ExportList>(&answer)? else {
                return Ok(());
            };
            listing.print(&answer, &list.items)
        }
        Command::Show { name } => {
            let (pool, name) = export_name(name)?;
            let query = pool.map(|pool| ("pool", pool));
            let answer = client.call(Operation::ExportShow, &[name], query.as_slice(), None)?;
            match json {
                true => print_json(&answer, true),
                false => print(&show(&read(&answer)?)),
            }
        }
        Command::Disable { name, force } => {
            let how = (Operation::ExportDisable, query_of(*force));
            switch(client, json, name, how, "disabled")
        }
        Command::Enable { name } => {
            let how = (Operation::ExportEnable, query_of(false));
            switch(client, json, name, how, "enabled")
        }
        Command::Delete { name, yes } => {
            let (pool, name) = export_name(name)?;
            let what = format!("hosts that use export {name} are disconnected");
            confirm(&what, name, *yes)?;
            let query = pool.map(|pool| ("pool", pool));
            client.call(Operation::ExportDelete, &[name], query.as_slice(), None)?;
            match json {
                true => Ok(()),
                false => print(&format!("export {name} deleted\n")),
            }
        }
    }
}
