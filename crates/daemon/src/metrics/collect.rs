//! Converts the daemon's status to metrics.

use super::encoder::{Counted, Family, Page};
use super::families as the;
use crate::mapping::ToApi;
use api::v1;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Block size in bytes.
const BLOCK: u64 = 4096;
const POOL_STATES: &[&str] = &["online", "degraded", "full", "failed"];
const VDRIVE_STATES: &[&str] = &["online", "degraded", "failed", "evacuating"];
const DRIVE_STATES: &[&str] = &["online", "syncing", "out", "offline", "missing"];

/// Status of a pool; unavailable parts are left out.
pub struct PoolFigures {
    /// Its state.
    pub pool: v1::Pool,
    /// Number of its snapshots.
    pub snapshots: usize,
    /// Its counters.
    pub counters: v1::Counters,
    /// Its moves by reason.
    pub moves: Vec<v1::MoveCount>,
    /// Its volumes with their counters.
    pub volumes: Vec<engine::VolumeLook>,
    /// Its QoS groups.
    pub groups: Vec<engine::QosGroup>,
    /// Latencies of its drives, by id.
    pub drives: BTreeMap<String, Times>,
}

/// Latency of reads and writes.
pub struct Times {
    /// Sum of read latencies and of write latencies, in nanoseconds.
    pub ns: [u64; 2],
    /// Histograms of latencies and sizes.
    pub spread: engine::IoSpread,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A state metric: one value per possible state.
fn states(page: &mut Page, family: Family, of: &[&str], all: &[&str], state: &str) {
    let other = Some(state).filter(|state| !all.contains(state));
    for name in all.iter().copied().chain(other) {
        let labels: Vec<_> = of.iter().copied().chain([name]).collect();
        page.add(family, &labels, u8::from(name == state));
    }
}

/// Metrics of the daemon itself.
pub fn daemon(page: &mut Page, up: Duration, absent: &[v1::AbsentPool]) {
    page.add(the::BUILD, &[env!("CARGO_PKG_VERSION")], 1);
    page.add(the::UPTIME, &[], up.as_secs_f64());
    let names: BTreeSet<_> = absent.iter().map(|pool| pool.name.as_str()).collect();
    for name in names {
        page.add(the::POOL_ABSENT, &[name], 1);
    }
}

/// Memory of hosts' requests.
pub fn request_memory(page: &mut Page, budget: &reactor::Budget, waiting: usize) {
    page.add(the::REQUEST_MEMORY, &[], budget.used());
    page.add(the::REQUEST_MEMORY_LIMIT, &[], budget.most());
    page.add(the::REQUESTS_WAITING, &[], waiting);
}

/// Duration of the scrape.
pub fn took(page: &mut Page, time: Duration) {
    page.add(the::SCRAPE_TOOK, &[], time.as_secs_f64());
}

/// Jobs by kind; labels by job would be unbounded.
pub fn jobs(page: &mut Page, jobs: &[v1::Job]) {
    let mut counts = BTreeMap::<(&str, &str), u64>::new();
    let mut left = BTreeMap::<&str, u64>::new();
    for job in jobs {
        *counts.entry((&job.kind, job.state.name())).or_default() += 1;
        if !job.state.is_ended() {
            *left.entry(&job.kind).or_default() += job.total.saturating_sub(job.done);
        }
    }
    for ((kind, state), count) in counts {
        page.add(the::JOBS, &[kind, state], count);
    }
    for (kind, bytes) in left {
        page.add(the::JOBS_LEFT, &[kind], bytes);
    }
}

/// Exports with their counters, by pool and name.
pub fn exports(
    page: &mut Page,
    exports: &[v1::Export],
    looks: &BTreeMap<(&str, &str), &engine::ExportLook>,
) {
    for export in exports {
        let of = [&export.pool, &export.volume, &export.name, &export.kind].map(String::as_str);
        page.add(the::EXPORT_UP, &of, u8::from(export.state == "online"));
        page.add(
            the::EXPORT_DISABLED,
            &of,
            u8::from(export.state == "disabled"),
        );
        page.add(the::EXPORT_SESSIONS, &of, export.sessions);
        if let Some(look) = looks.get(&(of[0], of[2])) {
            export_figures(page, &of, look);
        }
    }
}

fn export_figures(page: &mut Page, of: &[&str; 4], look: &engine::ExportLook) {
    let counters = &look.counters;
    page.add(the::EXPORT_READS, of, counters.reads);
    page.add(the::EXPORT_WRITES, of, counters.writes);
    page.add(the::EXPORT_FLUSHES, of, counters.flushes);
    page.add(the::EXPORT_READ, of, counters.read_bytes);
    page.add(the::EXPORT_WRITTEN, of, counters.write_bytes);
    let ns = [counters.read_ns, counters.write_ns];
    let families = [the::EXPORT_READ_SPREAD, the::EXPORT_WRITE_SPREAD];
    latencies(page, of, families, ns, &look.spread);
}

/// A pool and its objects.
pub fn pool(page: &mut Page, figures: &PoolFigures) {
    let pool = &figures.pool;
    let name = pool.name.as_str();
    let of = &[name];
    states(page, the::POOL_STATE, of, POOL_STATES, &pool.state);
    page.add(the::POOL_MESSAGES, of, pool.messages.len());
    if let Some(protection) = &pool.protection {
        page.add(the::POOL_SURVIVES, of, protection.survives_failures);
    }
    page.add(the::POOL_CAPACITY, of, pool.capacity);
    page.add(the::POOL_USED, of, pool.used);
    page.add(the::POOL_RESERVED, of, pool.reserved);
    page.add(the::POOL_OVERPROMISED, of, pool.overpromised);
    page.add(the::POOL_PROMISED, of, pool.promised);
    page.add(the::POOL_VOLUMES, of, pool.volumes);
    page.add(the::POOL_SNAPSHOTS, of, figures.snapshots);
    page.add(the::POOL_MAPS, of, pool.map_bytes);
    page.add(the::POOL_HELD, of, u8::from(pool.promotion_held));
    if let Some(budget) = &pool.promotion_budget {
        page.add(the::POOL_BUDGET, of, budget.daily);
        page.add(the::POOL_BUDGET_LEFT, of, budget.left);
    }
    fills(page, name, &pool.fills);
    tiers(page, pool);
    scrub(page, name, &pool.scrub);
    page.add(the::OPENING_LOST, &[name], pool.opening_lost);
    vdrives(page, name, &pool.vdrives, &figures.drives);
    pool_counters(page, name, &figures.counters);
    for count in &figures.moves {
        let dropped = if count.dropped { "true" } else { "false" };
        let of = [name, &count.from, &count.to, dropped, &count.reason];
        page.add(the::POOL_MOVES, &of, count.moves);
        page.add(the::POOL_MOVED, &of, count.bytes);
    }
    for group in &figures.groups {
        let of = &[name, &group.name];
        page.add(the::GROUP_QOS_VOLUMES, of, group.volumes.len());
        if let Some(qos) = &group.qos {
            attained(page, of, &GROUP_QOS, qos);
        }
    }
    for volume in &figures.volumes {
        volume_figures(page, &volume.status);
        let (of, counters) = (&[name, &volume.status.name], volume.counters.to_api());
        volume_counters(page, of, &counters);
        if volume.spread != engine::IoSpread::default() {
            let families = [the::VOLUME_READ_SPREAD, the::VOLUME_WRITE_SPREAD];
            let ns = [counters.read_ns, counters.write_ns];
            latencies(page, of, families, ns, &volume.spread);
            let families = [the::VOLUME_READ_SIZES, the::VOLUME_WRITE_SIZES];
            let bytes = [counters.read_bytes, counters.write_bytes];
            sizes(page, of, families, bytes, &volume.spread);
            volume_sources(page, of, &volume.sources);
        }
    }
}

fn fills(page: &mut Page, pool: &str, fills: &[v1::Fill]) {
    for fill in fills {
        let part = match fill.part {
            v1::FillPart::Space => "space",
            v1::FillPart::Metadata => "metadata",
            v1::FillPart::Fast => "fast",
            v1::FillPart::Slow => "slow",
        };
        let of = &[pool, part];
        page.add(the::FILL_USED, of, fill.used);
        page.add(the::FILL_CAPACITY, of, fill.capacity);
        let level = f64::from(fill.level.unwrap_or(0)) / 100.0;
        page.add(the::FILL_WARNING, of, level);
        match fill.seconds_to_full {
            Some(time) => page.add(the::FILL_FULL, of, time),
            None => page.add(the::FILL_FULL, of, "+Inf"),
        }
    }
}

fn tier_name(tier: v1::Tier) -> &'static str {
    match tier {
        v1::Tier::Fast => "fast",
        v1::Tier::Slow => "slow",
    }
}

