//! `convect server`.

use super::target::text_of;
use crate::confirm::confirm;
use crate::server_arguments::Server as Command;
use crate::show::{print, print_json, print_styled, read, table};
use crate::transport::token;
use crate::{Client, Failure};
use api::v1::{Server, ServerCreate, ServerList, ServerState};
use api::{Operation, Secret};
use std::path::Path;
use std::time::{Duration, Instant};
use units::format_bytes;

/// How long to wait for the first responses of servers, and how often to poll.
const PATIENCE: Duration = Duration::from_secs(10);
const EVERY: Duration = Duration::from_millis(200);

fn token_of(path: &Path) -> Result<String, Failure> {
    match path.as_os_str() == "-" {
        true => token::checked(&text_of(path)?, "the standard input"),
        false => token::of_file(path),
    }
}

fn health(server: &Server) -> String {
    match server.state {
        ServerState::Asking => "asking".to_owned(),
        ServerState::Unreachable => "unreachable".to_owned(),
        ServerState::Online if server.alerts_open > 0 => format!("{} alerts", server.alerts_open),
        ServerState::Online => "well".to_owned(),
    }
}

fn row(server: &Server) -> Vec<String> {
    let sum = |of: fn(&api::v1::ServerPool) -> u64| server.pools.iter().map(of).sum::<u64>();
    let (used, capacity) = (sum(|pool| pool.used), sum(|pool| pool.capacity));
    let name = match server.name.as_str() {
        "" => "(this one)",
        name => name,
    };
    vec![
        name.to_owned(),
        health(server),
        server.pools.len().to_string(),
        format!("{} of {}", format_bytes(used), format_bytes(capacity)),
        server.jobs_running.to_string(),
        server.error.clone().unwrap_or_else(|| server.url.clone()),
    ]
}

/// Polls the list until every new server has responded, or the time limit has passed.
fn list(client: &Client) -> Result<Vec<u8>, Failure> {
    let began = Instant::now();
    loop {
        let answer = client.get(Operation::ServerList, &[])?;
        let list: ServerList = read(&answer)?;
        let asking = list
            .items
            .iter()
            .any(|server| server.state == ServerState::Asking);
        if !asking || began.elapsed() >= PATIENCE {
            return Ok(answer);
        }
        std::thread::sleep(EVERY);
    }
}

/// Runs `convect server`.
pub fn server(client: &Client, json: bool, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Add {
            name,
            url,
            with_token,
            pin,
            trust,
        } => {
            let request = ServerCreate {
                name: name.clone(),
                url: url.clone(),
                pin: pin.clone(),
                ca: trust.as_deref().map(text_of).transpose()?,
                token: Secret::new(token_of(with_token)?),
            };
            let answer = client.send(Operation::ServerCreate, &[], &request)?;
            match json {
                true => print_json(&answer, true),
                false => print(&format!("server {name} added\n")),
            }
        }
        Command::List => {
            let answer = list(client)?;
            if json {
                return print_json(&answer, true);
            }
            let list: ServerList = read(&answer)?;
            let all = std::iter::once(&list.this).chain(&list.items);
            let head = [
                "NAME",
                "HEALTH",
                ">POOLS",
                ">USED",
                ">JOBS",
                "WHERE, OR WHY NOT",
            ];
            print_styled(&table(&head, all.map(row)))
        }
        Command::Remove { name, yes } => {
            let what = format!("server {name} is no longer monitored, and its token is deleted");
            confirm(&what, name, *yes)?;
            client.get(Operation::ServerRemove, &[name])?;
            match json {
                true => Ok(()),
                false => print(&format!("server {name} removed\n")),
            }
        }
    }
}
