//! Fill levels of pools: observed, forecast, and logged once per level.

use super::exports::Exports;
use crate::Control;
use crate::fill::{Gauge, Trend, level};
use crate::mapping::ToApi;
use crate::sync::lock;
use api::v1;
use engine::{FillPart, FillStatus, PoolStatus};
use reactor::Space;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use units::{format_bytes, roughly};

/// By the pool's id.
type Gauges = BTreeMap<(String, FillPart), Gauge>;

/// Name of a part, and what to do about it.
fn words(part: FillPart) -> (&'static str, &'static str) {
    match part {
        FillPart::Space => ("its space", "add a vdrive or delete data"),
        FillPart::Metadata => (
            "its metadata region",
            "delete snapshots, clones or volumes: its size is fixed",
        ),
        FillPart::Fast => (
            "its fast tier",
            "data arrives faster than it is demoted: once the tier is full, writes are limited to \
             the speed of the slow tier",
        ),
        FillPart::Slow => ("its slow tier", "add a slow vdrive or delete data"),
    }
}

/// Fill level in words, and what to do.
fn told(fill: &FillStatus, trend: Trend) -> (String, &'static str) {
    let (name, advice) = words(fill.part);
    let expected = match trend {
        Trend::Filling { full_s, .. } if fill.used < fill.capacity => {
            format!(", forecast to be full in about {}", roughly(full_s))
        }
        _ => String::new(),
    };
    let text = format!(
        "{name} is {:.1} % full ({} of {}){expected}",
        100.0 * fill.used as f64 / fill.capacity.max(1) as f64,
        format_bytes(fill.used),
        format_bytes(fill.capacity)
    );
    (text, advice)
}

fn sentence(fill: &FillStatus, trend: Trend) -> String {
    let (text, advice) = told(fill, trend);
    format!("{text}: {advice}")
}

/// The same for hosts.
pub(super) fn space(fill: &FillStatus, pool: &PoolStatus) -> Space {
    let at = |level: &u8| (u128::from(fill.capacity) * u128::from(*level) / 100) as u64;
    Space {
        used: fill.used,
        capacity: fill.capacity,
        warn_at: pool.warn_at.first().map(at),
    }
}

fn shown(fill: &FillStatus, level: u8, trend: Trend) -> v1::Fill {
    let (trend, seconds_to_full, trend_s) = match trend {
        Trend::Unknown => (v1::Trend::Unknown, None, None),
        Trend::Steady => (v1::Trend::Steady, None, None),
        Trend::Falling => (v1::Trend::Falling, None, None),
        Trend::Filling { full_s, seen_s } => (v1::Trend::Filling, Some(full_s), Some(seen_s)),
    };
    let percent = u128::from(fill.used) * 100 / u128::from(fill.capacity.max(1));
    v1::Fill {
        part: fill.part.to_api(),
        used: fill.used,
        capacity: fill.capacity,
        percent: percent as u64,
        level: Some(level).filter(|level| *level > 0),
        trend,
        seconds_to_full,
        trend_s,
    }
}

/// Fill levels of pools since the daemon's start.
pub struct FillMonitor {
    control: Arc<dyn Control>,
    exports: Arc<Exports>,
    began: Instant,
    /// Locked briefly.
    gauges: Mutex<Gauges>,
}

impl FillMonitor {
    /// A monitor without samples; `began`: the daemon's start.
    pub(super) fn new(control: &Arc<dyn Control>, exports: &Arc<Exports>, began: Instant) -> Self {
        Self {
            control: Arc::clone(control),
            exports: Arc::clone(exports),
            began,
            gauges: Mutex::default(),
        }
    }

    /// Fill levels of a pool's parts, and warnings for those that have reached a level.
    pub(super) fn of(&self, status: &PoolStatus) -> (Vec<v1::Fill>, Vec<String>) {
        let gauges = lock(&self.gauges);
        let (mut fills, mut warnings) = (Vec::new(), Vec::new());
        for fill in &status.fills {
            let gauge = gauges.get(&(status.id.clone(), fill.part));
            let before = gauge.map_or(0, |gauge| gauge.level);
            let level = level(before, fill.used, fill.capacity, &status.warn_at);
            let trend = gauge.map_or(Trend::Unknown, |gauge| gauge.trend(fill.capacity));
            if level > 0 {
                warnings.push(sentence(fill, trend));
            }
            fills.push(shown(fill, level, trend));
        }
        (fills, warnings)
    }

    /// Samples the fill levels at `up_s`, seconds of a monotonic clock, and logs each new level.
    pub fn watch(&self, up_s: u64) {
        let pools = match self.control.pool_list() {
            Ok(pools) => pools,
            Err(error) => {
                tracing::error!("cannot read the fill levels of pools: {error}");
                return;
            }
        };
        let mut gauges = lock(&self.gauges);
        let mut told = Vec::new();
        let mut seen = BTreeSet::new();
        for pool in &pools {
            for fill in &pool.fills {
                let key = (pool.id.clone(), fill.part);
                let gauge = gauges.entry(key.clone()).or_default();
                seen.insert(key);
                gauge.note(up_s, fill.used);
                let before = gauge.level;
                gauge.level = level(before, fill.used, fill.capacity, &pool.warn_at);
                if fill.part == FillPart::Space {
                    told.push((pool.name.clone(), space(fill, pool), gauge.level > before));
                }
                if gauge.level > before {
                    let sentence = sentence(fill, gauge.trend(fill.capacity));
                    tracing::warn!("pool {}: {sentence}", pool.name);
                } else if gauge.level < before {
                    let (name, _) = words(fill.part);
                    tracing::info!("pool {}: {name} is below {before} % again", pool.name);
                }
            }
        }
        gauges.retain(|key, _| seen.contains(key));
        drop(gauges);
        for (pool, space, warns) in told {
            self.exports.note_space(&pool, space, warns);
        }
    }

    /// Parts of a pool at a warning level: level, description, and what to do.
    pub(super) fn filled(&self, pool: &PoolStatus) -> Vec<(FillPart, u8, String, &'static str)> {
        let gauges = lock(&self.gauges);
        let filled = pool.fills.iter().filter_map(|fill| {
            let gauge = gauges.get(&(pool.id.clone(), fill.part))?;
            let (text, advice) = told(fill, gauge.trend(fill.capacity));
            (gauge.level > 0).then_some((fill.part, gauge.level, text, advice))
        });
        filled.collect()
    }

    /// Samples the fill levels now.
    pub fn watch_now(&self) {
        self.watch(self.began.elapsed().as_secs());
    }
}
