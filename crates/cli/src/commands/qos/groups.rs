//! `convect qos group`: volumes that share a policy.

use super::{met, met_value, slowed};
use crate::qos_arguments::QosGroup as Command;
use crate::show::{facts, print, print_json, read};
use crate::table::{Column, Listing, Value};
use crate::{Client, Failure, object};
use api::Operation;
use api::v1::{QosGroup, QosGroupChange, QosGroupCreate, QosGroupList};
use units::format_bytes;

fn columns() -> Vec<Column<QosGroup>> {
    vec![
        Column::text("GROUP", |group: &QosGroup| Value::text(&group.name)),
        Column::text("POLICY", |group| {
            let qos = group.qos.as_ref();
            Value::or(qos.map(|qos| Value::text(&qos.policy.name)), "-")
        }),
        Column::number("LEVEL", |group| {
            let qos = group.qos.as_ref();
            Value::or(qos.map(|qos| Value::count(qos.policy.level)), "-")
        }),
        Column::number("VOLUMES", |group| Value::count(group.volumes.len() as u64)),
        Column::number("MIN IOPS", |group| {
            let least = group.qos.as_ref().and_then(|qos| qos.policy.min_iops);
            Value::or(least.map(Value::count), "-")
        }),
        Column::number("IOPS", |group| {
            let qos = group.qos.as_ref();
            Value::or(qos.map(|qos| Value::count(qos.iops)), "-")
        }),
        Column::number("MET", |group| {
            group
                .qos
                .as_ref()
                .map_or_else(|| Value::nothing("-"), met_value)
        }),
    ]
}

fn show(group: &QosGroup) -> String {
    let mut lines = vec![("group", group.name.clone())];
    if let Some(qos) = &group.qos {
        let policy = &qos.policy;
        lines.extend([
            (
                "policy",
                format!("{} (level {})", policy.name, policy.level),
            ),
            ("IOPS", qos.iops.to_string()),
            ("bandwidth", format!("{}/s", format_bytes(qos.bandwidth))),
            ("queued", qos.held.to_string()),
            ("late", qos.late.to_string()),
            ("met", met(qos)),
            ("bottleneck", slowed(qos)),
        ]);
    }
    lines.push(("volumes", group.volumes.join(", ")));
    facts(&lines)
}

fn print_group(json: bool, answer: &[u8]) -> Result<(), Failure> {
    match json {
        true => print_json(answer, true),
        false => print(&show(&read(answer)?)),
    }
}

/// Runs `convect qos group`.
pub fn group(client: &Client, json: bool, command: &Command) -> Result<(), Failure> {
    match command {
        Command::List { pool, options } => {
            let listing = Listing::new(columns(), options, &[], json)?;
            let answer = client.get(Operation::QosGroupList, &[pool])?;
            let Some(list) = listing.read::<QosGroupList>(&answer)? else {
                return Ok(());
            };
            listing.print(&answer, &list.items)
        }
        Command::Show { group } => {
            let (pool, name) = object(group)?;
            print_group(json, &client.get(Operation::QosGroupShow, &[pool, name])?)
        }
        Command::Create {
            group,
            policy,
            overcommit,
        } => {
            let (pool, name) = object(group)?;
            let request = QosGroupCreate {
                name: name.to_owned(),
                policy: policy.clone(),
                overcommit: *overcommit,
            };
            print_group(
                json,
                &client.send(Operation::QosGroupCreate, &[pool], &request)?,
            )
        }
        Command::Set {
            group,
            policy,
            overcommit,
        } => {
            let (pool, name) = object(group)?;
            let request = QosGroupChange {
                policy: policy.clone(),
                overcommit: *overcommit,
            };
            let answer = client.send(Operation::QosGroupChange, &[pool, name], &request)?;
            print_group(json, &answer)
        }
        Command::Delete { group } => {
            let (pool, name) = object(group)?;
            client.get(Operation::QosGroupDelete, &[pool, name])?;
            match json {
                true => Ok(()),
                false => print(&format!("group {group} deleted\n")),
            }
        }
    }
}
