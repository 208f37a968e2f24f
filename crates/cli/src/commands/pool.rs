//! `convect pool`.

use super::job::follow;
use super::volume::limit;
use super::watch::ReportInterval;
use super::{explain, pool_show, protection, scrub, what_if};
use crate::arguments::{Policy, Pool as Command, PoolCreate as CreateArguments, Switch};
use crate::confirm::{confirm, query_of};
use crate::iostat::{LOAD_HEAD, fitting};
use crate::show::{print, print_json, print_styled, read};
use crate::table::table;
use crate::terminal::width;
use crate::{Client, Failure, Load, drive_spec, load_line, search_folders, vdrives};
use api::Operation;
use api::v1::{
    Counters, DriveOffline, DriveOnline, DriveReplace, HoldPromotion, ImportableList, Pool,
    PoolChange, PoolCreate, PoolImport, PoolList, PoolScan, PoolWarnings, SpacePolicy, Vdrive,
    VdriveAdd, VdriveList, VdriveRef,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

fn print_pool(json: bool, answer: &[u8]) -> Result<(), Failure> {
    match json {
        true => print_json(answer, true),
        false => print_styled(&pool_show::status(&read::<Pool>(answer)?)),
    }
}

fn print_done(json: bool, text: String) -> Result<(), Failure> {
    match json {
        true => Ok(()),
        false => print(&format!("{text}\n")),
    }
}

/// Warns about vdrives without redundancy.
fn warn(pool: &str, vdrives: &[Vdrive]) {
    if let Some(warning) = protection::warning(pool, vdrives) {
        eprintln!("warning: {warning}");
    }
}

fn create(client: &Client, json: bool, with: &CreateArguments) -> Result<(), Failure> {
    let request = PoolCreate {
        name: with.name.clone(),
        vdrives: vdrives(&with.vdrives, client.folder().as_deref())?,
        policy: match with.policy {
            Policy::SlowFirst => SpacePolicy::SlowFirst,
            Policy::FastFirst => SpacePolicy::FastFirst,
        },
        shards: with.shards,
        force: with.force,
        accept_unmirrored: with.accept_unmirrored,
    };
    if with.force {
        let what = "all data on the drives of the new pool is lost";
        confirm(what, &with.name, with.yes)?;
    }
    let answer = client.send(Operation::PoolCreate, &[], &request)?;
    let pool: Pool = read(&answer)?;
    warn(&pool.name, &pool.vdrives);
    print_pool(json, &answer)
}

fn import(
    client: &Client,
    json: bool,
    name: Option<&str>,
    (drives, folders): (&[String], &[PathBuf]),
    (degraded, accept_old): (bool, bool),
) -> Result<(), Failure> {
    let folder = client.folder();
    // The first argument after the drives that is not a drive is the name.
    let (name, drives) = match (name, drives) {
        (None, [rest @ .., last])
            if !rest.is_empty() && drive_spec(last, folder.as_deref()).is_err() =>
        {
            (Some(last.as_str()), rest)
        }
        given => given,
    };
    let drives: Result<Vec<String>, Failure> = drives
        .iter()
        .map(|spec| drive_spec(spec, folder.as_deref()))
        .collect();
    let drives = drives?;
    let folders = search_folders(&drives, folders, folder.as_deref())?;
    if let Some(name) = name {
        let request = PoolImport {
            drives,
            folders,
            degraded,
            accept_old,
        };
        return print_pool(
            json,
            &client.send(Operation::PoolImport, &[name], &request)?,
        );
    }
    let answer = client.send(Operation::PoolScan, &[], &PoolScan { drives, folders })?;
    if json {
        return print_json(&answer, true);
    }
    let list: ImportableList = read(&answer)?;
    for why in &list.passed_over {
        eprintln!("note: skipped: {why}");
    }
    let rows = list.items.iter().map(|pool| {
        vec![
            pool.name.clone(),
            pool.id.clone(),
            pool.found.join(" "),
            pool.missing.join(" "),
        ]
    });
    print(&table(&["POOL", "ID", "DRIVES", "MISSING"], rows))
}

fn add(
    client: &Client,
    json: bool,
    name: &str,
    words: &[String],
    force: bool,
) -> Result<(), Failure> {
    let mut specs = vdrives(words, client.folder().as_deref())?;
    let (Some(spec), true) = (specs.pop(), specs.is_empty()) else {
        return Err(Failure::Usage(
            "vdrives are added one at a time: write fast or slow once".to_owned(),
        ));
    };
    let request = VdriveAdd {
        tier: spec.tier,
        layout: spec.layout,
        drives: spec.drives,
        force,
    };
    let answer = client.send(Operation::VdriveAdd, &[name], &request)?;
    if json {
        return print_json(&answer, true);
    }
    let added: VdriveRef = read(&answer)?;
    // The vdrive exists whether or not this succeeds.
    if let Ok(known) = client.get(Operation::VdriveList, &[name]) {
        let mut vdrives = read::<VdriveList>(&known)?.items;
        vdrives.retain(|vdrive| vdrive.id == added.vdrive);
        warn(name, &vdrives);
    }
    print(&format!("vdrive {} added to pool {name}\n", added.vdrive))
}

/// Resolves a drive to its name in the daemon, by its id or specification.
fn resolve_drive(client: &Client, text: &str) -> Result<String, Failure> {
    let is_id = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_id {
        true => Ok(text.to_owned()),
        false => drive_spec(text, client.folder().as_deref()),
    }
}

fn names(client: &Client, name: Option<&str>) -> Result<Vec<String>, Failure> {
    if let Some(name) = name {
        return Ok(vec![name.to_owned()]);
    }
    let list: PoolList = read(&client.get(Operation::PoolList, &[])?)?;
    Ok(list.items.into_iter().map(|pool| pool.name).collect())
}

/// Counters since the pool was opened.
fn totals(pool: &str, counters: &Counters) -> Vec<String> {
    let load = Load::between(&Counters::default(), counters, 1.0);
    vec![
        pool.to_owned(),
        counters.reads.to_string(),
        counters.writes.to_string(),
        units::format_bytes(counters.read_bytes),
        units::format_bytes(counters.write_bytes),
        format!("{:.3}", load.read_ms),
        format!("{:.3}", load.write_ms),
        format!("{:.1}", load.shares[0]),
        format!("{:.1}", load.shares[1]),
        format!("{:.1}", load.shares[2]),
    ]
}

fn iostat_once(client: &Client, json: bool, name: Option<&str>) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for pool in names(client, name)? {
        let answer = client.get(Operation::PoolCounters, &[&pool])?;
        if json {
            print_json(&answer, name.is_some())?;
        } else {
            rows.push(totals(&pool, &read(&answer)?));
        }
    }
    if json {
        return Ok(());
    }
    let head = [
        "POOL",
        ">READS",
        ">WRITES",
        ">READ",
        ">WRITTEN",
        ">READ MS",
        ">WRITE MS",
        ">RAM%",
        ">FAST%",
        ">SLOW%",
    ];
    print(&table(&head, rows))
}