fn tiers(page: &mut Page, pool: &v1::Pool) {
    let name = pool.name.as_str();
    let mut sums = BTreeMap::from([("ram", (pool.ram_limit, pool.ram_bytes))]);
    for vdrive in &pool.vdrives {
        let sum = sums.entry(tier_name(vdrive.tier)).or_default();
        sum.0 += vdrive.capacity;
        sum.1 += vdrive.used;
    }
    for (tier, (capacity, used)) in &sums {
        page.add(the::TIER_CAPACITY, &[name, tier], capacity);
        page.add(the::TIER_USED, &[name, tier], used);
    }
    if sums.contains_key("fast") {
        page.add(the::TIER_DIRTY, &[name, "fast"], pool.fast_dirty);
        page.add(the::TIER_SHADOW, &[name, "fast"], pool.fast_shadow);
    }
}

fn scrub(page: &mut Page, pool: &str, scrub: &v1::Scrub) {
    let of = &[pool];
    let running = u8::from(scrub.state == "running");
    page.add(the::SCRUB_RUNNING, of, running);
    page.add(the::SCRUB_BEGAN, of, scrub.began_s);
    page.add(the::SCRUB_TOOK, of, scrub.took_s);
    page.add(the::SCRUB_READ, of, scrub.bytes);
    page.add(the::SCRUB_SIZE, of, scrub.total);
    page.add(the::SCRUB_CHECKED, of, scrub.blocks);
    page.add(the::SCRUB_BAD, of, scrub.errors);
    page.add(the::SCRUB_REPAIRED, of, scrub.repaired);
    page.add(the::SCRUB_LOST, of, scrub.lost);
}

