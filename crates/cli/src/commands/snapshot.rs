//! `convect snapshot`.

use super::diff::diff;
use super::schedule::schedule;
use crate::arguments::Snapshot as Command;
use crate::confirm::{confirm, query_of};
use crate::list_arguments::NamedList;
use crate::show::{print, print_json, read};
use crate::table::{Column, Listing, Value};
use crate::{Client, Failure, object};
use api::Operation;
use api::v1::{
    Snapshot, SnapshotChange, SnapshotClone, SnapshotCreate, SnapshotList, Volume, VolumeRollBack,
};

/// Parses POOL/VOL@NAME.
pub(super) fn named(text: &str) -> Result<(&str, &str, &str), Failure> {
    let (pool, rest) = object(text)?;
    match rest.split_once('@') {
        Some((volume, name)) if !volume.is_empty() && !name.is_empty() => Ok((pool, volume, name)),
        _ => Err(Failure::Usage(format!(
            "'{text}' is not a snapshot: write POOL/VOL@NAME, like tank/vm1@before-update"
        ))),
    }
}

/// Volumes of one pool with a common snapshot name.
pub(super) struct Group<'a> {
    pub pool: &'a str,
    pub volumes: Vec<String>,
    pub name: &'a str,
}

/// Parses the POOL/VOL@NAME of each volume.
///
/// # Errors
/// When one is malformed, or its pool or name differs from the first.
pub(super) fn group(words: &[String]) -> Result<Group<'_>, Failure> {
    let mut group = Group {
        pool: "",
        volumes: Vec::new(),
        name: "",
    };
    for text in words {
        let (pool, volume, name) = named(text)?;
        if group.volumes.is_empty() {
            (group.pool, group.name) = (pool, name);
        }
        if (group.pool, group.name) != (pool, name) {
            return Err(Failure::Usage(format!(
                "'{text}': snapshots taken together share their pool and name, here {}/…@{}",
                group.pool, group.name
            )));
        }
        group.volumes.push(volume.to_owned());
    }
    Ok(group)
}

/// Query parameters for a pool, a volume, or all.
pub(super) fn filter(of: Option<&str>) -> Vec<(&str, &str)> {
    match of.map(|of| of.split_once('/').unwrap_or((of, ""))) {
        None => Vec::new(),
        Some((pool, "")) => vec![("pool", pool)],
        Some((pool, volume)) => vec![("pool", pool), ("volume", volume)],
    }
}

/// What of a list's names the daemon selects (one pool or volume), and what is matched here.
pub(super) fn selection(names: &[String]) -> (Option<&str>, &[String]) {
    match names {
        [one] if !one.contains(['*', '?', '@']) => (Some(one), &[]),
        _ => (None, names),
    }
}

fn columns() -> Vec<Column<Snapshot>> {
    vec![
        Column::text("SNAPSHOT", |snapshot: &Snapshot| {
            let (pool, volume) = (&snapshot.pool, &snapshot.volume);
            Value::text(format!("{pool}/{volume}@{}", snapshot.name))
        }),
        Column::text("CREATED", |snapshot| Value::date(snapshot.created_s)),
        Column::number("SIZE", |snapshot| Value::bytes(snapshot.size)),
        Column::number("STORED", |snapshot| Value::bytes(snapshot.stored)),
        Column::number("UNIQUE", |snapshot| {
            Value::or(snapshot.unique.map(Value::bytes), "?")
        }),
        Column::text("HELD", |snapshot| {
            Value::text(if snapshot.held { "held" } else { "" })
        }),
        Column::text("CLONES", |snapshot| Value::text(snapshot.clones.join(", "))),
        Column::text("SCHEDULE", |snapshot| {
            Value::or(snapshot.schedule.as_ref().map(Value::text), "")
        }),
    ]
}

