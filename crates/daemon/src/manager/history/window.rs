//! Means of an object over a time range, for diagnosis.

use super::History;
use crate::history::{Counts, Kind, Query, Values};
use crate::why::Sources;
use engine::VolumeLook;

/// What is recorded of an object in a time range.
pub struct Window {
    /// Its metrics, as means.
    pub values: Values,
    /// Its histograms.
    pub counts: Counts,
    /// Seconds with records.
    pub seconds: f64,
}

impl Window {
    /// A metric by its index; nothing if it is unknown.
    pub fn value(&self, index: usize) -> Option<f64> {
        let value = self.values.get(index).copied()?;
        Some(f64::from(value)).filter(|value| value.is_finite())
    }

    /// A rate by its index; 0 if it is unknown.
    pub fn rate(&self, index: usize) -> f64 {
        self.value(index).unwrap_or(0.0)
    }

    /// A mean latency by its index in nanoseconds; 0 without operations.
    pub fn ns(&self, index: usize) -> f64 {
        self.rate(index) * 1e9
    }
}

impl History {
    /// Means of an object from `from_s` to `to_s` (exclusive), at `now_s`; nothing if it has no
    /// records there.
    pub(in crate::manager) fn window(
        &self,
        object: &str,
        (from_s, to_s): (u64, u64),
        now_s: u64,
    ) -> Option<Window> {
        let query = Query {
            object,
            from_s,
            to_s,
            step_s: None,
        };
        let found = self.store.read(&query, now_s).ok()?;
        let known: Vec<Values> = found.steps.iter().flatten().copied().collect();
        let values = Kind::of(object)?.merge(&known)?;
        let mut counts = Counts::default();
        found
            .counts
            .iter()
            .flatten()
            .for_each(|more| counts.add(more));
        Some(Window {
            values,
            counts,
            seconds: known.len() as f64 * found.step_s as f64,
        })
    }

    /// Read time of a volume by tier since `from_s`, as far back as it is known.
    pub(in crate::manager) fn sources_since(
        &self,
        pool: &str,
        volume: &VolumeLook,
        from_s: u64,
    ) -> Option<Sources> {
        self.sources.since(pool, volume, from_s)
    }
}
