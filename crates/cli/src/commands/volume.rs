//! `convect volume` and `convect map`.

use super::job::follow;
use super::watch::{ReportInterval, clear};
use super::{expected, placement, protection, qos};
use crate::arguments::Volume as Command;
use crate::confirm::{confirm, query_of};
use crate::list_arguments::NamedList;
use crate::map_arguments::Map;
use crate::show::{facts, print, print_json, print_styled, read};
use crate::table::{Column, Listing, Value};
use crate::{Client, Failure, Paint, cells_then, colour, legend, object, strip};
use api::Operation;
use api::v1::{
    MapFrames, Problem, Promotion, Volume, VolumeChange, VolumeCreate, VolumeList, VolumeMap,
    VolumeResize,
};
use daemon::Span;
use std::time::{SystemTime, UNIX_EPOCH};
use units::format_bytes;

fn size(text: &str) -> Result<u64, Failure> {
    units::parse_bytes(text).map_err(|error| Failure::Usage(error.to_string()))
}

/// Parses a size, or `none`, which the API represents by 0.
pub(super) fn limit(text: &str) -> Result<u64, Failure> {
    match text {
        "none" => Ok(0),
        text => match size(text)? {
            0 => Err(Failure::Usage(
                "'0' is not a limit: write a size, or none to remove the limit".to_owned(),
            )),
            bytes => Ok(bytes),
        },
    }
}

/// Prints a volume, and notes where values were rounded.
fn print_change(json: bool, answer: &[u8], asked: &VolumeChange) -> Result<(), Failure> {
    print_volume(json, answer)?;
    let volume: Volume = read(answer)?;
    let limits = [
        ("quota", asked.quota, volume.quota),
        ("reservation", asked.reservation, volume.reservation),
    ];
    for (what, asked, has) in limits {
        match (asked, has) {
            (Some(asked), Some(has)) if asked != has && !json => print(&format!(
                "note: {what} rounded up to a multiple of 4 KiB: {has} bytes\n"
            ))?,
            _ => {}
        }
    }
    Ok(())
}

/// Quota and reservation as a change.
fn limits(quota: Option<&str>, reservation: Option<&str>) -> Result<VolumeChange, Failure> {
    Ok(VolumeChange {
        quota: quota.map(limit).transpose()?,
        reservation: reservation.map(limit).transpose()?,
        ..VolumeChange::default()
    })
}

fn show(volume: &Volume) -> String {
    let mapped = 100.0 * volume.mapped as f64 / volume.size.max(1) as f64;
    let receiving = volume.receiving.as_ref().map(|receiving| {
        format!(
            "snapshot {}, {} received; see `convect receive --status`",
            receiving.snapshot,
            format_bytes(receiving.done)
        )
    });
    let receiving = receiving.unwrap_or_default();
    let held = match volume.held == volume.mapped {
        true => String::new(),
        false => format!("{} with its snapshots", format_bytes(volume.held)),
    };
    let quota = volume.quota.map(|quota| {
        let part = 100.0 * volume.held as f64 / quota.max(1) as f64;
        format!("{} ({part:.1} % used)", format_bytes(quota))
    });
    let reservation = volume.reservation.map(|bytes| {
        format!(
            "{} ({} unused)",
            format_bytes(bytes),
            format_bytes(volume.reserved)
        )
    });
    let on_fast = match volume.fast {
        0 => String::new(),
        bytes => format_bytes(bytes),
    };
    let mut shown = vec![
        ("volume", format!("{}/{}", volume.pool, volume.name)),
        ("size", format_bytes(volume.size)),
        (
            "written",
            format!("{} ({mapped:.1} %)", format_bytes(volume.mapped)),
        ),
        (
            "space",
            if volume.thick { "thick" } else { "thin" }.to_owned(),
        ),
        ("stored", held),
        ("quota", quota.unwrap_or_default()),
        ("reserved", reservation.unwrap_or_default()),
        ("fast tier", on_fast),
        ("LBA", format!("{} B", volume.lba_size)),
        ("serial", volume.serial.clone()),
        ("state", volume.state.clone()),
        ("protection", protection::line(volume.protection)),
        ("exports", volume.exports.join(", ")),
        ("receive", receiving),
    ];
    shown.push(("policy", qos::show(volume.qos.as_ref())));
    let slowed = volume.qos.as_ref().map(qos::slowed);
    shown.push(("bottleneck", slowed.unwrap_or_default()));
    shown.push(("targets", expected::show(volume.targets.as_ref())));
    shown.extend(placement::show(volume.placement.as_ref()));
    facts(&shown)
}

