//! The answer: whether the volume is slow, and the causes.

use super::blame::blame;
use super::evidence::{Evidence, Load};
use super::findings::{conditions, measured};
use super::split::{Split, split};
use super::text::time;
use api::v1::{Why, WhyCause, WhyFinding, WhyLoad, WhyVerdict};

/// Fewer I/Os in the examined time say nothing.
const ENOUGH: f64 = 20.0;
/// Without a target, a volume with a mean or p99 latency above this is slow.
const SLOW_MEAN_NS: f64 = 1e6;
const SLOW_P99_NS: f64 = 20e6;
/// So is one that takes this many times its usual latency, above a minimum.
const UNUSUAL: f64 = 2.0;
const UNUSUAL_NS: f64 = 100e3;
/// So is one whose I/Os spend this share of their latency waiting at the gate.
const HELD_BACK: f64 = 0.25;

/// Mean latency with waits, and the greater p99 with the mean wait, in nanoseconds.
fn latency(load: &Load, split: &Split) -> (f64, f64) {
    let iops = load.iops().max(f64::MIN_POSITIVE);
    let wait = (split.limit + split.share) / iops;
    let p99 = [load.read_p99_ns, load.write_p99_ns].into_iter().flatten();
    (split.total() / iops, p99.fold(0.0, f64::max) + wait)
}

/// Why the volume counts as slow; nothing if it does not.
fn slow(evidence: &Evidence, load: &Load, split: &Split) -> Option<String> {
    let (mean, p99) = latency(load, split);
    if let Some(target) = evidence.target_ns
        && p99 > target
    {
        return Some(format!("its target is {}", time(target)));
    }
    let held = split.limit + split.share;
    if held > 0.0 && held >= HELD_BACK * split.total() {
        return Some("its policy holds it back".to_owned());
    }
    if evidence.target_ns.is_some() {
        return None;
    }
    if let Some(usual) = evidence.usual_ns
        && mean >= UNUSUAL * usual
        && mean >= UNUSUAL_NS
    {
        return Some(format!("{} is usual", time(usual)));
    }
    if mean >= SLOW_MEAN_NS {
        return Some(format!("{} and more counts as slow", time(SLOW_MEAN_NS)));
    }
    (p99 >= SLOW_P99_NS).then(|| format!("a p99 of {} and more is slow", time(SLOW_P99_NS)))
}

/// Verdict and headline for a volume with enough I/Os.
fn judged(
    evidence: &Evidence,
    load: &Load,
    split: &Split,
    first: Option<&WhyFinding>,
) -> (WhyVerdict, String) {
    let name = evidence.name();
    let is = if evidence.is_live { "is" } else { "was" };
    let (mean, p99) = latency(load, split);
    let figures = format!("{} an I/O, p99 {}", time(mean), time(p99));
    match slow(evidence, load, split) {
        Some(because) => {
            let mostly = first.map_or_else(String::new, |first| match first.share_percent {
                Some(share) => format!(" {share:.0} % of it: {}.", first.title),
                None => format!(" First: {}.", first.title),
            });
            let text = format!("{name} {is} slow: {figures} ({because}).{mostly}");
            (WhyVerdict::Slow, text)
        }
        None => (
            WhyVerdict::NotSlow,
            format!("{name} {is} not slow: {figures}."),
        ),
    }
}

/// Verdict and headline without enough I/Os. A failed or full pool is why.
fn unjudged(evidence: &Evidence, conditions: &[WhyFinding]) -> (WhyVerdict, String) {
    let name = evidence.name();
    let stops =
        |finding: &&WhyFinding| matches!(finding.cause, WhyCause::PoolFailed | WhyCause::PoolFull);
    if let Some(stopped) = conditions.iter().find(stops) {
        let text = format!("{name} completes hardly any I/O: {}.", stopped.title);
        return (WhyVerdict::Slow, text);
    }
    let why = match &evidence.load {
        None => "nothing is recorded for that time: the daemon did not run, or the volume did \
                 not exist"
            .to_owned(),
        Some(load) => format!(
            "it completed {:.0} reads and writes in that time, too few to judge",
            load.iops() * load.seconds
        ),
    };
    let text = format!("Cannot tell whether {name} is slow: {why}.");
    (WhyVerdict::Unknown, text)
}

/// What could not be examined.
fn missing(evidence: &Evidence) -> Vec<String> {
    let mut missing = Vec::new();
    if !evidence.is_live {
        missing.push(
            "limits of policies, states of drives and the working set are known for now only: \
             they are not part of this answer"
                .to_owned(),
        );
    }
    let Some(load) = &evidence.load else {
        return missing;
    };
    if load.limit_wait.is_none() || load.share_wait.is_none() {
        missing.push("waits for policies were not recorded then".to_owned());
    }
    if evidence.sources.is_none() && load.reads > 0.0 {
        missing.push(
            "read time by tier is estimated from bytes by tier and the latency of the drives"
                .to_owned(),
        );
    }
    if evidence.usual_ns.is_none() {
        missing.push("the usual latency is unknown: no I/O on the day before".to_owned());
    }
    missing
}

fn shown(evidence: &Evidence, load: &Load, split: &Split) -> WhyLoad {
    let us = |ns: f64| (ns / 100.0).round() / 10.0;
    WhyLoad {
        iops: load.iops(),
        bandwidth: load.bytes,
        mean_us: match load.iops() > 0.0 {
            true => us(latency(load, split).0),
            false => 0.0,
        },
        read_p99_us: load.read_p99_ns.map(us),
        write_p99_us: load.write_p99_ns.map(us),
        usual_us: evidence.usual_ns.map(us),
    }
}

/// Why the volume is slow, or was.
pub fn answer(evidence: &Evidence) -> Why {
    let split = evidence.load.map(|load| split(evidence, &load));
    let known = evidence.load.as_ref().zip(split.as_ref());
    let enough = known.filter(|(load, _)| load.iops() * load.seconds >= ENOUGH);
    let mut findings = match enough {
        Some((load, split)) => measured(evidence, load, split, &blame(evidence, split)),
        None => Vec::new(),
    };
    findings.extend(conditions(evidence, &findings));
    // A failed pool comes first: its volumes' I/Os may not complete at all.
    findings.sort_by_key(|finding| finding.cause != WhyCause::PoolFailed);
    let (verdict, headline) = match enough {
        Some((load, split)) => judged(evidence, load, split, findings.first()),
        None => unjudged(evidence, &findings),
    };
    Why {
        volume: evidence.name(),
        from_s: evidence.window.0,
        to_s: evidence.window.1,
        live: evidence.is_live,
        verdict,
        headline,
        load: known.map(|(load, split)| shown(evidence, load, split)),
        findings,
        missing: missing(evidence),
    }
}
