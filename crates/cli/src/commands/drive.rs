//! `convect drive`.

use super::wear;
use crate::arguments::Drive;
use crate::show::{facts, print, print_json, read, table};
use crate::{Client, Failure, drive_spec};
use api::Operation;
use api::v1::{DriveList, DriveProbe, DriveReport};
use units::format_bytes;

fn bears(report: &DriveReport) -> String {
    match (&report.error, &report.pool, &report.found) {
        (Some(error), None, _) => error.clone(),
        (_, Some(pool), _) => format!("in pool {pool}"),
        (None, None, Some(found)) => found.clone(),
        (None, None, None) => "nothing".to_owned(),
    }
}

/// Does what the command says.
pub fn drive(client: &Client, json: bool, command: &Drive) -> Result<(), Failure> {
    let answer = match command {
        Drive::List => client.get(Operation::DriveList, &[])?,
        Drive::Show { spec } => {
            let spec = drive_spec(spec, client.folder().as_deref())?;
            client.send(Operation::DriveProbe, &[], &DriveProbe { spec })?
        }
    };
    if json {
        return print_json(&answer, true);
    }
    match command {
        Drive::List => {
            let list: DriveList = read(&answer)?;
            let rows = list.items.iter().map(|drive| {
                vec![
                    drive.spec.clone(),
                    format_bytes(drive.size),
                    drive.rotation.clone(),
                    bears(drive),
                    drive
                        .wear
                        .map_or_else(String::new, |wear| format_bytes(wear.total)),
                    drive.wear.map_or_else(String::new, |wear| {
                        wear::drive_writes(wear.daily, drive.size)
                    }),
                ]
            });
            let head = [
                "DRIVE",
                ">SIZE",
                "MEDIUM",
                "BEARS",
                ">WRITTEN",
                ">DRIVE WRITES A DAY",
            ];
            print(&table(&head, rows))
        }
        Drive::Show { .. } => {
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
                ("bears", bears(&drive)),
                ("written", written.unwrap_or_default()),
            ]))
        }
    }
}