fn list(client: &Client, json: bool, list: &NamedList, wait_s: u64) -> Result<(), Failure> {
    let (of, names) = selection(&list.names);
    let listing = Listing::new(columns(), &list.options, names, json)?;
    let wait = wait_s.to_string();
    let mut query = filter(of);
    query.push(("wait_s", &wait));
    let answer = client.call(Operation::SnapshotList, &[], &query, None)?;
    let Some(list) = listing.read::<SnapshotList>(&answer)? else {
        return Ok(());
    };
    listing.print(&answer, &list.items)?;
    match list.items.iter().any(|snapshot| snapshot.unique.is_none()) {
        true => listing.note(&format!(
            "?: not computed within {wait_s} s; try --wait 20\n"
        )),
        false => Ok(()),
    }
}

fn create(client: &Client, json: bool, snapshots: &[String]) -> Result<(), Failure> {
    let Group {
        pool,
        volumes,
        name,
    } = group(snapshots)?;
    let request = SnapshotCreate {
        pool: pool.to_owned(),
        volumes,
        name: name.to_owned(),
    };
    let answer = client.send(Operation::SnapshotCreate, &[], &request)?;
    match json {
        true => print_json(&answer, true),
        false => print(&format!("{} taken\n", snapshots.join(", "))),
    }
}

fn delete(
    client: &Client,
    json: bool,
    snapshots: &[String],
    (force, yes): (bool, bool),
) -> Result<(), Failure> {
    for text in snapshots {
        named(text)?;
    }
    for text in snapshots {
        let (pool, volume, name) = named(text)?;
        confirm(&format!("snapshot {text} and its data are lost"), text, yes)?;
        let segments = [pool, volume, name];
        client.call(Operation::SnapshotDelete, &segments, query_of(force), None)?;
        if !json {
            print(&format!(
                "snapshot {text} deleted; its space is freed in the background\n"
            ))?;
        }
    }
    Ok(())
}

fn change(
    client: &Client,
    json: bool,
    snapshot: &str,
    request: &SnapshotChange,
    done: &str,
) -> Result<(), Failure> {
    let (pool, volume, name) = named(snapshot)?;
    let answer = client.send(Operation::SnapshotChange, &[pool, volume, name], request)?;
    match json {
        true => print_json(&answer, true),
        false => print(&format!("snapshot {snapshot} {done}\n")),
    }
}

/// Runs `convect snapshot`.
pub fn snapshot(client: &Client, json: bool, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Create { snapshots } => create(client, json, snapshots),
        Command::List { wait, list: with } => list(client, json, with, *wait),
        Command::Schedule(command) => schedule(client, json, command),
        Command::Rename { snapshot, name } => {
            let request = SnapshotChange {
                name: Some(name.clone()),
                held: None,
            };
            change(
                client,
                json,
                snapshot,
                &request,
                &format!("renamed to {name}"),
            )
        }
        Command::Hold { snapshot } => {
            let request = SnapshotChange {
                name: None,
                held: Some(true),
            };
            change(
                client,
                json,
                snapshot,
                &request,
                "held; it cannot be deleted until released",
            )
        }
        Command::Release { snapshot } => {
            let request = SnapshotChange {
                name: None,
                held: Some(false),
            };
            change(client, json, snapshot, &request, "released")
        }
        Command::Delete {
            snapshots,
            force,
            yes,
        } => delete(client, json, snapshots, (*force, *yes)),
        Command::Clone { snapshot, volume } => {
            let (pool, of, name) = named(snapshot)?;
            let request = SnapshotClone {
                name: volume.clone(),
            };
            let answer = client.send(Operation::SnapshotClone, &[pool, of, name], &request)?;
            if json {
                return print_json(&answer, true);
            }
            let made: Volume = read(&answer)?;
            print(&format!("volume {}/{} created\n", made.pool, made.name))
        }
        Command::Diff { from, to } => diff(client, json, from, to.as_deref()),
        Command::Rollback {
            snapshot,
            force,
            yes,
        } => {
            let (pool, volume, name) = named(snapshot)?;
            let what = format!("writes to {pool}/{volume} since {snapshot} are lost");
            confirm(&what, snapshot, *yes)?;
            let request = VolumeRollBack {
                snapshot: name.to_owned(),
                force: *force,
            };
            let answer = client.send(Operation::VolumeRollBack, &[pool, volume], &request)?;
            match json {
                true => print_json(&answer, true),
                false => print(&format!(
                    "volume {pool}/{volume} rolled back to {snapshot}\n"
                )),
            }
        }
    }
}
