//! The poller: once a second it checks pools, drives, exports, schedules, jobs and log-ins, and
//! passes its findings to the events, which raise and clear alerts.

mod goals;

use super::exports::Exports;
use super::fills::{FillMonitor, space};
use super::findings::{finding, of_drive, of_pool};
use super::health::DriveHealthMonitor;
use super::history::{History, Sampled};
use super::jobs::Jobs;
use super::notifications::Notifications;
use super::promises::{Promises, QosBottlenecks, find_broken};
use super::registry::PoolRegistry;
use super::schedules::Schedules;
use super::status_cache::StatusCache;
use super::wear::WearMonitor;
use crate::access::{Access, Failures};
use crate::clock::now_s;
use crate::events::{Events, Finding};
use crate::state::Trouble;
use crate::sync::lock;
use api::v1::{EventCode, Subject, SubjectKind};
use engine::{DriveStatus, FillPart, PoolStatus, Tier};
use goals::{Goals, find_unmet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use units::format_bytes;

/// Minimum observation time before daily writes are judged, in seconds.
const WEAR_LEAST_S: u64 = 86_400;

/// State of the previous check, to detect changes.
#[derive(Default)]
struct Observed {
    /// By pool and drive id: failed and late requests, and repaired blocks.
    drives: BTreeMap<(String, String), (u64, u64)>,
    /// Failed jobs that were reported.
    failed: BTreeSet<u64>,
    sampled: Sampled,
    goals: Goals,
    promises: Promises,
}

impl Observed {
    /// Finds problems of a drive, including new errors since the previous check.
    fn drive(&mut self, pool: &PoolStatus, drive: &DriveStatus, found: &mut Vec<Finding>) {
        let (name, spec) = (&pool.name, &drive.spec);
        let mut add = |code, message: String, advice: String| {
            found.push(finding(code, of_drive(name, drive), message, advice));
        };
        if drive.state != "online" {
            let why = match drive.why.is_empty() {
                true => String::new(),
                false => format!(" ({})", drive.why),
            };
            let message = match drive.state.as_str() {
                "syncing" => format!("drive {spec} of pool {name} is resyncing"),
                state => {
                    format!("drive {spec} of pool {name} is {state}{why}: its mirror is degraded")
                }
            };
            let advice = format!(
                "bring it online with `convect pool online {name} {spec}`, or replace it with \
                 `convect pool replace {name} {spec} NEW`"
            );
            add(EventCode::LegOut, message, advice);
        }
        if drive.slow {
            let message = format!(
                "drive {spec} of pool {name} does not respond, or takes far longer than usual"
            );
            let advice = "check for other users of the drive and its SMART report; a mirror reads \
             from its other drives";
            add(EventCode::DriveSlow, message, advice.to_owned());
        }
        let key = (pool.id.clone(), drive.id.clone());
        let now = (drive.errors + drive.timeouts, drive.repaired);
        let before = self.drives.insert(key, now).unwrap_or_default();
        if now.0 > before.0 {
            let message = format!(
                "since the pool was opened {} requests to drive {spec} of pool {name} have failed \
                 and {} timed out",
                drive.errors, drive.timeouts
            );
            let advice = format!(
                "check the cables and the SMART report; replace the drive with `convect pool \
                 replace {name} {spec} NEW`"
            );
            add(EventCode::DriveFailing, message, advice);
        }
        if now.1 > before.1 {
            let message = format!(
                "drive {spec} of pool {name} returned {} corrupt blocks, which were repaired",
                drive.repaired
            );
            let advice = format!(
                "scrub the pool with `convect pool scrub {name}`; if it happens again, replace \
                 the drive"
            );
            add(EventCode::DriveCorrupt, message, advice);
        }
    }
}

/// Finds pools that were opened in an outdated state.
fn find_old(pool: &PoolStatus, found: &mut Vec<Finding>) {
    let name = &pool.name;
    for old in &pool.old {
        let subject = match &old.drive {
            Some(spec) => Subject {
                kind: SubjectKind::Drive,
                pool: Some(name.clone()),
                name: spec.clone(),
            },
            None => of_pool(name, name),
        };
        found.push(finding(
            EventCode::DriveOld,
            subject,
            format!(
                "pool {name} was opened in an outdated state: {}",
                old.message
            ),
            format!(
                "later writes are lost: compare with a backup, and scrub the pool with `convect \
                 pool scrub {name}`"
            ),
        ));
    }
}

/// The parts that are checked.
pub(super) struct Observables {
    pub registry: Arc<PoolRegistry>,
    pub access: Arc<Access>,
    pub status: Arc<StatusCache>,
    pub exports: Arc<Exports>,
    pub jobs: Arc<Jobs>,
    pub schedules: Arc<Schedules>,
    pub fills: Arc<FillMonitor>,
    pub wear: Arc<WearMonitor>,
    pub health: Arc<DriveHealthMonitor>,
    pub history: Arc<History>,
    pub notifications: Arc<Notifications>,
    pub bottlenecks: Arc<QosBottlenecks>,
}

/// Checks the parts, and passes findings to the events.
pub struct Observer {
    of: Observables,
    /// Share of a fast-tier drive's size in percent for daily writes; 0: unlimited.
    flash_daily_percent: u32,
    began: Instant,
    /// Creation time: seconds since 1970.
    made_s: u64,
    /// State of the previous check. Held during a check.
    observed: Mutex<Observed>,
}

impl Observer {
    /// An observer without a previous check; `began`: the daemon's start.
    pub(super) fn new(of: Observables, flash_daily_percent: u32, began: Instant) -> Self {
        Self {
            of,
            flash_daily_percent,
            began,
            made_s: now_s(),
            observed: Mutex::default(),
        }
    }

    /// Checks at `up` since the daemon's start and `at_s`, seconds since 1970.
    pub fn observe(&self, up: Duration, at_s: u64) {
        let mut observed = lock(&self.observed);
        let look = self.of.status.refresh();
        if self.of.registry.has_stopped() {
            return;
        }
        let stored = (look.pools.iter()).flat_map(|pool| pool.volumes.iter());
        let stored = stored.map(|volume| {
            let status = &volume.status;
            ((status.pool.as_str(), status.name.as_str()), status.mapped)
        });
        self.of.exports.note_stored(&stored.collect());
        let pools = || look.pools.iter().map(|pool| &pool.status);
        for pool in pools() {
            let fill = pool.fills.iter().find(|fill| fill.part == FillPart::Space);
            if let Some(fill) = fill {
                self.of
                    .exports
                    .note_space(&pool.name, space(fill, pool), false);
            }
        }
        let mut found = Vec::new();
        for pool in pools() {
            self.find_in_pool(pool, at_s, &mut found);
            for drive in pool.vdrives.iter().flat_map(|vdrive| &vdrive.drives) {
                observed.drive(pool, drive, &mut found);
            }
        }
        let known: BTreeSet<(&str, &str)> = pools()
            .flat_map(|pool| {
                let drives = pool.vdrives.iter().flat_map(|vdrive| &vdrive.drives);
                drives.map(|drive| (pool.id.as_str(), drive.id.as_str()))
            })
            .collect();
        observed
            .drives
            .retain(|(pool, drive), _| known.contains(&(pool.as_str(), drive.as_str())));
        find_unmet(&mut observed.goals, &look.pools, up.as_secs(), &mut found);
        let bottlenecks = find_broken(
            &mut observed.promises,
            &look.pools,
            up.as_secs(),
            &mut found,
        );
        self.of.bottlenecks.set(bottlenecks);
        self.find_elsewhere(&mut found);
        self.events().look(up.as_secs(), at_s, found);
        self.of
            .history
            .sample(&mut observed.sampled, &look.pools, up, at_s);
        self.note_failed_jobs(&mut observed.failed, at_s);
        self.note_switched_exports(at_s);
        drop(observed);
        // Drives that a degraded pool lacks must not be used at the next start.
        if pools().any(|pool| pool.state != "online") {
            self.of.registry.refresh();
        }
    }

    /// Checks now.
    pub fn observe_now(&self) {
        self.observe(self.began.elapsed(), now_s());
    }

    fn events(&self) -> &Events {
        self.of.notifications.events()
    }

    fn find_in_pool(&self, pool: &PoolStatus, at_s: u64, found: &mut Vec<Finding>) {
        let name = &pool.name;
        match pool.state.as_str() {
            "failed" => found.push(finding(
                EventCode::PoolFailed,
                of_pool(name, name),
                format!("pool {name} has failed: {}", pool.messages.join("; ")),
                format!("reconnect the drives that `convect pool status {name}` lists as missing"),
            )),
            "full" => found.push(finding(
                EventCode::PoolFull,
                of_pool(name, name),
                format!("pool {name} is full: writes that need new space fail"),
                "delete snapshots or volumes, or add a vdrive with `convect pool add`",
            )),
            _ => {}
        }
        for (part, level, text, advice) in self.of.fills.filled(pool) {
            let part = match part {
                FillPart::Space => "space",
                FillPart::Metadata => "metadata",
                FillPart::Slow => "slow",
                // It fills whenever data arrives faster than it is demoted, and recovers by itself.
                FillPart::Fast => continue,
            };
            found.push(Finding {
                grade: level,
                ..finding(
                    EventCode::PoolFilling,
                    of_pool(name, part),
                    format!("pool {name}: {text}"),
                    advice,
                )
            });
        }
        self.find_wear(pool, at_s, found);
        self.of.health.find(pool, found);
        find_old(pool, found);
        self.find_damage(pool, found);
    }

    fn find_wear(&self, pool: &PoolStatus, at_s: u64, found: &mut Vec<Finding>) {
        let limit = u128::from(self.flash_daily_percent);
        let fast = pool
            .vdrives
            .iter()
            .filter(|vdrive| vdrive.tier == Tier::Fast);
        for drive in fast.flat_map(|vdrive| &vdrive.drives) {
            let wear = self.of.wear.of(&pool.id, drive);
            let watched = wear
                .since_s
                .is_some_and(|since_s| at_s.saturating_sub(since_s) >= WEAR_LEAST_S);
            let daily = wear.daily.filter(|_| watched && limit > 0).unwrap_or(0);
            if u128::from(daily) * 100 <= u128::from(drive.size) * limit {
                continue;
            }
            let (name, spec) = (&pool.name, &drive.spec);
            let message = format!(
                "{} per day are written to drive {spec} of pool {name}, which has {}: more than \
                 {limit} % of it",
                format_bytes(daily),
                format_bytes(drive.size)
            );
            let advice = format!(
                "set a budget with `convect pool set {name} --promotion-budget SIZE`, or set the \
                 endurance of the drives in flash_daily_percent"
            );
            found.push(finding(
                EventCode::FlashWearing,
                of_drive(name, drive),
                message,
                advice,
            ));
        }
    }

    /// Finds damage found by scrubs, until a complete scrub finds none.
    fn find_damage(&self, pool: &PoolStatus, found: &mut Vec<Finding>) {
        let (name, scrub) = (&pool.name, &pool.scrub);
        let mut add = |code, count: u64, message: String, advice: String| {
            let subject = of_pool(name, name);
            let whole = matches!(scrub.state.as_str(), "done" | "never");
            let before = self.events().open(&(code, subject.clone()));
            match (count > 0, before) {
                (true, _) => found.push(finding(code, subject, message, advice)),
                (false, Some(alert)) if !whole => {
                    found.push(finding(code, subject, alert.message, alert.advice));
                }
                (false, _) => {}
            }
        };
        add(
            EventCode::ScrubFound,
            scrub.errors,
            format!(
                "the scrub of pool {name} found {} corrupt copies; {} were repaired",
                scrub.errors, scrub.repaired
            ),
            format!("check the drives that `convect pool status {name}` lists, and scrub again"),
        );
        let (message, advice) = match scrub.lost {
            0 => (
                format!(
                    "recovery of pool {name} found {} lost blocks: their latest content is \
                     unreadable",
                    pool.opening_lost
                ),
                format!(
                    "the blocks are listed in the daemon's log: rewrite them or restore them from \
                     a backup, then run `convect pool scrub {name}`"
                ),
            ),
            lost => (
                format!("the scrub of pool {name} found {lost} blocks without a correct copy"),
                format!("restore the ranges that `convect pool status {name}` lists from a backup"),
            ),
        };
        add(
            EventCode::DataLost,
            scrub.lost + pool.opening_lost,
            message,
            advice,
        );
    }

    /// Finds problems of other objects than pools.
    fn find_elsewhere(&self, found: &mut Vec<Finding>) {
        for absent in self.of.registry.absent_pools() {
            found.push(finding(
                EventCode::PoolAbsent,
                of_pool(&absent.name, &absent.name),
                absent.message.clone(),
                format!(
                    "reconnect its drives, then run `convect pool import {}`",
                    absent.name
                ),
            ));
        }
        for export in self.of.exports.list(None).items {
            let Some(error) = export.error else {
                continue;
            };
            let subject = Subject {
                kind: SubjectKind::Export,
                pool: Some(export.pool.clone()),
                name: export.name.clone(),
            };
            found.push(finding(
                EventCode::ExportRefused,
                subject,
                format!(
                    "export {} of {}/{} could not be started: {error}",
                    export.name, export.pool, export.volume
                ),
                "resolve the error; the export is retried every 30 s",
            ));
        }
        for ((pool, name), trouble) in self.of.exports.host_troubles() {
            let subject = Subject {
                kind: SubjectKind::Export,
                pool: Some(pool),
                name,
            };
            let advice = "configure a unique name on each host: no two may have the same InitiatorName and \
                 ISID";
            found.push(finding(EventCode::HostsCollide, subject, trouble, advice));
        }
        for ((pool, _, name), error) in self.of.schedules.failed() {
            let message =
                format!("schedule {name} of pool {pool} could not take a due snapshot: {error}");
            let subject = Subject {
                kind: SubjectKind::Schedule,
                pool: Some(pool),
                name,
            };
            let advice = "resolve the error; the next snapshot is taken when it is due";
            found.push(finding(EventCode::SnapshotMissed, subject, message, advice));
        }
        for (name, why) in self.of.notifications.targets().failing() {
            let message = format!("notification target {name} does not accept events: {why}");
            let subject = Subject {
                kind: SubjectKind::Target,
                pool: None,
                name: name.clone(),
            };
            let advice =
                format!("resolve the error and test with `convect alert target test {name}`");
            found.push(finding(EventCode::DeliveryFailed, subject, message, advice));
        }
        find_troubles(&self.of.registry.state().files().troubles(), found);
        find_failures(self.of.access.failures(), found);
        if let Some(number) = self.of.access.broken_at() {
            let subject = Subject {
                kind: SubjectKind::Daemon,
                pool: None,
                name: "convect".to_owned(),
            };
            found.push(finding(
                EventCode::AuditAltered,
                subject,
                format!("the audit log was modified from entry {number} on"),
                "someone with write access to the state folder changed it: compare it with a copy",
            ));
        }
    }

    /// Records an event for each export that a user enabled or disabled.
    fn note_switched_exports(&self, at_s: u64) {
        for switched in self.of.exports.take_switched() {
            let (name, volume) = (&switched.name, &switched.volume);
            let pool = &switched.pool;
            let subject = Subject {
                kind: SubjectKind::Export,
                pool: Some(pool.clone()),
                name: name.clone(),
            };
            let (code, what, advice) = match switched.enabled {
                true => (EventCode::ExportEnabled, "enabled", ""),
                false => (
                    EventCode::ExportDisabled,
                    "disabled",
                    "hosts cannot use it until `convect export enable NAME`",
                ),
            };
            let message = format!("export {name} of {pool}/{volume} was {what}");
            self.events().note(code, subject, (message, advice), at_s);
        }
    }

    /// Records an event for each newly failed job. `told`: those recorded before.
    fn note_failed_jobs(&self, told: &mut BTreeSet<u64>, at_s: u64) {
        let failed: Vec<_> = self
            .of
            .jobs
            .recent()
            .into_iter()
            .filter(|job| job.state == api::v1::JobState::Failed)
            // Failed jobs of earlier daemons were recorded by them.
            .filter(|job| job.ended_s.is_none_or(|ended_s| ended_s >= self.made_s))
            .collect();
        for job in failed.iter().filter(|job| !told.contains(&job.id)) {
            let subject = Subject {
                kind: SubjectKind::Job,
                pool: job.subject.split('/').next().map(str::to_owned),
                name: job.id.to_string(),
            };
            let message = format!(
                "job {} ({} of {}) failed: {}",
                job.id, job.kind, job.subject, job.message
            );
            let advice = "resolve the error and start it again";
            self.events()
                .note(EventCode::JobFailed, subject, (message, advice), at_s);
        }
        *told = failed.into_iter().map(|job| job.id).collect();
    }
}

/// Finds files of the state folder that cannot be written or were lost.
fn find_troubles(troubles: &[(&'static str, Trouble)], found: &mut Vec<Finding>) {
    for (name, trouble) in troubles {
        let subject = Subject {
            kind: SubjectKind::Daemon,
            pool: None,
            name: (*name).to_owned(),
        };
        found.push(match trouble {
            Trouble::Unwritten(why) => finding(
                EventCode::StateUnwritten,
                subject,
                format!("cannot write {name} in the state folder: {why}"),
                "free space in the state folder or correct its permissions; pools stay available \
                 meanwhile, and changes that need the audit log are refused",
            ),
            Trouble::Damaged(why, at) => finding(
                EventCode::StateDamaged,
                subject,
                format!("{name} in the state folder was corrupt and is ignored: {why}"),
                format!(
                    "restore it from a copy and restart the daemon, or configure its content \
                     again; then remove {}",
                    at.display()
                ),
            ),
        });
    }
}

/// Finds failed authentication attempts, by address.
fn find_failures(failures: Failures, found: &mut Vec<Finding>) {
    let mut add = |name: String, count: u32| {
        let message = format!("{count} failed authentication attempts from {name}");
        let subject = Subject {
            kind: SubjectKind::Address,
            pool: None,
            name,
        };
        let advice = "identify the source: a program with an expired token, or an intruder";
        found.push(finding(EventCode::LoginFailed, subject, message, advice));
    };
    for (address, count) in failures.by {
        add(address.to_string(), count);
    }
    if failures.others > 0 {
        add("other addresses".to_owned(), failures.others);
    }
}
