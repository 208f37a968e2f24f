//! `convect token` and `convect audit`.

use super::scrub::date;
use crate::access_arguments::{Audit, Token as Command};
use crate::confirm::confirm;
use crate::show::{print, print_json, read};
use crate::table::{Column, Listing, Value};
use crate::{Client, Failure};
use api::Operation;
use api::v1::{AuditEntry, AuditList, Role, Token, TokenCreate, TokenList, TokenMade};
use daemon::Span;

fn role(role: Role) -> &'static str {
    match role {
        Role::Viewer => "viewer",
        Role::Operator => "operator",
        Role::Admin => "admin",
    }
}

fn columns() -> Vec<Column<Token>> {
    vec![
        Column::text("TOKEN", |token: &Token| Value::text(&token.name)),
        Column::text("ROLE", |token| Value::text(role(token.role))),
        Column::text("CREATED", |token| Value::date(token.created_s)),
        Column::text("EXPIRES", |token| {
            let expires = date(token.expires_s);
            let shown = match token.expired {
                true => format!("{expires} (expired)"),
                false => expires,
            };
            Value::whole(token.expires_s, shown)
        }),
    ]
}

fn create(client: &Client, json: bool, request: &TokenCreate) -> Result<(), Failure> {
    let answer = client.send(Operation::TokenCreate, &[], request)?;
    if json {
        return print_json(&answer, true);
    }
    let made: TokenMade = read(&answer)?;
    eprintln!(
        "token {} with role {}, valid until {}; it is not shown again:",
        made.token.name,
        role(made.token.role),
        date(made.token.expires_s)
    );
    print(&format!("{}\n", made.secret.expose()))
}

/// Runs `convect token`.
pub fn token(client: &Client, json: bool, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Create {
            name,
            role,
            expires,
        } => {
            let lasts = Span::parse(expires).map_err(Failure::Usage)?;
            let request = TokenCreate {
                name: name.clone(),
                role: *role,
                expires_in_s: Some(lasts.0.as_secs()),
            };
            create(client, json, &request)
        }
        Command::List(list) => {
            let listing = Listing::new(columns(), &list.options, &list.names, json)?;
            let answer = client.get(Operation::TokenList, &[])?;
            let Some(list) = listing.read::<TokenList>(&answer)? else {
                return Ok(());
            };
            listing.print(&answer, &list.items)
        }
        Command::Revoke { name, yes } => {
            confirm(
                &format!("clients that use token {name} lose access"),
                name,
                *yes,
            )?;
            client.get(Operation::TokenRevoke, &[name])?;
            match json {
                true => Ok(()),
                false => print(&format!("token {name} revoked\n")),
            }
        }
    }
}

fn entries() -> Vec<Column<AuditEntry>> {
    vec![
        Column::text("NUMBER", |entry: &AuditEntry| Value::count(entry.number)),
        Column::text("TIME", |entry| Value::date(entry.at_s)),
        Column::text("USER", |entry| Value::text(&entry.who)),
        Column::text("FROM", |entry| Value::text(&entry.from)),
        Column::text("OPERATION", |entry| Value::text(&entry.operation)),
        Column::text("OUTCOME", |entry| {
            let of = entry.of.map(|of| format!(" (of {of})"));
            Value::text(format!("{}{}", entry.outcome, of.unwrap_or_default()))
        }),
        Column::text("SUBJECT", |entry| Value::text(&entry.subject)),
    ]
}

/// Runs `convect audit`.
pub fn audit(client: &Client, json: bool, command: &Audit) -> Result<(), Failure> {
    let listing = Listing::new(entries(), &command.options, &[], json)?;
    let limit = command.limit.to_string();
    let answer = client.call(Operation::AuditList, &[], &[("limit", &limit)], None)?;
    let Some(list) = listing.read::<AuditList>(&answer)? else {
        return Ok(());
    };
    listing.print(&answer, &list.items)?;
    match list.broken_at {
        None => Ok(()),
        Some(number) => Err(Failure::Failed(format!(
            "the audit log was modified from entry {number} on: see docs/access.md"
        ))),
    }
}
