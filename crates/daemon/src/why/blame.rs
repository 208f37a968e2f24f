//! Assigns parts of a tier's time to a slow drive, or to background work.

use super::evidence::{DriveLoad, Evidence, TierLoad};
use super::split::Split;
use engine::Tier;

/// A drive is slow if it takes this many times as long as its peers.
const SLOWER: f64 = 3.0;
/// Share of the time that is assigned to a drive known to be slow whose peers are not known: the
/// engine reports drives that take ten times as long as usual.
const KNOWN_SLOW: f64 = 0.9;
/// Drives with fewer requests a second are not judged.
const ENOUGH: f64 = 0.2;
/// Maximum share of a tier's time that is assigned to background work.
const WORK_MAX: f64 = 0.9;

/// A drive that is slower than it should be.
#[derive(Clone, Debug)]
pub struct SlowDrive<'a> {
    /// The drive.
    pub drive: &'a DriveLoad,
    /// Mean latency of a request, and that of its peers, in nanoseconds.
    pub took_ns: f64,
    /// Nothing without peers.
    pub peers_ns: Option<f64>,
    /// Nanoseconds a second.
    pub part: f64,
}

/// Time that has more specific causes, and what is left of the stations' time.
pub struct Blame<'a> {
    /// Slow drives, the worst first.
    pub drives: Vec<SlowDrive<'a>>,
    /// Background work, in nanoseconds a second.
    pub work: f64,
    /// The rest.
    pub rest: Split,
}

fn mean(drives: &[&DriveLoad]) -> Option<f64> {
    let requests: f64 = drives.iter().map(|drive| drive.reads + drive.writes).sum();
    let time = |drive: &&DriveLoad| drive.reads * drive.read_ns + drive.writes * drive.write_ns;
    let time: f64 = drives.iter().map(time).sum();
    (requests >= ENOUGH).then(|| time / requests)
}

/// Slow drives of a tier, with the share of the tier's drive time that each wastes.
fn slow_drives(evidence: &Evidence, tier: Tier) -> Vec<SlowDrive<'_>> {
    let of_tier: Vec<&DriveLoad> = evidence
        .drives
        .iter()
        .filter(|drive| drive.tier == tier)
        .collect();
    let all: f64 = of_tier
        .iter()
        .map(|drive| drive.reads * drive.read_ns + drive.writes * drive.write_ns)
        .sum();
    let judged = of_tier.iter().filter_map(|drive| {
        let took_ns = mean(&[drive])?;
        let others: Vec<&DriveLoad> = of_tier
            .iter()
            .filter(|other| other.spec != drive.spec)
            .copied()
            .collect();
        let peers_ns = mean(&others).filter(|ns| *ns > 0.0);
        let requests = drive.reads + drive.writes;
        let part = match peers_ns {
            Some(peers_ns) if took_ns >= SLOWER * peers_ns => {
                requests * (took_ns - peers_ns) / all.max(1.0)
            }
            _ if drive.is_slow => KNOWN_SLOW * requests * took_ns / all.max(1.0),
            _ => return None,
        };
        Some(SlowDrive {
            drive,
            took_ns,
            peers_ns,
            part: part.clamp(0.0, 1.0),
        })
    });
    judged.collect()
}

/// Share of the drives' bandwidth that background work took, 0 to 1.
fn work_share(evidence: &Evidence) -> f64 {
    let done: f64 = evidence.work.iter().map(|work| work.rate).sum();
    let tiers = [&evidence.fast, &evidence.slow];
    let bytes = |tier: &&Option<TierLoad>| tier.as_ref().map_or(0.0, |tier| tier.bytes);
    let all: f64 = tiers.iter().map(bytes).sum();
    match all > 0.0 {
        true => (done / all).min(WORK_MAX),
        false => 0.0,
    }
}

/// Assigns parts of the time in `split`.
pub fn blame<'a>(evidence: &'a Evidence, split: &Split) -> Blame<'a> {
    let mut rest = *split;
    let mut found = Vec::new();
    for tier in [Tier::Fast, Tier::Slow] {
        let is_written = match tier {
            Tier::Fast => evidence.fast.is_some(),
            Tier::Slow => evidence.fast.is_none(),
        };
        let mut time = match tier {
            Tier::Fast => rest.fast,
            Tier::Slow => rest.slow_drives + rest.slow_queue,
        };
        if is_written {
            time += rest.written + rest.write_queue;
        }
        let mut drives = slow_drives(evidence, tier);
        let wasted: f64 = drives.iter().map(|drive| drive.part).sum::<f64>().min(1.0);
        drives.iter_mut().for_each(|drive| drive.part *= time);
        found.extend(drives);
        let left = 1.0 - wasted;
        match tier {
            Tier::Fast => rest.fast *= left,
            Tier::Slow => {
                rest.slow_drives *= left;
                rest.slow_queue *= left;
            }
        }
        if is_written {
            rest.written *= left;
            rest.write_queue *= left;
        }
    }
    found.sort_by(|one, other| other.part.total_cmp(&one.part));
    let share = work_share(evidence);
    let mut work = 0.0;
    for part in [
        &mut rest.slow_drives,
        &mut rest.slow_queue,
        &mut rest.fast,
        &mut rest.written,
    ] {
        work += *part * share;
        *part *= 1.0 - share;
    }
    Blame {
        drives: found,
        work,
        rest,
    }
}
