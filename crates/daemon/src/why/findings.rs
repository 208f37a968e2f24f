//! Causes with the evidence for each.

use super::actions::{self, act, run};
use super::blame::{Blame, SlowDrive};
use super::evidence::{Evidence, Load, TierLoad};
use super::split::Split;
use super::text::{bytes, percent, rate, time};
use api::v1::{EventCode, WhyAction, WhyCause, WhyFinding};

/// Share of the latency below which a cause is not listed.
const LEAST: f64 = 0.05;
/// Share of dirty data on the fast tier from which it counts as full.
const FULL_OF_DIRTY: f64 = 0.8;
/// Maximum number of slow drives listed.
const DRIVES_MAX: usize = 3;

/// Builds findings of one volume.
struct Builder<'a> {
    evidence: &'a Evidence,
    load: &'a Load,
    split: &'a Split,
    found: Vec<WhyFinding>,
}

impl Builder<'_> {
    /// Adds a cause that explains `part` nanoseconds a second, unless that is little.
    fn add(
        &mut self,
        part: f64,
        cause: WhyCause,
        title: impl Into<String>,
        told: (Vec<String>, Vec<WhyAction>),
    ) {
        let (total, iops) = (self.split.total(), self.load.iops());
        if total <= 0.0 || iops <= 0.0 || part / total < LEAST {
            return;
        }
        let round = |value: f64| (value * 10.0).round() / 10.0;
        self.found.push(WhyFinding {
            cause,
            title: title.into(),
            share_percent: Some(round(100.0 * part / total)),
            explained_us: Some(round(part / iops / 1e3)),
            evidence: told.0,
            actions: told.1,
        });
    }

    fn gate(&mut self) {
        let (evidence, load, split) = (self.evidence, self.load, self.split);
        let mut lines = Vec::new();
        let mut title = "the maximum of its policy".to_owned();
        if let Some(policy) = &evidence.policy {
            title = format!("the maximum of its policy {}", policy.name);
            let scope = if policy.group.is_some() {
                " (this volume alone)"
            } else {
                ""
            };
            if policy.max_iops > 0 {
                lines.push(format!(
                    "{} IOPS{scope} of at most {}",
                    rate(load.iops()),
                    policy.max_iops
                ));
            }
            if policy.max_bandwidth > 0 {
                lines.push(format!(
                    "{}/s{scope} of at most {}/s",
                    bytes(load.bytes),
                    bytes(policy.max_bandwidth as f64)
                ));
            }
        }
        let waits = |number: Option<f64>| {
            let number = number.unwrap_or(0.0);
            format!(
                "{} I/Os waited at a time, each for {} on average",
                rate(number),
                time(number * 1e9 / load.iops().max(f64::MIN_POSITIVE))
            )
        };
        lines.push(waits(load.limit_wait));
        let told = (lines, actions::limit(evidence));
        self.add(split.limit, WhyCause::PolicyLimit, title, told);
        let mut lines = vec![waits(load.share_wait)];
        let rivals = evidence.policy.iter().flat_map(|policy| &policy.held_for);
        let rivals: Vec<String> = rivals
            .map(|(name, percent)| format!("{name} ({percent} %)"))
            .collect();
        if !rivals.is_empty() {
            lines.push(format!("served meanwhile: {}", rivals.join(", ")));
        }
        let told = (lines, actions::shares(evidence));
        let title = "waiting while other volumes are served";
        self.add(split.share, WhyCause::OtherVolumes, title, told);
    }

    /// Where reads came from.
    fn read_from(&self) -> String {
        let [ram, fast, slow, empty] = self.load.shares().map(percent);
        format!("reads by tier: slow {slow}, fast {fast}, RAM {ram}, never written {empty}")
    }

    fn reads(&mut self, rest: &Split) {
        let evidence = self.evidence;
        let (mut lines, actions) = actions::misses(evidence);
        lines.insert(0, self.read_from());
        if let Some(slow) = &evidence.slow {
            lines.insert(
                1,
                format!("a read of a slow drive takes {}", time(slow.read_ns)),
            );
        }
        let title = "reads that miss RAM and the fast tier";
        let told = (lines, actions);
        self.add(rest.slow_drives, WhyCause::SlowTierReads, title, told);
        let mut lines = vec![self.read_from()];
        lines.extend(self.own_share());
        if let Some(slow) = &evidence.slow {
            lines.push(format!(
                "its drives complete {} reads and {} writes a second for everyone",
                rate(slow.reads),
                rate(slow.writes)
            ));
        }
        let told = (lines, actions::queue(evidence));
        let title = "waiting for the slow tier";
        self.add(rest.slow_queue, WhyCause::SlowTierQueue, title, told);
        let mut lines = vec![self.read_from()];
        if let Some(fast) = &evidence.fast {
            lines.push(format!(
                "a read of a fast drive takes {}",
                time(fast.read_ns)
            ));
        }
        let told = (lines, vec![self.iostat()]);
        let title = "reads from the fast tier";
        self.add(rest.fast, WhyCause::FastTierReads, title, told);
    }

    fn own_share(&self) -> Option<String> {
        let (own, all) = (self.load.iops(), self.evidence.pool_iops);
        (all > own).then(|| {
            format!(
                "this volume does {} of the pool's {} IOPS",
                percent(own / all),
                rate(all)
            )
        })
    }

    fn iostat(&self) -> WhyAction {
        run(
            "look for a slow drive",
            format!("convect pool iostat {} --watch", self.evidence.pool),
        )
    }

    fn writes(&mut self, rest: &Split) {
        let evidence = self.evidence;
        let written = evidence.written().copied().unwrap_or_default();
        let which = if evidence.fast.is_some() {
            "fast"
        } else {
            "slow"
        };
        let lines = vec![
            format!(
                "{} writes a second, {} each",
                rate(self.load.writes),
                time(self.load.write_ns)
            ),
            format!(
                "a write of a {which} drive takes {}",
                time(written.write_ns)
            ),
        ];
        let mut actions = Vec::new();
        if evidence.fast.is_none() {
            actions.push(run(
                "add flash as a fast tier",
                format!("convect pool add {} fast mirror DRIVE DRIVE", evidence.pool),
            ));
        }
        actions.push(self.iostat());
        let title = format!("writes to the {which} tier's drives");
        self.add(rest.written, WhyCause::Writes, title, (lines, actions));
        let dirty = |tier: &TierLoad| tier.dirty.map(|dirty| dirty / tier.capacity.max(1.0));
        let dirty = evidence.fast.as_ref().and_then(dirty);
        match dirty {
            Some(dirty) if dirty >= FULL_OF_DIRTY => {
                let lines = vec![format!(
                    "{} of the fast tier is dirty: writes wait for write-back to the slow tier",
                    percent(dirty)
                )];
                let told = (lines, actions::dirty(evidence));
                let title = "a fast tier full of dirty data";
                self.add(rest.write_queue, WhyCause::FastTierFull, title, told);
            }
            _ => {
                let mut lines = vec![format!(
                    "a write takes {}, of which its drive {}",
                    time(self.load.write_ns),
                    time(written.write_ns)
                )];
                lines.extend(self.own_share());
                let told = (
                    lines,
                    vec![run("see which volumes write", "convect top".to_owned())],
                );
                let title = "writes waiting for their turn, the journal or space";
                self.add(rest.write_queue, WhyCause::WriteQueue, title, told);
            }
        }
    }

    fn drive(&mut self, slow: &SlowDrive<'_>) {
        let (drive, pool) = (slow.drive, &self.evidence.pool);
        let mut lines = vec![match slow.peers_ns {
            Some(peers) => format!(
                "its requests take {}, those of its tier's other drives {}",
                time(slow.took_ns),
                time(peers)
            ),
            None => format!(
                "its requests take {}, far longer than usual",
                time(slow.took_ns)
            ),
        }];
        if drive.errors > 0.0 {
            lines.push(format!("{} failed requests a second", rate(drive.errors)));
        }
        let actions = vec![
            run(
                "check its health",
                format!("convect drive show {}", drive.spec),
            ),
            run(
                "replace it",
                format!("convect pool replace {pool} {} NEW", drive.spec),
            ),
        ];
        let title = format!("the slow drive {} (vdrive {})", drive.spec, drive.vdrive);
        self.add(slow.part, WhyCause::DriveSlow, title, (lines, actions));
    }

    fn work(&mut self, part: f64) {
        let evidence = self.evidence;
        let lines = evidence.work.iter().map(|work| {
            let when = if work.is_running {
                "running"
            } else {
                "ran then"
            };
            format!(
                "{} of {} ({when}, job {}): {}/s",
                work.kind,
                work.subject,
                work.job,
                bytes(work.rate)
            )
        });
        let actions = evidence
            .work
            .iter()
            .flat_map(|work| actions::work(evidence, work));
        let kinds: Vec<&str> = evidence
            .work
            .iter()
            .map(|work| work.kind.as_str())
            .collect();
        let title = format!("background work: {}", kinds.join(", "));
        let told = (lines.collect(), actions.collect());
        self.add(part, WhyCause::BackgroundWork, title, told);
    }

    fn engine(&mut self, part: f64) {
        let lines = vec![self.read_from()];
        let told = (
            lines,
            vec![act("see which volumes load the host, and its CPU load")],
        );
        let title = "the engine itself: RAM, maps, CPU time";
        self.add(part, WhyCause::Other, title, told);
    }
}

