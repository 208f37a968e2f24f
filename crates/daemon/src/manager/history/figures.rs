//! Queries of the history: metrics over time, with percentiles, hit shares and queue depth
//! (Little's law).

use super::History;
use crate::history::{Counts, Kind, Missing, Query, QueryResult, Values, time, usual_size};
use crate::manager::Result;
use api::v1::{self, Problem, ProblemCode};
use engine::{SIZE_BOUNDS, Spread, TIME_BOUNDS};

/// Default time range, in seconds.
const USUAL_S: u64 = 3600;

/// A derived metric: name, unit, and its value in a step.
type Derived = (
    &'static str,
    &'static str,
    fn(&Values, Option<&Counts>) -> Option<f64>,
);

/// Derived metrics of all kinds, whose first six values are the same.
const DERIVED: &[Derived] = &[
    ("read_latency_p50", "s", |_, counts| {
        time(&counts?.reads, 0.5)
    }),
    ("read_latency_p99", "s", |_, counts| {
        time(&counts?.reads, 0.99)
    }),
    ("read_latency_p999", "s", |_, counts| {
        time(&counts?.reads, 0.999)
    }),
    ("write_latency_p50", "s", |_, counts| {
        time(&counts?.writes, 0.5)
    }),
    ("write_latency_p99", "s", |_, counts| {
        time(&counts?.writes, 0.99)
    }),
    ("write_latency_p999", "s", |_, counts| {
        time(&counts?.writes, 0.999)
    }),
    ("read_size_p50", "B", |_, counts| usual_size(&counts?.reads)),
    ("write_size_p50", "B", |_, counts| {
        usual_size(&counts?.writes)
    }),
    ("read_share", "ratio", |values, _| {
        share(values[0], values[0] + values[1])
    }),
    ("queue_depth", "", |values, _| {
        Some(queue_depth(values)).filter(|_| !values[0].is_nan())
    }),
];

/// Derived metrics of objects that hosts access: share of read data from each tier.
const OF_HOSTS: &[Derived] = &[
    ("ram_share", "ratio", |values, _| {
        share(values[6], served(values))
    }),
    ("fast_share", "ratio", |values, _| {
        share(values[7], served(values))
    }),
    ("slow_share", "ratio", |values, _| {
        share(values[8], served(values))
    }),
];

/// Derived metric of tiers: share of the read data.
const OF_TIERS: &[Derived] = &[("share", "ratio", |values, _| share(values[6], values[7]))];

fn served(values: &Values) -> f32 {
    values[6] + values[7] + values[8]
}

fn share(part: f32, all: f32) -> Option<f64> {
    (all > 0.0).then(|| f64::from(part / all))
}

/// Mean queue depth: arrival rate times mean latency (Little's law).
fn queue_depth(values: &Values) -> f64 {
    let of = |rate: f32, latency: f32| match rate > 0.0 {
        true => f64::from(rate) * f64::from(latency),
        false => 0.0,
    };
    of(values[0], values[4]) + of(values[1], values[5])
}

fn derived(kind: Kind) -> impl Iterator<Item = &'static Derived> {
    let own = match kind {
        Kind::Pool | Kind::Volume => OF_HOSTS,
        Kind::Tier => OF_TIERS,
        Kind::Vdrive | Kind::Drive | Kind::Export | Kind::Policy => &[],
    };
    DERIVED.iter().chain(own)
}

fn spread_of(spread: &Spread) -> v1::HistorySpread {
    v1::HistorySpread {
        times: spread.times.to_vec(),
        sizes: spread.sizes.to_vec(),
    }
}

/// Histograms over the whole result.
fn spreads(counts: &[Option<Counts>]) -> Option<v1::HistorySpreads> {
    let mut all = Counts::default();
    counts.iter().flatten().for_each(|counts| all.add(counts));
    (all != Counts::default()).then(|| v1::HistorySpreads {
        time_bounds: TIME_BOUNDS.values().map(|ns| ns as f64 / 1e9).collect(),
        size_bounds: SIZE_BOUNDS.values().collect(),
        reads: spread_of(&all.reads),
        writes: spread_of(&all.writes),
    })
}

