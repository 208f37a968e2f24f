//! Why a volume is slow: gathers the evidence from the history, the status and the events; the
//! answer is derived by [`crate::why`].

use super::Result;
use super::history::{History, Window};
use super::jobs::Jobs;
use super::notifications::Notifications;
use super::registry::PoolRegistry;
use super::status_cache::StatusCache;
use crate::control::PoolCalls;
use crate::events::Filter;
use crate::history::{Kind, time};
use crate::why::{
    AlertSeen, DriveLoad, Evidence, Load, PlacementSeen, PolicySeen, TierLoad, Work, answer,
};
use api::v1::{self, Event, EventCode, EventState, Problem};
use engine::{PoolLook, PoolStatus, Tier, VolumeLook};
use std::sync::Arc;

/// Length of the examined time by default, in seconds.
const USUAL_S: u64 = 300;
/// Maximum length of it.
const LONGEST_S: u64 = 7 * 86_400;
/// Time that ends at most this long ago counts as now.
const LIVE_S: u64 = 30;
/// Length of the time before it whose mean latency is usual.
const BEFORE_S: u64 = 86_400;
/// Maximum number of events searched for alerts.
const EVENTS_MAX: usize = 10_000;
/// Built-in policies have numbers below this.
const OWN_POLICIES: u32 = 100;

/// Codes of alerts that can affect latency.
const CODES: [EventCode; 6] = [
    EventCode::DriveSlow,
    EventCode::DriveFailing,
    EventCode::LegOut,
    EventCode::PoolAbsent,
    EventCode::PoolFailed,
    EventCode::PoolFull,
];

/// Kinds of jobs that load the drives of a pool.
const KINDS: [&str; 4] = ["scrub", "resync", "evacuate", "delete"];

/// Diagnosis of volumes.
pub struct WhySlow {
    registry: Arc<PoolRegistry>,
    status: Arc<StatusCache>,
    jobs: Arc<Jobs>,
    history: Arc<History>,
    notifications: Arc<Notifications>,
}

/// The examined time.
#[derive(Clone, Copy)]
struct Period {
    from_s: u64,
    to_s: u64,
    now_s: u64,
}

impl Period {
    /// Checks the requested time; the last five minutes by default.
    fn new(from_s: Option<u64>, to_s: Option<u64>, now_s: u64) -> Result<Self> {
        let to_s = to_s.unwrap_or(now_s).min(now_s);
        let from_s = from_s.unwrap_or_else(|| to_s.saturating_sub(USUAL_S));
        if from_s >= to_s {
            return Err(Problem::invalid(format!(
                "the time from {from_s} to {to_s} is empty, or has not come yet: `from` must \
                 precede `to` and now"
            )));
        }
        if to_s - from_s > LONGEST_S {
            return Err(Problem::invalid(format!(
                "{} s are longer than 7 days: choose a shorter time",
                to_s - from_s
            )));
        }
        Ok(Self {
            from_s,
            to_s,
            now_s,
        })
    }

    fn both(self) -> (u64, u64) {
        (self.from_s, self.to_s)
    }

    fn is_live(self) -> bool {
        self.now_s.saturating_sub(self.to_s) <= LIVE_S
    }
}

/// The load of a volume. Indices, here and below, are those of the metrics in `history::Kind`.
fn load(window: &Window) -> Load {
    let p99 = |spread| time(spread, 0.99).map(|seconds| seconds * 1e9);
    Load {
        seconds: window.seconds,
        reads: window.rate(0),
        writes: window.rate(1),
        bytes: window.rate(2) + window.rate(3),
        read_ns: window.ns(4),
        write_ns: window.ns(5),
        read_p99_ns: p99(&window.counts.reads),
        write_p99_ns: p99(&window.counts.writes),
        read_from: [6, 7, 8, 9].map(|index| window.rate(index)),
        promoted: window.rate(10),
        limit_wait: window.value(12),
        share_wait: window.value(13),
    }
}

/// Mean latency over a window, in nanoseconds, with waits at the gate; nothing without I/O.
fn mean_ns(window: &Window) -> Option<f64> {
    let load = load(window);
    let waits = load.limit_wait.unwrap_or(0.0) + load.share_wait.unwrap_or(0.0);
    let total = load.reads * load.read_ns + load.writes * load.write_ns + waits * 1e9;
    (load.iops() > 0.0).then(|| total / load.iops())
}

fn policy(look: &VolumeLook) -> Option<PolicySeen> {
    let qos = look.status.qos.as_ref()?;
    let rivals = qos.held_for.iter();
    Some(PolicySeen {
        name: qos.policy.name.clone(),
        is_built_in: qos.policy.id < OWN_POLICIES,
        group: qos.group.clone(),
        max_iops: qos.policy.max_iops,
        max_bandwidth: qos.policy.max_bandwidth,
        held_for: rivals
            .map(|rival| (rival.name.clone(), rival.share_ppm / 10_000))
            .collect(),
    })
}

