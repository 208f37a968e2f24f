//! `convect context`.

use crate::Failure;
use crate::confirm::confirm;
use crate::context_arguments::Context as Command;
use crate::list_arguments::ListOptions;
use crate::show::print;
use crate::table::{Column, Listing, Value};
use crate::transport::{Context, Contexts, DaemonSelection, Environment, LOCAL};
use remote::{Address, Trust, fingerprint};
use std::path::PathBuf;

fn absolute(path: &PathBuf) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.clone())
}

fn add(
    reach: &DaemonSelection,
    environment: &Environment,
    name: &str,
    yes: bool,
) -> Result<(), Failure> {
    let Some(server) = reach.server.as_deref() else {
        let text = "a context needs a server address: add --server https://HOST:PORT";
        return Err(Failure::Usage(text.to_owned()));
    };
    if reach.socket.is_some() || reach.context.is_some() {
        let text = "a context is created from --server: remove --socket and --context";
        return Err(Failure::Usage(text.to_owned()));
    }
    let address = Address::parse(server)?;
    // Refuse an invalid context before asking for confirmation.
    let mut known = Contexts::load(environment.folder()?)?;
    let made = |pin, ca| Context {
        server: address.to_string(),
        pin,
        ca,
        token_file: reach.token_file.as_ref().map(absolute),
    };
    known.add(name, made(None, None))?;
    let context = match reach.trust()? {
        Some(Trust::Pin(pin)) => made(Some(pin.to_string()), None),
        Some(Trust::Authorities(path)) => made(None, Some(absolute(&path))),
        None => {
            let pin = fingerprint(&address).map_err(|error| Failure::unreachable(&error))?;
            let what = format!(
                "{address} presents the certificate {pin}. Compare it with the fingerprint in the \
                 daemon's log: if they differ, the connection is intercepted"
            );
            if yes {
                eprintln!("pinned without confirmation: {pin}");
            }
            confirm(&what, name, yes)?;
            made(Some(pin.to_string()), None)
        }
    };
    Contexts::change(environment.folder()?, |all| all.add(name, context))
}

/// A context as it is listed.
struct Row {
    current: bool,
    name: String,
    server: String,
    certificate: String,
    token: String,
}

fn columns() -> Vec<Column<Row>> {
    vec![
        Column::text("CURRENT", |row: &Row| {
            Value::text(if row.current { "*" } else { "" })
        }),
        Column::text("CONTEXT", |row: &Row| Value::text(&row.name)).key(),
        Column::text("SERVER", |row: &Row| Value::text(&row.server)),
        Column::text("CERTIFICATE", |row: &Row| Value::text(&row.certificate)),
        Column::text("TOKEN", |row: &Row| Value::text(&row.token)),
    ]
}

fn list(environment: &Environment, json: bool, options: &ListOptions) -> Result<(), Failure> {
    let listing = Listing::new(columns(), options, &[], json)?;
    let all = Contexts::load(environment.folder()?)?;
    let answer = serde_json::to_vec(&all);
    let answer = answer.map_err(|error| Failure::Failed(error.to_string()))?;
    let current = all.current.as_deref().unwrap_or(LOCAL);
    let shown = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let mut rows = vec![Row {
        current: current == LOCAL,
        name: LOCAL.to_owned(),
        server: "Unix socket of this host".to_owned(),
        certificate: String::new(),
        token: String::new(),
    }];
    rows.extend(all.contexts.iter().map(|(name, context)| {
        Row {
            current: name == current,
            name: name.clone(),
            server: context.server.clone(),
            certificate: context
                .pin
                .clone()
                .or_else(|| shown(&context.ca))
                .unwrap_or_default(),
            token: shown(&context.token_file).unwrap_or_else(|| "CONVECT_TOKEN".to_owned()),
        }
    }));
    listing.print(&answer, &rows)
}

/// Runs `convect context`. Contacts no daemon, except to read a certificate.
pub fn context(
    reach: &DaemonSelection,
    environment: &Environment,
    json: bool,
    command: &Command,
) -> Result<(), Failure> {
    let told = |text: String| match json {
        true => Ok(()),
        false => print(&text),
    };
    match command {
        Command::Add { name, pin, yes } => {
            let pin = pin.clone().or_else(|| reach.pin.clone());
            let reach = DaemonSelection {
                pin,
                ..reach.clone()
            };
            add(&reach, environment, name, *yes)?;
            told(format!(
                "context {name} added: use it with `convect context use {name}` or --context {name}\n"
            ))
        }
        Command::List(options) => list(environment, json, options),
        Command::Use { name } => {
            Contexts::change(environment.folder()?, |all| all.use_one(name))?;
            told(format!("current context: {name}\n"))
        }
        Command::Remove { name } => {
            Contexts::change(environment.folder()?, |all| all.remove(name))?;
            told(format!("context {name} removed\n"))
        }
    }
}
