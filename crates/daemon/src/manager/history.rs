//! The history: counters of all objects are sampled once a second and recorded as rates.

mod figures;
mod sample;
mod sources;
mod window;

use super::exports::Exports;
use crate::Control;
use crate::admission::Peak;
use crate::history::{Kind, Store};
use crate::state::StateFiles;
use crate::sync::lock;
use engine::PoolLook;
use sample::{Deltas, Sample};
use sources::RecentSources;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) use window::Window;

/// The previous sample.
#[derive(Default)]
pub(super) struct Sampled {
    /// Its time: since the daemon's start, and seconds since 1970.
    at: Option<(Duration, u64)>,
    counted: BTreeMap<String, Deltas>,
    /// Recording fails, and that was logged.
    failing: bool,
}

/// Seconds that a sample covers. Whole seconds of the wall clock, so that rates sum to the
/// counters, unless the clock was set.
fn seconds_between(before: (Duration, u64), now: (Duration, u64)) -> f64 {
    let elapsed = now.0.saturating_sub(before.0).as_secs_f64();
    let shown = now.1 as f64 - before.1 as f64;
    match (shown - elapsed).abs() < 2.0 && shown >= 1.0 {
        true => shown,
        false => elapsed,
    }
}

/// Activity of open pools over time.
pub struct History {
    control: Arc<dyn Control>,
    exports: Arc<Exports>,
    store: Store,
    /// Peak second of the drives of each tier since the pool was opened, by object. Locked briefly.
    peaks: Mutex<BTreeMap<String, Peak>>,
    sources: RecentSources,
}

impl History {
    /// The history of a state folder, not loaded yet.
    pub(super) fn new(
        control: &Arc<dyn Control>,
        exports: &Arc<Exports>,
        files: &StateFiles,
    ) -> Self {
        Self {
            control: Arc::clone(control),
            exports: Arc::clone(exports),
            store: Store::new(files),
            peaks: Mutex::default(),
            sources: RecentSources::default(),
        }
    }

    /// Opens the history at `now_s`, seconds since 1970.
    pub(super) fn load(&self, now_s: u64) {
        self.store.load(now_s);
    }

    /// The peak second of an object.
    pub(super) fn peak(&self, object: &str) -> Peak {
        lock(&self.peaks).get(object).copied().unwrap_or_default()
    }

    /// Records the activity since the last sample, at `up` since the daemon's start and `at_s`,
    /// seconds since 1970.
    pub(super) fn sample(
        &self,
        sampled: &mut Sampled,
        pools: &[PoolLook],
        up: Duration,
        at_s: u64,
    ) {
        let seconds = match sampled.at {
            // The second is not over: its activity is counted in the next sample.
            Some((_, before_s)) if before_s == at_s => return,
            Some((before, before_s)) => seconds_between((before, before_s), (up, at_s)),
            None => 0.0,
        };
        sampled.at = Some((up, at_s));
        self.sources.note(pools, at_s);
        let mut sample = Sample::new(seconds, std::mem::take(&mut sampled.counted));
        let exports = self.exports.list(None).items;
        for pool in pools {
            let own = exports
                .iter()
                .filter(|export| export.pool == pool.status.name);
            let sessions = own.map(|export| (export.name.as_str(), export.sessions));
            sample.pool(pool, &sessions.collect());
        }
        sampled.counted = std::mem::take(&mut sample.counted);
        if sample.seconds == 0.0 {
            return;
        }
        self.note_peaks(&sample);
        let seconds = sample.seconds.round() as u64;
        match self
            .store
            .write(at_s, seconds, &sample.figures, &sample.counts)
        {
            Ok(()) => sampled.failing = false,
            Err(error) => {
                if !std::mem::replace(&mut sampled.failing, true) {
                    tracing::error!("cannot record history, retrying: {error}");
                }
            }
        }
    }
}

impl History {
    /// Updates the peak seconds of tiers of open pools.
    fn note_peaks(&self, sample: &Sample) {
        let mut peaks = lock(&self.peaks);
        let before = std::mem::take(&mut *peaks);
        for (object, values) in &sample.figures {
            if Kind::of(object) == Some(Kind::Tier) {
                let [reads, writes, read, written, ..] = *values;
                let peak = before.get(object).copied().unwrap_or_default();
                peaks.insert(object.clone(), peak.with(reads + writes, read + written));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_change_does_not_distort_rates() {
        let at = |up_ms: u64, at_s: u64| (Duration::from_millis(up_ms), at_s);
        for (before, now, seconds) in [
            (at(0, 100), at(1004, 101), 1.0),
            (at(0, 100), at(1004, 102), 2.0),
            (at(0, 100), at(9990, 110), 10.0),
            (at(0, 100), at(1500, 4000), 1.5),
            (at(0, 100), at(1500, 50), 1.5),
        ] {
            assert_eq!(seconds_between(before, now), seconds);
        }
    }
}
