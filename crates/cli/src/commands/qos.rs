//! `convect qos`, and quality of service in `convect volume`.

mod groups;

use super::expected::{iops, latency};
use super::placement;
use super::volume::limit;
use crate::qos_arguments::{Figures, Qos as Command, QosPolicy as PolicyCommand};
use crate::show::{facts, print, print_json, read};
use crate::table::{Column, Listing, Value, table};
use crate::{Client, Failure, object};
use api::Operation;
use api::v1::{
    QosBottleneck, QosCheck, QosClaim, QosPolicy, QosPolicyChange, QosPolicyCreate, QosPolicyList,
    QosStatus, QosTier, Tier, VolumeQos,
};
use units::format_bytes;

/// Default level of a policy.
const LEVEL: u8 = 3;

fn change(figures: &Figures, overcommit: bool) -> Result<QosPolicyChange, Failure> {
    let count = |text: &Option<String>| text.as_deref().map(iops).transpose();
    let bytes = |text: &Option<String>| text.as_deref().map(limit).transpose();
    Ok(QosPolicyChange {
        level: figures.level,
        min_iops: count(&figures.min_iops)?,
        min_bandwidth: bytes(&figures.min_bandwidth)?,
        max_iops: count(&figures.max_iops)?,
        max_bandwidth: bytes(&figures.max_bandwidth)?,
        burst_s: figures.burst,
        max_latency_ns: figures.max_latency.as_deref().map(latency).transpose()?,
        weight: figures.weight,
        reaction: figures.reaction.map(placement::reaction),
        fast_floor: bytes(&figures.fast_floor)?,
        ram_percent: figures.ram_share.as_deref().map(ram_share).transpose()?,
        overcommit,
    })
}

fn ram_share(text: &str) -> Result<u8, Failure> {
    if text == "none" {
        return Ok(0);
    }
    let digits = text.trim_end_matches('%').trim_end();
    digits.parse().map_err(|_| {
        Failure::Usage(format!(
            "'{text}' is not a share of the RAM cache: give a whole number of percent, like 20, or none"
        ))
    })
}

fn some<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn bandwidth(bytes: Option<u64>) -> String {
    some(bytes.map(|bytes| format!("{}/s", format_bytes(bytes))))
}

fn milliseconds(ns: Option<u64>) -> String {
    some(ns.map(|ns| format!("{} ms", ns as f64 / 1e6)))
}

fn percent(value: Option<f64>) -> String {
    some(value.map(|value| format!("{value:.1} %")))
}

fn columns() -> Vec<Column<QosPolicy>> {
    vec![
        Column::number("ID", |policy: &QosPolicy| Value::count(policy.id)),
        Column::text("POLICY", |policy: &QosPolicy| Value::text(&policy.name)).key(),
        Column::number("LEVEL", |policy: &QosPolicy| Value::count(policy.level)),
        Column::number("MIN IOPS", |policy: &QosPolicy| {
            Value::or(policy.min_iops.map(Value::count), "-")
        }),
        Column::number("MIN BANDWIDTH", |policy: &QosPolicy| {
            Value::or(policy.min_bandwidth.map(Value::rate), "-")
        }),
        Column::number("MAX LATENCY", |policy: &QosPolicy| {
            let shown = milliseconds(policy.max_latency_ns);
            Value::or(policy.max_latency_ns.map(|ns| Value::whole(ns, shown)), "-")
        }),
        Column::number("MAX IOPS", |policy: &QosPolicy| {
            Value::or(policy.max_iops.map(Value::count), "-")
        }),
        Column::number("MAX BANDWIDTH", |policy: &QosPolicy| {
            Value::or(policy.max_bandwidth.map(Value::rate), "-")
        }),
        Column::number("WEIGHT", |policy: &QosPolicy| Value::count(policy.weight)),
    ]
}

fn show_policy(policy: &QosPolicy) -> String {
    let shown = |text: String| if text == "-" { String::new() } else { text };
    let origin = if policy.built_in { "built in" } else { "" };
    let ram = policy.ram_percent.map(|percent| format!("{percent} %"));
    let burst = policy.burst_s.map(|seconds| format!("{seconds} s"));
    facts(&[
        ("policy", format!("{} (number {})", policy.name, policy.id)),
        ("origin", origin.to_owned()),
        ("level", policy.level.to_string()),
        ("min IOPS", shown(some(policy.min_iops))),
        ("min bandwidth", shown(bandwidth(policy.min_bandwidth))),
        ("max latency", shown(milliseconds(policy.max_latency_ns))),
        ("max IOPS", shown(some(policy.max_iops))),
        ("max bandwidth", shown(bandwidth(policy.max_bandwidth))),
        ("burst", burst.unwrap_or_default()),
        ("weight", policy.weight.to_string()),
        (
            "reaction",
            placement::reaction_name(policy.reaction).to_owned(),
        ),
        (
            "fast floor",
            policy.fast_floor.map_or_else(String::new, format_bytes),
        ),
        ("RAM share", ram.unwrap_or_default()),
    ])
}

