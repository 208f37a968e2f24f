//! Pools and vdrives as text.

use super::fill::{full_in, lines, overcommit, share};
use super::{protection, scrub, wear};
use crate::arguments::Vdrive as Command;
use crate::show::{facts, print_json, print_styled, read, table};
use crate::{Client, Failure};
use api::Operation;
use api::v1::{Drive, Layout, Pool, PoolList, SpacePolicy, Tier, Vdrive, VdriveList};
use units::format_bytes;

fn layout(vdrive: &Vdrive) -> String {
    match vdrive.layout {
        Layout::Concat => "concat".to_owned(),
        Layout::Stripe { chunk } => format!("stripe:{}", format_bytes(chunk).replace(' ', "")),
        Layout::Mirror => "mirror".to_owned(),
    }
}

fn tier(vdrive: &Vdrive) -> &'static str {
    match vdrive.tier {
        Tier::Fast => "fast",
        Tier::Slow => "slow",
    }
}

fn drive_state(drive: &Drive) -> String {
    let state = match drive.synced_percent {
        Some(percent) => format!("{} {percent} %", drive.state),
        None => drive.state.clone(),
    };
    match drive.slow {
        true => format!("{state}, slow"),
        false => state,
    }
}

fn rows(vdrive: &Vdrive) -> Vec<Vec<String>> {
    let mut rows = vec![vec![
        vdrive.id.to_string(),
        tier(vdrive).to_owned(),
        layout(vdrive),
        vdrive.state.clone(),
        protection::number(vdrive.protection),
        format_bytes(vdrive.capacity),
        format_bytes(vdrive.used),
        String::new(),
        String::new(),
    ]];
    rows.extend(vdrive.drives.iter().map(|drive| {
        vec![
            String::new(),
            String::new(),
            format!("  {}", drive.spec),
            drive_state(drive),
            String::new(),
            format_bytes(drive.size),
            String::new(),
            drive.errors.to_string(),
            drive.repaired.to_string(),
        ]
    }));
    rows
}

fn vdrive_table(vdrives: &[Vdrive]) -> String {
    let head = [
        ">VDRIVE",
        "TIER",
        "LAYOUT",
        "STATE",
        ">SURVIVES",
        ">SIZE",
        ">USED",
        ">ERRORS",
        ">REPAIRED",
    ];
    table(&head, vdrives.iter().flat_map(rows))
}

/// Full status of a pool.
pub fn status(pool: &Pool) -> String {
    let policy = match pool.policy {
        SpacePolicy::FastFirst => "fast-first",
        SpacePolicy::SlowFirst => "slow-first",
    };
    let held = if pool.promotion_held {
        ", promotion paused"
    } else {
        ""
    };
    let mut told = vec![
        ("pool", pool.name.clone()),
        ("id", pool.id.clone()),
        ("state", protection::state(pool)),
        ("protection", protection::line(pool.protection)),
        ("policy", format!("{policy}{held}")),
        ("shards", pool.shards.to_string()),
        (
            "used",
            format!(
                "{} of {} ({}), {} reserved",
                format_bytes(pool.used),
                format_bytes(pool.capacity),
                share(pool.used, pool.capacity),
                format_bytes(pool.reserved)
            ),
        ),
    ];
    told.extend(lines(pool));
    told.extend([
        (
            "fast tier",
            format!(
                "{}: {} dirty, {} clean copies",
                format_bytes(pool.fast_capacity),
                format_bytes(pool.fast_dirty),
                format_bytes(pool.fast_shadow)
            ),
        ),
        (
            "memory",
            format!(
                "{} cached data (at most {}), {} maps",
                format_bytes(pool.ram_bytes),
                format_bytes(pool.ram_limit),
                format_bytes(pool.map_bytes)
            ),
        ),
        (
            "promotion budget",
            pool.promotion_budget
                .as_ref()
                .map(wear::budget)
                .unwrap_or_default(),
        ),
        ("volumes", pool.volumes.to_string()),
        ("scrub", scrub::line(&pool.scrub)),
    ]);
    let mut text = facts(&told);
    text.push_str(&scrub::faults(&pool.scrub));
    for message in &pool.messages {
        text.push_str(&format!("note: {message}\n"));
    }
    text.push('\n');
    text.push_str(&vdrive_table(&pool.vdrives));
    text.push('\n');
    text.push_str(&wear::drives(&pool.vdrives));
    text
}

/// The list of pools, with the problems of those that are not open.
pub fn list(pools: &PoolList) -> String {
    let rows = pools.items.iter().map(|pool| {
        vec![
            pool.name.clone(),
            pool.state.clone(),
            protection::number(pool.protection),
            format_bytes(pool.capacity),
            format_bytes(pool.used),
            share(pool.used, pool.capacity),
            full_in(pool),
            overcommit(pool),
            format_bytes(pool.fast_capacity),
            pool.volumes.to_string(),
        ]
    });
    let absent = pools.absent.iter().map(|pool| {
        let mut row = vec![pool.name.clone(), "absent".to_owned()];
        row.extend(std::iter::repeat_n("-".to_owned(), 8));
        row
    });
    let head = [
        "POOL",
        "STATE",
        ">SURVIVES",
        ">SIZE",
        ">USED",
        ">",
        ">FULL IN",
        ">OVERCOMMIT",
        ">FAST",
        ">VOLUMES",
    ];
    let mut text = table(&head, rows.chain(absent));
    for pool in &pools.absent {
        text.push_str(&format!("note: {}\n", pool.message));
    }
    for pool in &pools.items {
        if let Some(warning) = protection::warning(&pool.name, &pool.vdrives) {
            text.push_str(&format!("note: {warning}\n"));
        }
        for message in &pool.messages {
            text.push_str(&format!("note: pool {}: {message}\n", pool.name));
        }
    }
    text
}

/// Runs `convect vdrive`.
pub fn vdrive(client: &Client, json: bool, command: &Command) -> Result<(), Failure> {
    let Command::List { pool } = command;
    let answer = client.get(Operation::VdriveList, &[pool])?;
    if json {
        return print_json(&answer, true);
    }
    let list: VdriveList = read(&answer)?;
    let written = wear::drives(&list.items);
    print_styled(&format!("{}\n{written}", vdrive_table(&list.items)))
}
