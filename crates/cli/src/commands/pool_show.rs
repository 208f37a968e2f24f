//! Pools and vdrives as text.

use super::fill::{full_in, lines, overcommit, seconds_to_full, share};
use super::{protection, scrub, wear};
use crate::arguments::Vdrive as Command;
use crate::list_arguments::NamedList;
use crate::show::{facts, print, print_json, print_styled, read};
use crate::table::{Column, Listing, Pattern, Value, table};
use crate::terminal::{fold, width};
use crate::{Client, Failure};
use api::Operation;
use api::v1::{AbsentPool, Drive, Layout, Pool, PoolList, SpacePolicy, Tier, Vdrive, VdriveList};
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
        text += &(fold(&format!("note: {message}"), 0, width()) + "\n");
    }
    text.push('\n');
    text.push_str(&vdrive_table(&pool.vdrives));
    text.push('\n');
    text.push_str(&wear::drives(&pool.vdrives));
    text
}

/// A pool of the list: an open one, or one that should be open.
enum Row<'a> {
    Open(&'a Pool),
    Absent(&'a AbsentPool),
}

impl Row<'_> {
    /// A value of an open pool; `-` for the others.
    fn open(&self, value: impl FnOnce(&Pool) -> Value) -> Value {
        match self {
            Self::Open(pool) => value(pool),
            Self::Absent(_) => Value::nothing("-"),
        }
    }
}

fn columns<'a>() -> Vec<Column<Row<'a>>> {
    vec![
        Column::text("POOL", |row: &Row| match row {
            Row::Open(pool) => Value::text(&pool.name),
            Row::Absent(pool) => Value::text(&pool.name),
        }),
        Column::text("STATE", |row: &Row| match row {
            Row::Open(pool) => Value::text(&pool.state),
            Row::Absent(_) => Value::text("absent"),
        }),
        Column::number("SURVIVES", |row: &Row| {
            row.open(|pool| protection::value(pool.protection))
        }),
        Column::number("SIZE", |row: &Row| {
            row.open(|pool| Value::bytes(pool.capacity))
        }),
        Column::number("USED", |row: &Row| row.open(|pool| Value::bytes(pool.used))),
        Column::number("FILL", |row: &Row| {
            let percent = |pool: &Pool| 100.0 * pool.used as f64 / pool.capacity.max(1) as f64;
            row.open(|pool| Value::percent(percent(pool)))
        }),
        Column::number("FULL IN", |row: &Row| {
            row.open(|pool| match seconds_to_full(pool) {
                Some(seconds) => Value::whole(seconds, full_in(pool)),
                None => Value::nothing(""),
            })
        }),
        Column::number("OVERCOMMIT", |row: &Row| {
            let ratio = |pool: &Pool| pool.promised as f64 / pool.capacity.max(1) as f64;
            row.open(|pool| Value::real(ratio(pool), overcommit(pool)))
        }),
        Column::number("FAST", |row: &Row| {
            row.open(|pool| Value::bytes(pool.fast_capacity))
        }),
        Column::number("VOLUMES", |row: &Row| {
            row.open(|pool| Value::count(pool.volumes))
        }),
        Column::number("DIRTY", |row: &Row| {
            row.open(|pool| Value::bytes(pool.fast_dirty))
        })
        .hidden(),
        Column::text("ID", |row: &Row| match row {
            Row::Open(pool) => Value::text(&pool.id),
            Row::Absent(pool) => Value::text(&pool.id),
        })
        .hidden(),
    ]
}

/// Lists the pools, with the problems of those that are not open.
pub fn list(client: &Client, json: bool, with: &NamedList) -> Result<(), Failure> {
    let listing = Listing::new(columns(), &with.options, &with.names, json)?;
    let answer = client.get(Operation::PoolList, &[])?;
    let Some(pools) = listing.read::<PoolList>(&answer)? else {
        return Ok(());
    };
    let absent = pools.absent.iter().map(Row::Absent);
    let rows: Vec<Row> = pools.items.iter().map(Row::Open).chain(absent).collect();
    listing.print(&answer, &rows)?;
    let mut notes = String::new();
    for pool in &pools.absent {
        notes.push_str(&format!("note: {}\n", pool.message));
    }
    for pool in &pools.items {
        if let Some(warning) = protection::warning(&pool.name, &pool.vdrives) {
            notes.push_str(&format!("note: {warning}\n"));
        }
        for message in &pool.messages {
            notes.push_str(&format!("note: pool {}: {message}\n", pool.name));
        }
    }
    listing.note(&notes)
}