fn vdrives(page: &mut Page, pool: &str, vdrives: &[v1::Vdrive], times: &BTreeMap<String, Times>) {
    let mut specs = BTreeSet::new();
    for vdrive in vdrives {
        let id = vdrive.id.to_string();
        let of = [pool, tier_name(vdrive.tier), id.as_str()];
        states(page, the::VDRIVE_STATES, &of, VDRIVE_STATES, &vdrive.state);
        if let Some(protection) = &vdrive.protection {
            page.add(the::VDRIVE_SURVIVES, &of, protection.survives_failures);
        }
        page.add(the::VDRIVE_CAPACITY, &of, vdrive.capacity);
        page.add(the::VDRIVE_USED, &of, vdrive.used);
        for known in &vdrive.drives {
            // Several missing drives may share their last path.
            let spec = match specs.insert(known.spec.as_str()) {
                true => known.spec.clone(),
                false => format!("{} {}", known.spec, known.id),
            };
            let of = [of[0], of[1], of[2], &spec];
            drive(page, of, known);
            if let Some(times) = times.get(&known.id) {
                let families = [the::DRIVE_READ_SPREAD, the::DRIVE_WRITE_SPREAD];
                latencies(page, &of, families, times.ns, &times.spread);
            }
        }
    }
}

fn drive(page: &mut Page, of: [&str; 4], drive: &v1::Drive) {
    states(page, the::DRIVE_STATES, &of, DRIVE_STATES, &drive.state);
    page.add(the::DRIVE_SIZE, &of, drive.size);
    page.add(the::DRIVE_READS, &of, drive.reads);
    page.add(the::DRIVE_WRITES, &of, drive.writes);
    page.add(the::DRIVE_READ, &of, drive.read_bytes);
    page.add(the::DRIVE_WRITTEN, &of, drive.write_bytes);
    page.add(the::DRIVE_ERRORS, &of, drive.errors);
    page.add(the::DRIVE_TIMEOUTS, &of, drive.timeouts);
    page.add(the::DRIVE_REPAIRED, &of, drive.repaired);
    page.add(the::DRIVE_SLOW, &of, u8::from(drive.slow));
    if let Some(percent) = drive.synced_percent {
        page.add(the::DRIVE_SYNCED, &of, f64::from(percent) / 100.0);
    }
    if let Some(health) = &drive.health {
        drive_health(page, of, health);
    }
    let wear = &drive.wear;
    for (purpose, bytes) in [
        ("hosts", wear.hosts),
        ("promotion", wear.promotion),
        ("upkeep", wear.upkeep),
        ("metadata", wear.metadata),
    ] {
        let of = [of[0], of[1], of[2], of[3], purpose];
        page.add(the::DRIVE_WEAR, &of, bytes);
    }
}

