//! `convect context`.

use crate::Failure;
use crate::confirm::confirm;
use crate::context_arguments::Context as Command;
use crate::show::{print, print_json, table};
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

fn list(environment: &Environment, json: bool) -> Result<(), Failure> {
    let all = Contexts::load(environment.folder()?)?;
    if json {
        let text = serde_json::to_vec(&all);
        let text = text.map_err(|error| Failure::Failed(error.to_string()))?;
        return print_json(&text, true);
    }
    let current = all.current.as_deref().unwrap_or(LOCAL);
    let row = |name: &str, [server, certificate, token]: [String; 3]| {
        let star = if name == current { "*" } else { "" };
        vec![star.to_owned(), name.to_owned(), server, certificate, token]
    };
    let local = row(
        LOCAL,
        [
            "Unix socket of this host".to_owned(),
            String::new(),
            String::new(),
        ],
    );
    let shown = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let others = all.contexts.iter().map(|(name, context)| {
        let certificate = context.pin.clone().or_else(|| shown(&context.ca));
        let token = shown(&context.token_file).unwrap_or_else(|| "CONVECT_TOKEN".to_owned());
        let cells = [
            context.server.clone(),
            certificate.unwrap_or_default(),
            token,
        ];
        row(name, cells)
    });
    let head = ["", "CONTEXT", "SERVER", "CERTIFICATE", "TOKEN"];
    print(&table(&head, std::iter::once(local).chain(others)))
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
        Command::List => list(environment, json),
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
