//! `convect qos group`: volumes that share a policy.

use super::{met, slowed, some};
use crate::qos_arguments::QosGroup as Command;
use crate::show::{facts, print, print_json, read, table};
use crate::{Client, Failure, object};
use api::Operation;
use api::v1::{QosGroup, QosGroupChange, QosGroupCreate, QosGroupList};
use units::format_bytes;

fn row(group: &QosGroup) -> Vec<String> {
    let qos = group.qos.as_ref();
    vec![
        group.name.clone(),
        some(qos.map(|qos| &qos.policy.name)),
        some(qos.map(|qos| qos.policy.level)),
        group.volumes.len().to_string(),
        some(qos.and_then(|qos| qos.policy.min_iops)),
        some(qos.map(|qos| qos.iops)),
        qos.map_or_else(|| "-".to_owned(), met),
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
        Command::List { pool } => {
            let answer = client.get(Operation::QosGroupList, &[pool])?;
            if json {
                return print_json(&answer, true);
            }
            let list: QosGroupList = read(&answer)?;
            let head = [
                "GROUP",
                "POLICY",
                ">LEVEL",
                ">VOLUMES",
                ">MIN IOPS",
                ">IOPS",
                ">MET",
            ];
            print(&table(&head, list.items.iter().map(row)))
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
