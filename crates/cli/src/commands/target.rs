//! `convect alert target`.

use crate::confirm::confirm;
use crate::event_arguments::{Common, Create, Target as Command};
use crate::show::{print, print_json, read};
use crate::table::{Column, Listing, Value};
use crate::{Client, Failure};
use api::v1::{MailSecurity, Severity, Target, TargetCreate, TargetList, TargetTo};
use api::{Operation, Secret};
use std::io::Read;
use std::path::Path;

/// Maximum size of a file, in bytes.
const FILE_MAX: u64 = 256 << 10;

/// Reads a file, or the standard input for `-`; at most 256 KiB.
pub(super) fn text_of(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().take(FILE_MAX).read_to_string(&mut text),
        false => {
            std::fs::File::open(path).and_then(|file| file.take(FILE_MAX).read_to_string(&mut text))
        }
    };
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::Failed(format!(
            "cannot read {}: {error}",
            path.display()
        ))),
    }
}

/// A single-line secret.
fn secret(path: Option<&Path>) -> Result<Option<Secret>, Failure> {
    let text = path.map(text_of).transpose()?;
    Ok(text.map(|text| Secret::new(text.trim_end_matches(['\r', '\n']))))
}

fn request(common: &Common, to: TargetTo) -> Result<TargetCreate, Failure> {
    let severity = match common.severity.as_str() {
        "info" => Severity::Info,
        "critical" => Severity::Critical,
        _ => Severity::Warning,
    };
    Ok(TargetCreate {
        name: common.name.clone(),
        severity,
        to,
        ca: common.trust.as_deref().map(text_of).transpose()?,
    })
}

fn wanted(create: &Create) -> Result<TargetCreate, Failure> {
    match create {
        Create::Webhook {
            common,
            url,
            secret_file,
        } => {
            let to = TargetTo::Webhook {
                url: url.clone(),
                secret: secret(secret_file.as_deref())?,
            };
            request(common, to)
        }
        Create::Email {
            common,
            mail_server,
            port,
            security,
            user,
            password_file,
            from,
            to,
        } => {
            let to = TargetTo::Email {
                server: mail_server.clone(),
                port: *port,
                security: match security.as_str() {
                    "tls" => MailSecurity::Tls,
                    "plain" => MailSecurity::Plain,
                    _ => MailSecurity::Starttls,
                },
                user: user.clone(),
                password: secret(password_file.as_deref())?,
                from: from.clone(),
                to: to.clone(),
            };
            request(common, to)
        }
    }
}

fn columns() -> Vec<Column<Target>> {
    vec![
        Column::text("TARGET", |target: &Target| Value::text(&target.name)),
        Column::text("KIND", |target| Value::text(&target.kind)),
        Column::text("FROM", |target| Value::text(target.severity.as_str())),
        Column::number("DELIVERED", |target| Value::count(target.delivered)),
        Column::number("WAITING", |target| Value::count(target.waiting)),
        Column::number("LOST", |target| Value::count(target.lost)),
        Column::text("ADDRESS", |target| Value::text(&target.address)),
        Column::text("STATE", |target| {
            Value::text(match &target.error {
                None => "ok".to_owned(),
                Some(error) => format!("{} failures: {error}", target.failures),
            })
        }),
    ]
}

/// Runs `convect alert target`.
pub fn target(client: &Client, json: bool, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Create(create) => {
            let answer = client.send(Operation::TargetCreate, &[], &wanted(create)?)?;
            if json {
                return print_json(&answer, true);
            }
            let name = read::<Target>(&answer)?.name;
            print(&format!(
                "target {name} created; test it with `convect alert target test {name}`\n"
            ))
        }
        Command::List(list) => {
            let listing = Listing::new(columns(), &list.options, &list.names, json)?;
            let answer = client.get(Operation::TargetList, &[])?;
            let Some(list) = listing.read::<TargetList>(&answer)? else {
                return Ok(());
            };
            listing.print(&answer, &list.items)
        }
        Command::Delete { name, yes } => {
            confirm(
                &format!("target {name} receives no further events"),
                name,
                *yes,
            )?;
            client.get(Operation::TargetDelete, &[name])?;
            match json {
                true => Ok(()),
                false => print(&format!("target {name} deleted\n")),
            }
        }
        Command::Test { name } => {
            client.get(Operation::TargetTest, &[name])?;
            match json {
                true => Ok(()),
                false => print(&format!("target {name} accepted the test event\n")),
            }
        }
    }
}