fn shown(json: bool, answer: &[u8]) -> Result<(), Failure> {
    match json {
        true => print_json(answer, true),
        false => print(&show_policy(&read(answer)?)),
    }
}

/// Share of time in which a volume met its minimums while it had demand; empty without minimums.
fn met(qos: &VolumeQos) -> String {
    let part = |windows: u64| format!("{:.1} %", 100.0 * qos.met as f64 / windows as f64);
    some(Some(qos.windows).filter(|windows| *windows > 0).map(part))
}

/// Share of the time with demand in which the minimums were met, in a list.
fn met_value(qos: &VolumeQos) -> Value {
    match qos.windows {
        0 => Value::nothing("-"),
        windows => Value::percent(100.0 * qos.met as f64 / windows as f64),
    }
}

/// A volume's policy in one line, for `volume show`.
pub fn show(qos: Option<&VolumeQos>) -> String {
    let Some(qos) = qos else {
        return String::new();
    };
    let policy = &qos.policy;
    let promise = match qos.windows {
        0 => String::new(),
        _ => format!(", met {} of the time with demand", met(qos)),
    };
    let group = match &qos.group {
        Some(group) => format!(", shared by group {group}"),
        None => String::new(),
    };
    format!("{} (level {}){group}{promise}", policy.name, policy.level)
}

/// Minimums of a volume or group, and what it attained.
fn row(name: String, qos: &VolumeQos) -> Vec<String> {
    vec![
        name,
        qos.policy.name.clone(),
        qos.policy.level.to_string(),
        some(qos.policy.min_iops),
        qos.iops.to_string(),
        format!("{}/s", format_bytes(qos.bandwidth)),
        qos.held.to_string(),
        qos.late.to_string(),
        met(qos),
        some(Some(slowed(qos)).filter(|slowed| !slowed.is_empty())),
    ]
}

fn claim_row(claim: &QosClaim) -> Vec<String> {
    vec![
        match claim.group {
            true => format!("group {}", claim.volume),
            false => claim.volume.clone(),
        },
        claim.policy.name.clone(),
        claim.policy.level.to_string(),
        some(claim.policy.min_iops),
        bandwidth(claim.policy.min_bandwidth),
        claim
            .policy
            .fast_floor
            .map_or_else(String::new, format_bytes),
        percent(claim.share_percent),
    ]
}

fn verdict(check: &QosCheck) -> String {
    let word = match check.verdict {
        api::v1::QosVerdict::Accepted => "accepted",
        api::v1::QosVerdict::Warning => "warning",
        api::v1::QosVerdict::Refused => "refused unless --overcommit",
    };
    let note = check.needs_fast.as_ref();
    let note = note.map_or_else(String::new, |why| format!("note: {why}\n"));
    format!("{word}: {}\n{note}", check.message)
}

fn tier_row(tier: &QosTier) -> Vec<String> {
    let name = match tier.tier {
        Tier::Fast => "fast",
        Tier::Slow => "slow",
    };
    vec![
        name.to_owned(),
        tier.drives.to_string(),
        tier.iops.to_string(),
        format!("{}/s", format_bytes(tier.bandwidth)),
        some(tier.read_ns.map(|ns| format!("{:.3} ms", ns as f64 / 1e6))),
    ]
}

/// Measured capability of the tiers.
fn tiers(check: &QosCheck) -> String {
    let head = [
        "TIER",
        ">DRIVES",
        ">PEAK IOPS",
        ">PEAK BANDWIDTH",
        ">READ LATENCY",
    ];
    table(&head, check.tiers.iter().map(tier_row))
}

/// Guaranteed space of the fast tier.
fn fast_space(check: &QosCheck) -> String {
    match (check.fast_guaranteed, check.fast_limit) {
        (0, _) => String::new(),
        (guaranteed, limit) => format!(
            "fast tier: {} guaranteed by policies, pins and floors, of at most {}\n",
            format_bytes(guaranteed),
            format_bytes(limit)
        ),
    }
}

/// The bottleneck where requests spent most of their time, with the volumes served meanwhile if
/// that was the gate; also for `volume show`.
pub fn slowed(qos: &VolumeQos) -> String {
    let rivals = qos.held_for.iter().map(|rival| {
        let kind = if rival.group { "group " } else { "" };
        format!("{kind}{} {} %", rival.name, rival.share_percent)
    });
    let rivals: Vec<String> = rivals.collect();
    match qos.bottleneck {
        None => String::new(),
        Some(QosBottleneck::OwnMaximum) => "own maximum".to_owned(),
        Some(QosBottleneck::ShardTime) if rivals.is_empty() => "shard time".to_owned(),
        Some(QosBottleneck::ShardTime) => format!("shard time: {}", rivals.join(", ")),
        Some(QosBottleneck::FastTier) => "fast tier".to_owned(),
        Some(QosBottleneck::SlowTier) => "slow tier".to_owned(),
        Some(QosBottleneck::Room) => "fast-tier space".to_owned(),
    }
}