impl History {
    /// Metrics of an object over a time range, at `now_s`; all times in seconds since 1970. The
    /// last hour by default.
    ///
    /// # Errors
    /// When the object is unknown, or the query is invalid.
    pub fn query(
        &self,
        object: &str,
        series: &[&str],
        times: (Option<u64>, Option<u64>, Option<u64>),
        now_s: u64,
    ) -> Result<v1::History> {
        let (from_s, to_s, step_s) = times;
        let to_s = to_s.unwrap_or(now_s);
        let query = Query {
            object,
            from_s: from_s.unwrap_or(to_s.saturating_sub(USUAL_S)),
            to_s,
            step_s,
        };
        let found = self.store.read(&query, now_s).or_else(|missing| {
            // A new object has no history yet.
            match missing {
                Missing::Object if self.has_object(object) => {
                    query.nothing(now_s).map_err(Missing::Question)
                }
                other => Err(other),
            }
        });
        let found = found.map_err(|missing| match missing {
            Missing::Object => Problem::not_found(format!(
                "no history of '{object}': write pool/POOL, tier/POOL/fast, vdrive/POOL/1, \
                     drive/POOL/SPEC, volume/POOL/VOLUME or export/POOL/EXPORT"
            )),
            Missing::Question(why) => Problem::invalid(why),
            Missing::Io(error) => Problem::new(
                ProblemCode::Io,
                format!("cannot read the history: {error}: check the state folder"),
            ),
        })?;
        let all = all_series(object, &found);
        let known = |name: &str| all.iter().any(|series| series.name == name);
        if let Some(unknown) = series.iter().find(|name| !known(name)) {
            let known: Vec<&str> = all.iter().map(|series| series.name.as_str()).collect();
            let known = known.join(", ");
            return Err(Problem::invalid(format!(
                "{object} has no metric '{unknown}': choose from {known}"
            )));
        }
        let wanted = |name: &str| series.is_empty() || series.contains(&name);
        Ok(v1::History {
            object: object.to_owned(),
            from_s: found.from_s,
            step_s: found.step_s,
            spreads: spreads(&found.counts),
            series: all
                .into_iter()
                .filter(|series| wanted(&series.name))
                .collect(),
        })
    }

    /// Whether the object exists now.
    fn has_object(&self, object: &str) -> bool {
        let mut parts = object.splitn(3, '/').skip(1);
        let (Some(pool), name) = (parts.next(), parts.next()) else {
            return false;
        };
        let looks = self.control.look();
        let Some(look) = looks.iter().find(|look| look.status.name == pool) else {
            return false;
        };
        match (Kind::of(object), name) {
            (Some(Kind::Pool), None) => true,
            (Some(Kind::Tier), Some(name)) => {
                let tier = |name: &str| match name {
                    "fast" => Some(engine::Tier::Fast),
                    "slow" => Some(engine::Tier::Slow),
                    _ => None,
                };
                let has = |tier| look.status.vdrives.iter().any(|known| known.tier == tier);
                name == "ram" || tier(name).is_some_and(has)
            }
            (Some(Kind::Vdrive), Some(name)) => {
                let mut vdrives = look.status.vdrives.iter();
                vdrives.any(|vdrive| vdrive.id.to_string() == name)
            }
            (Some(Kind::Drive), Some(name)) => {
                let mut vdrives = look.status.vdrives.iter();
                vdrives.any(|vdrive| vdrive.drives.iter().any(|drive| drive.spec == name))
            }
            (Some(Kind::Volume), Some(name)) => {
                let mut volumes = look.volumes.iter();
                volumes.any(|volume| volume.status.name == name)
            }
            (Some(Kind::Policy), Some(name)) => {
                let policies = self.control.qos_policies(pool).unwrap_or_default();
                policies.iter().any(|policy| policy.name == name)
            }
            (Some(Kind::Export), Some(name)) => {
                let mut exports = self.exports.list(None).items.into_iter();
                exports.any(|export| export.pool == pool && export.name == name)
            }
            _ => false,
        }
    }
}

/// All metrics of an object.
fn all_series(object: &str, found: &QueryResult) -> Vec<v1::HistorySeries> {
    let Some(kind) = Kind::of(object) else {
        return Vec::new();
    };
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    let series = |(name, unit): (&str, &str), values: Vec<Option<f64>>| v1::HistorySeries {
        name: name.to_owned(),
        unit: unit.to_owned(),
        values,
    };
    let kept = kind.names().enumerate().map(|(index, row)| {
        let value = |step: &Option<Values>| step.and_then(|step| finite(step[index].into()));
        series(row, found.steps.iter().map(value).collect())
    });
    let counts = |at: usize| found.counts.get(at).and_then(Option::as_ref);
    let derived = derived(kind).map(|(name, unit, of)| {
        let steps = found.steps.iter().enumerate();
        let value = |(at, step): (usize, &Option<Values>)| {
            let step = step.as_ref()?;
            of(step, counts(at)).and_then(finite)
        };
        series((name, unit), steps.map(value).collect())
    });
    kept.chain(derived).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_depth_follows_littles_law() {
        // 1,000 reads per second of 4 ms each, 500 writes of 2 ms.
        let of = |first: &[f32; 6]| Kind::Volume.of_first(first);
        let values = of(&[1000.0, 500.0, 0.0, 0.0, 0.004, 0.002]);
        assert!((queue_depth(&values) - 5.0).abs() < 1e-6);
        let quiet = of(&[0.0, 0.0, 0.0, 0.0, f32::NAN, f32::NAN]);
        assert_eq!(queue_depth(&quiet), 0.0);
    }
}