/// The latency that most I/Os should not exceed: the volume's target, else that of its policy.
fn target_ns(look: &VolumeLook) -> Option<f64> {
    let of_policy = look
        .status
        .qos
        .as_ref()
        .map(|qos| qos.policy.max_latency_ns);
    [Some(look.status.targets.latency_ns), of_policy]
        .into_iter()
        .flatten()
        .find(|ns| *ns > 0)
        .map(|ns| ns as f64)
}

/// The alerts that were open in a time, of events (newest first) and of alerts that are open now.
fn alerts_of(events: &[Event], open: &[v1::Alert], period: Period) -> Vec<AlertSeen> {
    let seen = |code, subject: &v1::Subject, message: &str, advice: &str| AlertSeen {
        code,
        subject: subject.name.clone(),
        message: message.to_owned(),
        advice: advice.to_owned(),
    };
    let still = open.iter().filter(|alert| alert.since_s < period.to_s);
    let still = still.map(|alert| seen(alert.code, &alert.subject, &alert.message, &alert.advice));
    let ended = events.iter().filter_map(|event| {
        let is_after = event.state == EventState::Cleared && event.at_s >= period.from_s;
        let of = event.of.filter(|_| is_after)?;
        let raised = events.iter().find(|event| event.number == of)?;
        (raised.at_s < period.to_s).then(|| {
            seen(
                raised.code,
                &raised.subject,
                &raised.message,
                &raised.advice,
            )
        })
    });
    still.chain(ended).collect()
}

/// The jobs that loaded a pool's drives in a time.
fn work_of(jobs: Vec<v1::Job>, pool: &str, period: Period) -> Vec<Work> {
    let is_of = |job: &v1::Job| {
        let of = job.subject.split(['/', ' ']).next();
        of == Some(pool) && KINDS.contains(&job.kind.as_str())
    };
    let was = |job: &v1::Job| {
        job.began_s < period.to_s && job.ended_s.is_none_or(|ended_s| ended_s > period.from_s)
    };
    let jobs = jobs.into_iter().filter(|job| is_of(job) && was(job));
    let work = jobs.filter_map(|job| {
        let ended_s = job.ended_s.unwrap_or(period.now_s);
        let took_s = ended_s.saturating_sub(job.began_s).max(1);
        let is_running = job.state == v1::JobState::Running;
        if job.state == v1::JobState::Paused && period.is_live() {
            return None;
        }
        let rate = match is_running && period.is_live() && job.rate > 0 {
            true => job.rate as f64,
            false => job.done as f64 / took_s as f64,
        };
        Some(Work {
            job: job.id,
            kind: job.kind,
            subject: job.subject,
            rate,
            is_running,
        })
    });
    work.collect()
}

impl WhySlow {
    pub(super) fn new(
        registry: &Arc<PoolRegistry>,
        status: &Arc<StatusCache>,
        jobs: &Arc<Jobs>,
        history: &Arc<History>,
        notifications: &Arc<Notifications>,
    ) -> Self {
        Self {
            registry: Arc::clone(registry),
            status: Arc::clone(status),
            jobs: Arc::clone(jobs),
            history: Arc::clone(history),
            notifications: Arc::clone(notifications),
        }
    }

    /// Why a volume is slow, or was: from `from_s` to `to_s`, the last five minutes by default; at
    /// `now_s`, all in seconds since 1970.
    ///
    /// # Errors
    /// When the volume does not exist, or the time is invalid.
    pub fn volume(
        &self,
        pool: &str,
        volume: &str,
        (from_s, to_s): (Option<u64>, Option<u64>),
        now_s: u64,
    ) -> Result<v1::Why> {
        let period = Period::new(from_s, to_s, now_s)?;
        self.registry.pool_status(pool)?;
        let looks = self.status.recent();
        let of_pool = looks.pools.iter().find(|look| look.status.name == pool);
        let found = of_pool.and_then(|look| {
            let mut volumes = look.volumes.iter();
            Some((look, volumes.find(|known| known.status.name == volume)?))
        });
        let Some((look, known)) = found else {
            return Err(Problem::not_found(format!(
                "volume {volume} does not exist in pool {pool}: see `convect volume list {pool}`"
            )));
        };
        Ok(answer(&self.evidence(look, known, period)))
    }