fn columns() -> Vec<Column<Volume>> {
    vec![
        Column::text("VOLUME", |volume: &Volume| {
            Value::text(format!("{}/{}", volume.pool, volume.name))
        }),
        Column::number("SIZE", |volume: &Volume| Value::bytes(volume.size)),
        Column::number("WRITTEN", |volume: &Volume| Value::bytes(volume.mapped)),
        Column::text("SPACE", |volume: &Volume| {
            Value::text(if volume.thick { "thick" } else { "thin" })
        }),
        Column::number("LBA", |volume: &Volume| Value::count(volume.lba_size)),
        Column::text("STATE", |volume: &Volume| Value::text(&volume.state)),
        Column::text("EXPORTS", |volume: &Volume| {
            Value::text(volume.exports.join(", "))
        }),
        Column::text("POOL", |volume: &Volume| Value::text(&volume.pool)).hidden(),
        Column::number("STORED", |volume: &Volume| Value::bytes(volume.held)).hidden(),
        Column::number("FAST", |volume: &Volume| Value::bytes(volume.fast)).hidden(),
        Column::number("QUOTA", |volume: &Volume| {
            Value::or(volume.quota.map(Value::bytes), "-")
        })
        .hidden(),
        Column::number("RESERVATION", |volume: &Volume| {
            Value::or(volume.reservation.map(Value::bytes), "-")
        })
        .hidden(),
        Column::text("POLICY", |volume: &Volume| {
            let policy = volume.qos.as_ref().map(|qos| &qos.policy.name);
            Value::or(policy.map(Value::text), "-")
        })
        .hidden(),
        Column::text("SERIAL", |volume: &Volume| Value::text(&volume.serial)).hidden(),
    ]
}

fn print_volume(json: bool, answer: &[u8]) -> Result<(), Failure> {
    match json {
        true => print_json(answer, true),
        false => print(&show(&read(answer)?)),
    }
}

fn list(client: &Client, json: bool, list: &NamedList) -> Result<(), Failure> {
    // One pool is selected by the daemon, which reports an unknown name.
    let (pool, names) = match list.names.as_slice() {
        [pool] if !pool.contains(['*', '?', '/']) => (Some(("pool", pool.as_str())), &[][..]),
        names => (None, names),
    };
    let listing = Listing::new(columns(), &list.options, names, json)?;
    let answer = client.call(Operation::VolumeList, &[], pool.as_slice(), None)?;
    let Some(list) = listing.read::<VolumeList>(&answer)? else {
        return Ok(());
    };
    listing.print(&answer, &list.items)
}