fn policy(client: &Client, json: bool, command: &PolicyCommand) -> Result<(), Failure> {
    match command {
        PolicyCommand::List { pool, options } => {
            let listing = Listing::new(columns(), options, &[], json)?;
            let answer = client.get(Operation::QosPolicyList, &[pool])?;
            let Some(list) = listing.read::<QosPolicyList>(&answer)? else {
                return Ok(());
            };
            listing.print(&answer, &list.items)
        }
        PolicyCommand::Show { policy } => {
            let (pool, name) = object(policy)?;
            shown(json, &client.get(Operation::QosPolicyShow, &[pool, name])?)
        }
        PolicyCommand::Create { policy, figures } => {
            let (pool, name) = object(policy)?;
            let asked = change(figures, false)?;
            let request = QosPolicyCreate {
                name: name.to_owned(),
                level: asked.level.unwrap_or(LEVEL),
                min_iops: asked.min_iops,
                min_bandwidth: asked.min_bandwidth,
                max_iops: asked.max_iops,
                max_bandwidth: asked.max_bandwidth,
                burst_s: asked.burst_s,
                max_latency_ns: asked.max_latency_ns,
                weight: asked.weight,
                reaction: asked.reaction,
                fast_floor: asked.fast_floor,
                ram_percent: asked.ram_percent,
            };
            let answer = client.send(Operation::QosPolicyCreate, &[pool], &request)?;
            shown(json, &answer)
        }
        PolicyCommand::Set {
            policy,
            figures,
            overcommit,
        } => {
            let (pool, name) = object(policy)?;
            let request = change(figures, *overcommit)?;
            let answer = client.send(Operation::QosPolicyChange, &[pool, name], &request)?;
            shown(json, &answer)
        }
        PolicyCommand::Delete { policy } => {
            let (pool, name) = object(policy)?;
            client.get(Operation::QosPolicyDelete, &[pool, name])?;
            match json {
                true => Ok(()),
                false => print(&format!("policy {policy} deleted\n")),
            }
        }
    }
}

/// Runs `convect qos`.
pub fn qos(client: &Client, json: bool, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Status { pool } => {
            let answer = client.get(Operation::QosShow, &[pool])?;
            if json {
                return print_json(&answer, true);
            }
            let status: QosStatus = read(&answer)?;
            let head = [
                "VOLUME",
                "POLICY",
                ">LEVEL",
                ">MIN IOPS",
                ">IOPS",
                ">BANDWIDTH",
                ">QUEUED",
                ">LATE",
                ">MET",
                "BOTTLENECK",
            ];
            let volumes = status.volumes.iter();
            let volumes = volumes.map(|of| row(of.volume.clone(), &of.qos));
            let groups = status.groups.iter().filter_map(|of| {
                let name = format!("group {} ({} volumes)", of.name, of.volumes.len());
                Some(row(name, of.qos.as_ref()?))
            });
            let rows = table(&head, volumes.chain(groups));
            print(&format!("{rows}{}", verdict(&status.check)))
        }
        Command::Check {
            pool,
            policy,
            volumes,
        } => {
            let count = volumes.map(|count| count.to_string());
            let policy = policy.as_deref().map(|policy| ("policy", policy));
            let count = count.as_deref().map(|count| ("volumes", count));
            let query: Vec<_> = policy.into_iter().chain(count).collect();
            let answer = client.call(Operation::QosCheck, &[pool], &query, None)?;
            if json {
                return print_json(&answer, true);
            }
            let check: QosCheck = read(&answer)?;
            let head = [
                "VOLUME",
                "POLICY",
                ">LEVEL",
                ">MIN IOPS",
                ">MIN BANDWIDTH",
                ">FAST FLOOR",
                ">SHARE",
            ];
            let mut rows: Vec<_> = check.claims.iter().map(claim_row).collect();
            let total = percent(check.total_percent);
            let none = String::new;
            rows.push(vec![
                "total".to_owned(),
                none(),
                none(),
                none(),
                none(),
                none(),
                total,
            ]);
            print(&format!(
                "{}{}{}{}",
                table(&head, rows.into_iter()),
                tiers(&check),
                fast_space(&check),
                verdict(&check)
            ))
        }
        Command::Policy(command) => self::policy(client, json, command),
        Command::Group(command) => groups::group(client, json, command),
    }
}
