//! `convect server`.

use super::target::text_of;
use crate::confirm::confirm;
use crate::server_arguments::Server as Command;
use crate::show::{print, print_json, read};
use crate::table::{Column, Listing, Value};
use crate::transport::token;
use crate::{Client, Failure};
use api::v1::{Server, ServerCreate, ServerList, ServerState};
use api::{Operation, Secret};
use std::path::Path;
use std::time::{Duration, Instant};

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

fn sum(server: &Server, of: fn(&api::v1::ServerPool) -> u64) -> Value {
    Value::bytes(server.pools.iter().map(of).sum())
}

fn columns() -> Vec<Column<Server>> {
    vec![
        Column::text("NAME", |server: &Server| {
            Value::text(match server.name.as_str() {
                "" => "(this one)",
                name => name,
            })
        }),
        Column::text("HEALTH", |server| Value::text(health(server))),
        Column::number("POOLS", |server| Value::count(server.pools.len() as u64)),
        Column::number("SIZE", |server| sum(server, |pool| pool.capacity)),
        Column::number("USED", |server| sum(server, |pool| pool.used)),
        Column::number("JOBS", |server| Value::count(server.jobs_running)),
        Column::text("ADDRESS", |server| Value::text(&server.url)),
        Column::text("ERROR", |server| {
            Value::or(server.error.as_ref().map(Value::text), "")
        }),
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
        Command::List(with) => {
            let listing = Listing::new(columns(), &with.options, &with.names, json)?;
            let answer = list(client)?;
            let Some(list) = listing.read::<ServerList>(&answer)? else {
                return Ok(());
            };
            match json {
                true => listing.print(&answer, &list.items),
                false => listing.print(&answer, std::iter::once(&list.this).chain(&list.items)),
            }
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