/// Shows the full status of the pools with these names, or of all.
pub fn show(client: &Client, json: bool, names: &[String]) -> Result<(), Failure> {
    if let [name] = names
        && !Pattern::new(name).is_wild()
    {
        let answer = client.get(Operation::PoolShow, &[name])?;
        return match json {
            true => print_json(&answer, true),
            false => print_styled(&status(&read::<Pool>(&answer)?)),
        };
    }
    let every = NamedList {
        names: names.to_vec(),
        ..NamedList::default()
    };
    if json {
        return list(client, json, &every);
    }
    let pools: PoolList = read(&client.get(Operation::PoolList, &[])?)?;
    let listing = Listing::new(columns(), &every.options, &every.names, json)?;
    let open: Vec<Row> = pools.items.iter().map(Row::Open).collect();
    let wanted = listing.wanted(&open)?;
    let texts = wanted.iter().filter_map(|row| match row {
        Row::Open(pool) => Some(status(pool)),
        Row::Absent(_) => None,
    });
    print_styled(&texts.collect::<Vec<_>>().join("\n"))?;
    if !names.is_empty() {
        return Ok(());
    }
    for pool in &pools.absent {
        print(&format!("note: {}\n", pool.message))?;
    }
    match pools.items.is_empty() && pools.absent.is_empty() {
        true => print("no pools: create one with `convect pool create`\n"),
        false => Ok(()),
    }
}

/// A vdrive, or a drive of it.
enum Part<'a> {
    Vdrive(&'a Vdrive),
    Drive(&'a Vdrive, &'a Drive),
}

fn parts<'a>() -> Vec<Column<Part<'a>>> {
    vec![
        Column::number("VDRIVE", |part: &Part| match part {
            Part::Vdrive(vdrive) => Value::count(vdrive.id),
            Part::Drive(vdrive, _) => Value::whole(vdrive.id.into(), ""),
        }),
        Column::text("TIER", |part| match part {
            Part::Vdrive(vdrive) => Value::text(tier(vdrive)),
            Part::Drive(..) => Value::nothing(""),
        }),
        Column::text("LAYOUT", |part| match part {
            Part::Vdrive(vdrive) => Value::text(layout(vdrive)),
            Part::Drive(_, drive) => Value::named(&drive.spec, format!("  {}", drive.spec)),
        }),
        Column::text("STATE", |part| match part {
            Part::Vdrive(vdrive) => Value::text(&vdrive.state),
            Part::Drive(_, drive) => Value::text(drive_state(drive)),
        }),
        Column::number("SURVIVES", |part| match part {
            Part::Vdrive(vdrive) => protection::value(vdrive.protection),
            Part::Drive(..) => Value::nothing(""),
        }),
        Column::number("SIZE", |part| match part {
            Part::Vdrive(vdrive) => Value::bytes(vdrive.capacity),
            Part::Drive(_, drive) => Value::bytes(drive.size),
        }),
        Column::number("USED", |part| match part {
            Part::Vdrive(vdrive) => Value::bytes(vdrive.used),
            Part::Drive(..) => Value::nothing(""),
        }),
        Column::number("ERRORS", |part| match part {
            Part::Vdrive(_) => Value::nothing(""),
            Part::Drive(_, drive) => Value::count(drive.errors),
        }),
        Column::number("REPAIRED", |part| match part {
            Part::Vdrive(_) => Value::nothing(""),
            Part::Drive(_, drive) => Value::count(drive.repaired),
        }),
    ]
}

/// Runs `convect vdrive`.
pub fn vdrive(client: &Client, json: bool, command: &Command) -> Result<(), Failure> {
    let Command::List { pool, options } = command;
    let listing = Listing::new(parts(), options, &[], json)?;
    let answer = client.get(Operation::VdriveList, &[pool])?;
    let Some(list) = listing.read::<VdriveList>(&answer)? else {
        return Ok(());
    };
    let parts = list.items.iter().flat_map(|vdrive| {
        let drives = vdrive.drives.iter();
        std::iter::once(Part::Vdrive(vdrive))
            .chain(drives.map(move |drive| Part::Drive(vdrive, drive)))
    });
    listing.print(&answer, &parts.collect::<Vec<_>>())?;
    match options.is_any() {
        true => Ok(()),
        false => listing.note(&format!("\n{}", wear::drives(&list.items))),
    }
}