    fn evidence(&self, look: &PoolLook, volume: &VolumeLook, period: Period) -> Evidence {
        let pool = &look.status.name;
        let name = &volume.status.name;
        let window =
            |object: &str, both: (u64, u64)| self.history.window(object, both, period.now_s);
        let object = Kind::Volume.object(pool, Some(name));
        let before = (period.from_s.saturating_sub(BEFORE_S), period.from_s);
        let usual = window(&object, before).and_then(|window| mean_ns(&window));
        let of_pool = window(&Kind::Pool.object(pool, None), period.both());
        let is_live = period.is_live();
        Evidence {
            pool: pool.clone(),
            volume: name.clone(),
            window: period.both(),
            is_live,
            load: window(&object, period.both()).map(|window| load(&window)),
            usual_ns: usual,
            target_ns: target_ns(volume),
            policy: policy(volume).filter(|_| is_live),
            sources: self
                .history
                .sources_since(pool, volume, period.from_s)
                .filter(|_| is_live && period.to_s - period.from_s <= USUAL_S),
            fast: self.tier(&look.status, (Tier::Fast, "fast"), period),
            slow: self.tier(&look.status, (Tier::Slow, "slow"), period),
            pool_iops: of_pool.map_or(0.0, |window| window.rate(0) + window.rate(1)),
            drives: self.drives(&look.status, period),
            work: self.work(pool, period),
            placement: is_live.then(|| self.placement(&look.status, volume)),
            alerts: self.alerts(pool, period),
        }
    }

    fn tier(
        &self,
        pool: &PoolStatus,
        (tier, name): (Tier, &str),
        period: Period,
    ) -> Option<TierLoad> {
        let vdrives = pool.vdrives.iter().filter(|vdrive| vdrive.tier == tier);
        let mut capacity = vdrives.map(|vdrive| vdrive.capacity).peekable();
        capacity.peek()?;
        let capacity: u64 = capacity.sum();
        let object = Kind::Tier.object(&pool.name, Some(name));
        let window = self.history.window(&object, period.both(), period.now_s);
        let mut load = window.map_or_else(TierLoad::default, |window| TierLoad {
            reads: window.rate(0),
            writes: window.rate(1),
            bytes: window.rate(2) + window.rate(3),
            read_ns: window.ns(4),
            write_ns: window.ns(5),
            capacity: 0.0,
            used: window.value(10),
            dirty: window.value(11),
        });
        load.capacity = capacity as f64;
        Some(load)
    }

    fn drives(&self, pool: &PoolStatus, period: Period) -> Vec<DriveLoad> {
        let mut loads = Vec::new();
        for vdrive in &pool.vdrives {
            for drive in &vdrive.drives {
                let object = Kind::Drive.object(&pool.name, Some(&drive.spec));
                let window = self.history.window(&object, period.both(), period.now_s);
                let Some(window) = window else { continue };
                loads.push(DriveLoad {
                    spec: drive.spec.clone(),
                    vdrive: vdrive.id,
                    tier: vdrive.tier,
                    reads: window.rate(0),
                    writes: window.rate(1),
                    read_ns: window.ns(4),
                    write_ns: window.ns(5),
                    errors: window.rate(6),
                    is_slow: period.is_live() && drive.slow,
                });
            }
        }
        loads
    }

    /// Background work. A failure to list the jobs is logged; the list is empty then.
    fn work(&self, pool: &str, period: Period) -> Vec<Work> {
        match self.jobs.list() {
            Ok(jobs) => work_of(jobs.items, pool, period),
            Err(problem) => {
                tracing::error!("cannot list the jobs: {problem}");
                Vec::new()
            }
        }
    }

    fn placement(&self, pool: &PoolStatus, volume: &VolumeLook) -> PlacementSeen {
        let knobs = &volume.status.knobs;
        // Pools with one tier, or without recent I/O, have no forecast.
        let forecast = self.registry.pool_what_if(&pool.name).ok();
        let hits = forecast.as_ref().and_then(|of| {
            let at = |percent| of.pool.points.iter().find(|point| point.percent == percent);
            let hits = |point: &engine::ForecastPoint| point.hits.unwrap_or(point.lru_hits);
            Some((hits(at(100)?), hits(at(200)?)))
        });
        PlacementSeen {
            is_held: pool.promotion_held,
            is_off: !knobs.promotion,
            ceiling: knobs.fast_ceiling,
            fast: volume.status.fast,
            working_set: forecast.map(|of| of.pool.used_bytes).filter(|set| *set > 0),
            hits,
        }
    }

    fn alerts(&self, pool: &str, period: Period) -> Vec<AlertSeen> {
        let filter = Filter {
            codes: CODES.to_vec(),
            pool: Some(pool.to_owned()),
            ..Filter::default()
        };
        let events = self.notifications.event_list(&filter, EVENTS_MAX).items;
        let open = self.notifications.alert_list().items;
        let of_pool = |alert: &v1::Alert| {
            let is_of = alert.subject.pool.as_deref() == Some(pool) || alert.subject.name == pool;
            is_of && CODES.contains(&alert.code)
        };
        let open: Vec<v1::Alert> = open.into_iter().filter(of_pool).collect();
        alerts_of(&events, &open, period)
    }
}

#[cfg(test)]
#[path = "why_tests.rs"]
mod tests;
