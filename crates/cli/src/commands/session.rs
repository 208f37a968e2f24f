//! `convect session`.

use crate::export_arguments::Session as Command;
use crate::progress::duration;
use crate::show::print;
use crate::table::{Column, Listing, Value};
use crate::{Client, Failure};
use api::Operation;
use api::v1::{Session, SessionList};
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since `since_s`, in seconds since 1970.
fn age(since_s: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs()).saturating_sub(since_s)
}

fn columns() -> Vec<Column<Session>> {
    vec![
        Column::number("SESSION", |session: &Session| Value::count(session.id)),
        Column::text("INITIATOR", |session: &Session| {
            Value::text(&session.initiator)
        })
        .key(),
        Column::text("USER", |session: &Session| {
            Value::or(session.user.as_ref().map(Value::text), "")
        }),
        Column::text("ADDRESS", |session: &Session| Value::text(&session.address)),
        Column::text("PORTAL", |session: &Session| Value::text(&session.portal)),
        Column::text("EXPORTS", |session: &Session| {
            Value::text(session.exports.join(" "))
        }),
        Column::number("SINCE", |session: &Session| {
            let age = age(session.since_s);
            Value::whole(age, duration(age))
        }),
        Column::number("COMMANDS", |session: &Session| {
            Value::count(session.commands)
        }),
        Column::number("READ", |session: &Session| Value::bytes(session.bytes_read)),
        Column::number("WRITTEN", |session: &Session| {
            Value::bytes(session.bytes_written)
        }),
    ]
}

/// Runs `convect session`.
pub fn session(client: &Client, json: bool, command: &Command) -> Result<(), Failure> {
    match command {
        Command::List(list) => {
            let listing = Listing::new(columns(), &list.options, &list.names, json)?;
            let answer = client.get(Operation::SessionList, &[])?;
            let Some(list) = listing.read::<SessionList>(&answer)? else {
                return Ok(());
            };
            listing.print(&answer, &list.items)
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
