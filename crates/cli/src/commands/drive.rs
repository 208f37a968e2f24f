//! `convect drive`.

use super::wear;
use crate::drive_arguments::Drive;
use crate::show::{facts, print, print_json, read};
use crate::table::{Column, Listing, Value};
use crate::{Client, Failure, drive_spec};
use api::Operation;
use api::v1::{DriveHealth, DriveList, DriveLocate, DriveProbe, DriveReport, HealthState};
use units::format_bytes;

fn content(report: &DriveReport) -> String {
    match (&report.error, &report.pool, &report.found) {
        (Some(error), None, _) => error.clone(),
        (_, Some(pool), _) => format!("in pool {pool}"),
        (None, None, Some(found)) => found.clone(),
        (None, None, None) => "nothing".to_owned(),
    }
}

/// Switches the locate LED of a drive.
fn switch(client: &Client, json: bool, spec: &str, on: bool) -> Result<(), Failure> {
    let drive = drive_spec(spec, client.folder().as_deref())?;
    let word = if on { "on" } else { "off" };
    let done = format!("locate LED of {drive}: {word}\n");
    client.send(Operation::DriveLocate, &[], &DriveLocate { drive, on })?;
    match json {
        true => Ok(()),
        false => print(&done),
    }
}

/// A drive's health in short.
fn health(health: &DriveHealth) -> String {
    let state = match health.state {
        HealthState::Good => "good",
        HealthState::Failing => "failing",
        HealthState::Unknown => "unknown",
    };
    let asleep = if health.asleep { " (asleep)" } else { "" };
    match health.why.as_str() {
        "" => format!("{state}{asleep}"),
        why => format!("{state}{asleep}: {why}"),
    }
}

/// SMART attributes of a drive in numbers.
fn smart_values(health: &DriveHealth) -> String {
    let number = |value: Option<u64>, before: &str, after: &str| {
        value.map(|value| format!("{before}{value}{after}"))
    };
    let name = [&health.model, &health.serial]
        .map(String::as_str)
        .join(" ");
    let all = [
        Some(name.trim().to_owned()).filter(|name| !name.is_empty()),
        number(health.used_percent, "", " % endurance used"),
        number(health.spare_percent, "", " % spare blocks left"),
        number(health.temperature_c, "", " \u{b0}C"),
        number(health.power_on_hours, "", " power-on hours"),
        number(health.reallocated, "", " reallocated sectors"),
        number(health.pending, "", " pending sectors"),
        number(health.media_errors, "", " media errors"),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn columns() -> Vec<Column<DriveReport>> {
    vec![
        Column::text("DRIVE", |drive: &DriveReport| Value::text(&drive.spec)),
        Column::number("SIZE", |drive: &DriveReport| Value::bytes(drive.size)),
        Column::text("MEDIUM", |drive: &DriveReport| Value::text(&drive.rotation)),
        Column::text("CONTENT", |drive: &DriveReport| Value::text(content(drive))),
        Column::number("WRITTEN", |drive: &DriveReport| {
            Value::or(drive.wear.map(|wear| Value::bytes(wear.total)), "")
        }),
        Column::number("DWPD", |drive: &DriveReport| {
            let Some(wear) = drive.wear else {
                return Value::nothing("");
            };
            let shown = wear::drive_writes(wear.daily, drive.size);
            match wear.daily {
                Some(daily) if drive.size > 0 => {
                    Value::real(daily as f64 / drive.size as f64, shown)
                }
                _ => Value::nothing(&shown),
            }
        }),
        Column::text("POOL", |drive: &DriveReport| {
            Value::or(drive.pool.as_ref().map(Value::text), "")
        })
        .hidden(),
    ]
}

/// Runs `convect drive`.
pub fn drive(client: &Client, json: bool, command: &Drive) -> Result<(), Failure> {
    let answer = match command {
        Drive::List(list) => {
            let listing = Listing::new(columns(), &list.options, &list.names, json)?;
            let answer = client.get(Operation::DriveList, &[])?;
            let Some(list) = listing.read::<DriveList>(&answer)? else {
                return Ok(());
            };
            return listing.print(&answer, &list.items);
        }
        Drive::Show { spec } => {
            let spec = drive_spec(spec, client.folder().as_deref())?;
            client.send(Operation::DriveProbe, &[], &DriveProbe { spec })?
        }
        Drive::Locate { spec, off } => return switch(client, json, spec, !off),
    };
    if json {
        return print_json(&answer, true);
    }
    let drive: DriveReport = read(&answer)?;
    let written = drive.wear.map(|wear| wear::line(&wear, drive.size));
    print(&facts(&[
        ("drive", drive.spec.clone()),
        ("size", format_bytes(drive.size)),
        ("logical sector", format!("{} B", drive.logical_sector)),
        ("physical sector", format!("{} B", drive.physical_sector)),
        ("medium", drive.rotation.clone()),
        (
            "write cache",
            if drive.write_cache { "yes" } else { "no" }.to_owned(),
        ),
        ("content", content(&drive)),
        ("written", written.unwrap_or_default()),
        (
            "health",
            drive.health.as_ref().map(health).unwrap_or_default(),
        ),
        (
            "SMART values",
            drive.health.as_ref().map(smart_values).unwrap_or_default(),
        ),
    ]))
}
