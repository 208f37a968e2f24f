//! `convect session`.

use crate::export_arguments::Session as Command;
use crate::progress::duration;
use crate::show::{print, print_json, read, table};
use crate::{Client, Failure};
use api::Operation;
use api::v1::{Session, SessionList};
use std::time::{SystemTime, UNIX_EPOCH};
use units::format_bytes;

fn row(session: &Session) -> Vec<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = now.map_or(0, |now| now.as_secs());
    vec![
        session.id.to_string(),
        session.initiator.clone(),
        session.user.clone().unwrap_or_default(),
        session.address.clone(),
        session.portal.clone(),
        session.exports.join(" "),
        duration(now_s.saturating_sub(session.since_s)),
        session.commands.to_string(),
        format_bytes(session.bytes_read),
        format_bytes(session.bytes_written),
    ]
}

/// Runs `convect session`.
pub fn session(client: &Client, json: bool, command: &Command) -> Result<(), Failure> {
    match command {
        Command::List => {
            let answer = client.get(Operation::SessionList, &[])?;
            if json {
                return print_json(&answer, true);
            }
            let list: SessionList = read(&answer)?;
            let head = [
                ">SESSION",
                "INITIATOR",
                "USER",
                "ADDRESS",
                "PORTAL",
                "EXPORTS",
                ">SINCE",
                ">COMMANDS",
                ">READ",
                ">WRITTEN",
            ];
            print(&table(&head, list.items.iter().map(row)))
        }
        Command::End { id } => {
            client.get(Operation::SessionEnd, &[&id.to_string()])?;
            match json {
                true => Ok(()),
                false => print(&format!("session {id}: disconnect requested\n")),
            }
        }
    }
}