/// Health of a drive, as far as it is reported.
fn drive_health(page: &mut Page, of: [&str; 4], health: &v1::DriveHealth) {
    if health.state != v1::HealthState::Unknown {
        let failing = u8::from(health.state == v1::HealthState::Failing);
        page.add(the::DRIVE_FAILING, &of, failing);
    }
    if let Some(used) = health.used_percent {
        page.add(the::DRIVE_USED, &of, used as f64 / 100.0);
    }
    if let Some(celsius) = health.temperature_c {
        page.add(the::DRIVE_TEMPERATURE, &of, celsius);
    }
    if let Some(hours) = health.power_on_hours {
        page.add(the::DRIVE_ON, &of, hours.saturating_mul(3600));
    }
}

/// Bytes read, by tier.
fn served(counters: &v1::Counters) -> [(&'static str, u64); 4] {
    [
        ("ram", counters.blocks_ram * BLOCK),
        ("fast", counters.blocks_fast * BLOCK),
        ("slow", counters.blocks_slow * BLOCK),
        ("none", counters.blocks_zero * BLOCK),
    ]
}

fn pool_counters(page: &mut Page, pool: &str, counters: &v1::Counters) {
    let of = &[pool];
    page.add(the::POOL_READS, of, counters.reads);
    page.add(the::POOL_WRITES, of, counters.writes);
    page.add(the::POOL_FLUSHES, of, counters.flushes);
    page.add(the::POOL_READ, of, counters.read_bytes);
    page.add(the::POOL_WRITTEN, of, counters.write_bytes);
    page.add(the::POOL_READ_TIME, of, seconds(counters.read_ns));
    page.add(the::POOL_WRITE_TIME, of, seconds(counters.write_ns));
    page.add(the::POOL_BYPASSED_READS, of, counters.bypassed_reads);
    page.add(the::POOL_BYPASSED_WRITES, of, counters.bypassed_writes);
    let bypassed = counters.bypassed_blocks * BLOCK;
    page.add(the::POOL_BYPASSED, of, bypassed);
    page.add(the::POOL_PROMOTED, of, counters.promoted_bytes);
    page.add(the::POOL_DEMOTED, of, counters.demoted_bytes);
    for (tier, bytes) in served(counters) {
        page.add(the::POOL_SERVED, &[pool, tier], bytes);
    }
}

fn volume_figures(page: &mut Page, volume: &engine::VolumeStatus) {
    let of = &[volume.pool.as_str(), volume.name.as_str()];
    page.add(the::VOLUME_SIZE, of, volume.size);
    page.add(the::VOLUME_MAPPED, of, volume.mapped);
    page.add(the::VOLUME_HELD, of, volume.held);
    if volume.quota > 0 {
        page.add(the::VOLUME_QUOTA, of, volume.quota);
    }
    page.add(the::VOLUME_RESERVED, of, volume.reserved);
    page.add(the::VOLUME_FAST, of, volume.fast);
    // Metrics of a group are exported once, by group.
    if let Some(qos) = volume.qos.as_ref().filter(|qos| qos.group.is_none()) {
        attained(page, of, &VOLUME_QOS, qos);
    }
}

/// Families of a tenant: the first four are its guarantees, the rest what it attained.
type QosFamilies = [Family; 9];

const VOLUME_QOS: QosFamilies = [
    the::VOLUME_QOS_LEVEL,
    the::VOLUME_QOS_MIN_IOPS,
    the::VOLUME_QOS_MIN_BANDWIDTH,
    the::VOLUME_QOS_MAX_LATENCY,
    the::VOLUME_QOS_TIME,
    the::VOLUME_QOS_HELD,
    the::VOLUME_QOS_LATE,
    the::VOLUME_QOS_WINDOWS,
    the::VOLUME_QOS_MET,
];
const GROUP_QOS: QosFamilies = [
    the::GROUP_QOS_LEVEL,
    the::GROUP_QOS_MIN_IOPS,
    the::GROUP_QOS_MIN_BANDWIDTH,
    the::GROUP_QOS_MAX_LATENCY,
    the::GROUP_QOS_TIME,
    the::GROUP_QOS_HELD,
    the::GROUP_QOS_LATE,
    the::GROUP_QOS_WINDOWS,
    the::GROUP_QOS_MET,
];

fn attained(page: &mut Page, of: &[&str; 2], families: &QosFamilies, qos: &engine::VolumeQos) {
    let policy = &qos.policy;
    let [
        level,
        min_iops,
        min_bandwidth,
        max_latency,
        time,
        held,
        late,
        windows,
        met,
    ] = *families;
    page.add(level, of, u64::from(policy.level));
    page.add(min_iops, of, policy.min_iops);
    page.add(min_bandwidth, of, policy.min_bandwidth);
    if policy.max_latency_ns > 0 {
        page.add(max_latency, of, seconds(policy.max_latency_ns));
    }
    page.add(time, of, seconds(qos.cost_ns));
    page.add(held, of, qos.held);
    page.add(late, of, qos.late);
    page.add(windows, of, qos.windows);
    page.add(met, of, qos.met);
}

fn volume_counters(page: &mut Page, of: &[&str; 2], counters: &v1::Counters) {
    page.add(the::VOLUME_READS, of, counters.reads);
    page.add(the::VOLUME_WRITES, of, counters.writes);
    page.add(the::VOLUME_FLUSHES, of, counters.flushes);
    page.add(the::VOLUME_READ, of, counters.read_bytes);
    page.add(the::VOLUME_WRITTEN, of, counters.write_bytes);
    page.add(the::VOLUME_READ_TIME, of, seconds(counters.read_ns));
    page.add(the::VOLUME_WRITE_TIME, of, seconds(counters.write_ns));
    for (tier, bytes) in served(counters) {
        page.add(the::VOLUME_SERVED, &[of[0], of[1], tier], bytes);
    }
}

/// Bounds of a histogram in multiples of `unit`, formatted with a point as OpenMetrics requires.
fn bounds(bounds: engine::Bounds, unit: f64) -> Vec<String> {
    let written = bounds.values().map(|bound| bound as f64 / unit);
    written.map(|bound| format!("{bound:?}")).collect()
}

fn volume_sources(page: &mut Page, of: &[&str; 2], sources: &engine::SourceTimes) {
    let bounds = bounds(engine::TIME_BOUNDS, 1e9);
    for (tier, times) in [
        ("ram", &sources.ram),
        ("fast", &sources.fast),
        ("slow", &sources.slow),
    ] {
        let of = (the::VOLUME_SOURCE_TIMES, &[of[0], of[1], tier][..]);
        histogram(page, of, &bounds, &times.counts, seconds(times.ns));
    }
}

/// Latency of reads, and of writes.
fn latencies(
    page: &mut Page,
    of: &[&str],
    [reads, writes]: [Family; 2],
    ns: [u64; 2],
    spread: &engine::IoSpread,
) {
    let bounds = bounds(engine::TIME_BOUNDS, 1e9);
    let [read, written] = ns.map(seconds);
    histogram(page, (reads, of), &bounds, &spread.reads.times, read);
    histogram(page, (writes, of), &bounds, &spread.writes.times, written);
}

/// Sizes of reads, and of writes.
fn sizes(
    page: &mut Page,
    of: &[&str],
    [reads, writes]: [Family; 2],
    bytes: [u64; 2],
    spread: &engine::IoSpread,
) {
    let bounds = bounds(engine::SIZE_BOUNDS, 1.0);
    let [read, written] = bytes.map(|bytes| bytes as f64);
    histogram(page, (reads, of), &bounds, &spread.reads.sizes, read);
    histogram(page, (writes, of), &bounds, &spread.writes.sizes, written);
}

fn histogram(
    page: &mut Page,
    (family, of): (Family, &[&str]),
    bounds: &[String],
    counts: &[u64],
    sum: f64,
) {
    let counted = Counted {
        bounds,
        counts,
        sum,
    };
    page.add_histogram(family, of, &counted);
}

#[cfg(test)]
#[path = "collect_tests.rs"]
mod tests;