/// Runs `convect volume`.
pub fn volume(client: &Client, json: bool, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Create {
            volume,
            size: bytes,
            thick,
            quota,
            reservation,
            lba,
            policy,
        } => {
            let (pool, name) = object(volume)?;
            let limits = limits(quota.as_deref(), reservation.as_deref())?;
            let request = VolumeCreate {
                pool: pool.to_owned(),
                name: name.to_owned(),
                size: size(bytes)?,
                lba_size: *lba,
                thick: *thick,
                quota: limits.quota,
                reservation: limits.reservation,
                policy: policy.policy.clone(),
                group: policy.group.clone(),
                overcommit: policy.overcommit,
            };
            let answer = client.send(Operation::VolumeCreate, &[], &request)?;
            print_change(json, &answer, &limits)
        }
        Command::List(with) => list(client, json, with),
        Command::Show { volume } => {
            let (pool, name) = object(volume)?;
            print_volume(json, &client.get(Operation::VolumeShow, &[pool, name])?)
        }
        Command::Resize {
            volume,
            size: bytes,
            shrink,
            force,
            yes,
        } => {
            let (pool, name) = object(volume)?;
            if *shrink {
                let what = format!("data of volume {volume} beyond {bytes} is lost");
                confirm(&what, volume, *yes)?;
            }
            let request = VolumeResize {
                size: size(bytes)?,
                shrink: *shrink,
                force: *force,
            };
            print_volume(
                json,
                &client.send(Operation::VolumeResize, &[pool, name], &request)?,
            )
        }
        Command::Set {
            volume,
            quota,
            reservation,
            placement,
            targets,
            policy,
        } => {
            let (pool, name) = object(volume)?;
            let limits = limits(quota.as_deref(), reservation.as_deref())?;
            let change = VolumeChange {
                policy: policy.policy.clone(),
                group: policy.group.clone(),
                overcommit: policy.overcommit,
                ..expected::ask(targets, placement::ask(placement, limits)?)?
            };
            let answer = client.send(Operation::VolumeChange, &[pool, name], &change)?;
            print_change(json, &answer, &change)
        }
        Command::Promote { volume } => {
            let (pool, name) = object(volume)?;
            let answer = client.get(Operation::VolumePromote, &[pool, name])?;
            if json {
                return print_json(&answer, true);
            }
            let done: Promotion = read(&answer)?;
            print(&format!(
                "volume {volume} promoted: it now has the snapshots {} of {pool}/{}\n",
                done.snapshots.join(", "),
                done.parent
            ))
        }
        Command::Delete {
            volume,
            force,
            yes,
            background,
        } => {
            let (pool, name) = object(volume)?;
            let what = format!("volume {volume} and all data in it are lost");
            confirm(&what, volume, *yes)?;
            let force = query_of(*force);
            let answer = client.call(Operation::VolumeDelete, &[pool, name], force, None)?;
            let done = format!("volume {volume} deleted");
            follow(client, json, *background, &answer, &done)
        }
    }
}

/// Colours on a capable terminal, letters elsewhere.
fn paint() -> Paint {
    match colour::is_enabled() {
        true => Paint::Colour,
        false => Paint::Letters,
    }
}

/// Prints the map of a volume as it was `ago`.
fn map_as_it_was(client: &Client, json: bool, volume: &str, ago: &str) -> Result<(), Failure> {
    let (pool, name) = object(volume)?;
    let ago = Span::parse(ago).map_err(Failure::Usage)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let at_s = now.unwrap_or_default().saturating_sub(ago.0).as_secs();
    let at = at_s.to_string();
    let query = [("from", at.as_str()), ("to", at.as_str())];
    let answer = client.call(Operation::VolumeMapFrames, &[pool, name], &query, None)?;
    if json {
        return print_json(&answer, true);
    }
    let told: MapFrames = read(&answer)?;
    let Some(cells) = cells_then(&told) else {
        return Err(Failure::Refused(Problem::not_found(format!(
            "no map of {volume} at that time: the daemon keeps the last hour, since its start"
        ))));
    };
    let how = paint();
    print_styled(&(strip(told.size, &cells, how) + &legend(&cells, how)))
}

/// Runs `convect map`.
pub fn map(client: &Client, json: bool, command: &Map) -> Result<(), Failure> {
    let (pool, name) = object(&command.volume)?;
    if let Some(ago) = &command.ago {
        return map_as_it_was(client, json, &command.volume, ago);
    }
    let cells = command.cells.to_string();
    let pace = ReportInterval::new(command.watch)?;
    loop {
        let query = [("cells", cells.as_str())];
        let answer = client.call(Operation::VolumeMap, &[pool, name], &query, None)?;
        if json {
            print_json(&answer, command.watch.is_none())?;
        } else {
            let map: VolumeMap = read(&answer)?;
            let how = paint();
            let text = strip(map.size, &map.cells, how) + &legend(&map.cells, how);
            clear(&pace)?;
            print_styled(&text)?;
        }
        if !pace.next() {
            return Ok(());
        }
    }
}
