//! `convect token` and `convect audit`.

use super::scrub::date;
use crate::access_arguments::{Audit, Token as Command};
use crate::confirm::confirm;
use crate::show::{print, print_json, read, table};
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

fn row(token: &Token) -> Vec<String> {
    let expires = date(token.expires_s);
    vec![
        token.name.clone(),
        role(token.role).to_owned(),
        date(token.created_s),
        match token.expired {
            true => format!("{expires} (expired)"),
            false => expires,
        },
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
        Command::List => {
            let answer = client.get(Operation::TokenList, &[])?;
            if json {
                return print_json(&answer, true);
            }
            let list: TokenList = read(&answer)?;
            let head = ["TOKEN", "ROLE", "CREATED", "EXPIRES"];
            print(&table(&head, list.items.iter().map(row)))
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

fn entry(entry: &AuditEntry) -> Vec<String> {
    let of = entry.of.map(|of| format!(" (of {of})"));
    vec![
        entry.number.to_string(),
        date(entry.at_s),
        entry.who.clone(),
        entry.from.clone(),
        entry.operation.clone(),
        format!("{}{}", entry.outcome, of.unwrap_or_default()),
        entry.subject.clone(),
    ]
}

/// Runs `convect audit`.
pub fn audit(client: &Client, json: bool, command: &Audit) -> Result<(), Failure> {
    let limit = command.limit.to_string();
    let answer = client.call(Operation::AuditList, &[], &[("limit", &limit)], None)?;
    if json {
        return print_json(&answer, true);
    }
    let list: AuditList = read(&answer)?;
    let head = [
        "NUMBER",
        "TIME",
        "USER",
        "FROM",
        "OPERATION",
        "OUTCOME",
        "SUBJECT",
    ];
    print(&table(&head, list.items.iter().map(entry)))?;
    match list.broken_at {
        None => Ok(()),
        Some(number) => Err(Failure::Failed(format!(
            "the audit log was modified from entry {number} on: see docs/access.md"
        ))),
    }
}