fn iostat_watch(
    client: &Client,
    json: bool,
    name: Option<&str>,
    pace: &ReportInterval,
    count: Option<u64>,
) -> Result<(), Failure> {
    let mut before: BTreeMap<String, (Counters, Instant)> = BTreeMap::new();
    if !json {
        print(&format!("{}\n", fitting(LOAD_HEAD, width())))?;
    }
    let mut periods = 0;
    loop {
        for pool in names(client, name)? {
            let answer = client.get(Operation::PoolCounters, &[&pool])?;
            if json {
                print_json(&answer, false)?;
                continue;
            }
            let (now, at) = (read::<Counters>(&answer)?, Instant::now());
            if let Some((then, since)) = before.insert(pool.clone(), (now, at)) {
                let load = Load::between(&then, &now, (at - since).as_secs_f64());
                let line = fitting(&load_line(&pool, &load), width());
                print(&format!("{line}\n"))?;
            }
        }
        if count.is_some_and(|count| periods >= count) || !pace.next() {
            return Ok(());
        }
        periods += 1;
    }
}

/// Runs `convect pool`.
pub fn pool(client: &Client, json: bool, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Create(with) => create(client, json, with),
        Command::List(with) => pool_show::list(client, json, with),
        Command::Moves(with) => explain::moves(client, json, with),
        Command::WhatIf { name } => what_if::what_if(client, json, name),
        Command::Status { names } => pool_show::show(client, json, names),
        Command::Export { name, force } => {
            client.call(Operation::PoolExport, &[name], query_of(*force), None)?;
            print_done(json, format!("pool {name} closed"))
        }
        Command::Import {
            name,
            drives,
            folders,
            degraded,
            accept_old,
        } => {
            let anyway = (*degraded, *accept_old);
            import(client, json, name.as_deref(), (drives, folders), anyway)
        }
        Command::Destroy { name, force, yes } => {
            confirm(
                &format!("pool {name} and all data in it are lost"),
                name,
                *yes,
            )?;
            client.call(Operation::PoolDestroy, &[name], query_of(*force), None)?;
            print_done(json, format!("pool {name} destroyed"))
        }
        Command::Add {
            name,
            vdrive,
            force,
        } => add(client, json, name, vdrive, *force),
        Command::Remove {
            name,
            vdrive,
            yes,
            background,
        } => {
            let what = format!("vdrive {vdrive} is evacuated and removed from pool {name}");
            confirm(&what, name, *yes)?;
            let answer = client.get(Operation::VdriveRemove, &[name, &vdrive.to_string()])?;
            let done = format!("vdrive {vdrive} removed from pool {name}");
            follow(client, json, *background, &answer, &done)
        }
        Command::Online {
            name,
            drive,
            force,
            yes,
            background,
        } => {
            if *force {
                confirm(&format!("all data on {drive} is lost"), name, *yes)?;
            }
            let request = DriveOnline {
                drive: resolve_drive(client, drive)?,
                force: *force,
            };
            let answer = client.send(Operation::DriveOnline, &[name], &request)?;
            let done = format!("{drive} resynced");
            follow(client, json, *background, &answer, &done)
        }
        Command::Offline { name, drive } => {
            let request = DriveOffline {
                drive: resolve_drive(client, drive)?,
            };
            client.send(Operation::DriveOffline, &[name], &request)?;
            print_done(json, format!("{drive} is offline"))
        }
        Command::Replace {
            name,
            old,
            new,
            force,
            yes,
            background,
        } => {
            if *force {
                confirm(&format!("all data on {new} is lost"), name, *yes)?;
            }
            let request = DriveReplace {
                old: resolve_drive(client, old)?,
                new: resolve_drive(client, new)?,
                force: *force,
            };
            let answer = client.send(Operation::DriveReplace, &[name], &request)?;
            let done = format!("{old} replaced by {new}");
            follow(client, json, *background, &answer, &done)
        }
        Command::Iostat { name, watch, count } => match watch {
            Some(_) => iostat_watch(
                client,
                json,
                name.as_deref(),
                &ReportInterval::new(*watch)?,
                *count,
            ),
            None => iostat_once(client, json, name.as_deref()),
        },
        Command::Scrub {
            name,
            rate,
            wait,
            cancel,
        } => match cancel {
            true => scrub::cancel(client, json, name),
            false => scrub::start(client, json, name, rate.as_deref(), *wait),
        },
        Command::Set(with) => {
            let budget = with.promotion_budget.as_deref().map(limit);
            let request = PoolChange {
                promotion_budget: budget.transpose()?,
            };
            print_pool(
                json,
                &client.send(Operation::PoolChange, &[&with.name], &request)?,
            )
        }
        Command::Warn { name, at, .. } => {
            let request = PoolWarnings { at: at.clone() };
            print_pool(
                json,
                &client.send(Operation::PoolWarnAt, &[name], &request)?,
            )
        }
        Command::HoldPromotion { name, state } => {
            let hold = *state == Switch::On;
            let request = HoldPromotion { hold };
            client.send(Operation::PoolHoldPromotion, &[name], &request)?;
            let now = if hold { "paused" } else { "resumed" };
            print_done(json, format!("promotion of pool {name}: {now}"))
        }
        Command::Cool { name } => {
            client.get(Operation::PoolCool, &[name])?;
            print_done(
                json,
                format!("fast-tier cache of pool {name} flushed and dropped"),
            )
        }
    }
}