/// Causes that explain a part of the latency, the largest first.
pub fn measured(
    evidence: &Evidence,
    load: &Load,
    split: &Split,
    blame: &Blame<'_>,
) -> Vec<WhyFinding> {
    let mut builder = Builder {
        evidence,
        load,
        split,
        found: Vec::new(),
    };
    builder.gate();
    builder.reads(&blame.rest);
    builder.writes(&blame.rest);
    blame
        .drives
        .iter()
        .take(DRIVES_MAX)
        .for_each(|slow| builder.drive(slow));
    builder.work(blame.work);
    builder.engine(blame.rest.engine);
    let mut found = builder.found;
    found.sort_by(|one, other| {
        let part = |finding: &WhyFinding| finding.explained_us.unwrap_or(0.0);
        part(other).total_cmp(&part(one))
    });
    found
}

/// The cause that an alert stands for; nothing if it does not affect latency.
fn cause(code: EventCode) -> Option<WhyCause> {
    match code {
        EventCode::PoolFailed | EventCode::PoolAbsent => Some(WhyCause::PoolFailed),
        EventCode::PoolFull => Some(WhyCause::PoolFull),
        EventCode::DriveFailing | EventCode::LegOut => Some(WhyCause::DriveFailing),
        EventCode::DriveSlow => Some(WhyCause::DriveSlow),
        _ => None,
    }
}

/// Conditions whose part of the latency cannot be measured, from alerts. A slow drive that
/// `measured` names already is left out.
pub fn conditions(evidence: &Evidence, measured: &[WhyFinding]) -> Vec<WhyFinding> {
    let is_known = |cause: WhyCause, subject: &str| {
        let mut known = measured.iter();
        known.any(|known| known.cause == cause && known.title.contains(subject))
    };
    let found = evidence.alerts.iter().filter_map(|alert| {
        let cause = cause(alert.code)?;
        if is_known(cause, &alert.subject) {
            return None;
        }
        let title = match cause {
            WhyCause::PoolFailed => "the pool cannot serve all of its data".to_owned(),
            WhyCause::PoolFull => "the pool is full".to_owned(),
            WhyCause::DriveSlow => format!("the slow drive {}", alert.subject),
            _ => format!("the failing drive or mirror {}", alert.subject),
        };
        let advice = Some(alert.advice.clone()).filter(|advice| !advice.is_empty());
        Some(WhyFinding {
            cause,
            title,
            share_percent: None,
            explained_us: None,
            evidence: vec![alert.message.clone()],
            actions: advice.map(act).into_iter().collect(),
        })
    });
    found.collect()
}
