//! The metrics recorded for each kind of object, and how steps are aggregated. Pure functions.

/// Maximum number of metrics of an object.
pub const SERIES_MAX: usize = 14;
/// Number of metrics of an object in the first format.
pub const FIRST_MAX: usize = 6;

/// Metrics of an object in a step, in the order of its kind. NaN: unknown.
pub type Values = [f32; SERIES_MAX];

/// Kind of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A pool, as seen by hosts.
    Pool,
    /// A tier of a pool.
    Tier,
    /// A vdrive of a pool.
    Vdrive,
    /// A drive of a pool.
    Drive,
    /// A volume.
    Volume,
    /// An export.
    Export,
    /// A quality-of-service policy of a pool: the sum of its volumes.
    Policy,
}

/// How values are aggregated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Aggregation {
    /// A rate per second; 0 where nothing was recorded while the daemon ran.
    Rate,
    /// A count; also 0 there.
    Count,
    /// A level; unknown there.
    Level,
    /// A mean weighted by the metric with this index.
    MeanOf(usize),
}

/// A metric: name, unit and aggregation.
type Row = (&'static str, &'static str, Aggregation);

/// Metrics common to all kinds.
const COMMON: [Row; 6] = [
    ("reads", "1/s", Aggregation::Rate),
    ("writes", "1/s", Aggregation::Rate),
    ("read_bytes", "B/s", Aggregation::Rate),
    ("write_bytes", "B/s", Aggregation::Rate),
    ("read_latency", "s", Aggregation::MeanOf(0)),
    ("write_latency", "s", Aggregation::MeanOf(1)),
];
/// Additional metrics of pools and volumes; then those of each other kind. The last two are mean
/// numbers of operations that waited at the gate of quality of service: for the volume's own
/// maximum, and for volumes served first.
const HOSTS: &[Row] = &[
    ("ram_bytes", "B/s", Aggregation::Rate),
    ("fast_bytes", "B/s", Aggregation::Rate),
    ("slow_bytes", "B/s", Aggregation::Rate),
    ("empty_bytes", "B/s", Aggregation::Rate),
    ("promoted_bytes", "B/s", Aggregation::Rate),
    ("demoted_bytes", "B/s", Aggregation::Rate),
    ("limit_wait", "", Aggregation::Rate),
    ("share_wait", "", Aggregation::Rate),
];
const TIER: &[Row] = &[
    ("served_bytes", "B/s", Aggregation::Rate),
    ("pool_served_bytes", "B/s", Aggregation::Rate),
    ("moved_in_bytes", "B/s", Aggregation::Rate),
    ("moved_out_bytes", "B/s", Aggregation::Rate),
    ("used", "B", Aggregation::Level),
    ("dirty", "B", Aggregation::Level),
    ("shadow", "B", Aggregation::Level),
];
const DRIVE: &[Row] = &[("errors", "1/s", Aggregation::Rate)];
const VDRIVE: &[Row] = &[
    ("errors", "1/s", Aggregation::Rate),
    ("used", "B", Aggregation::Level),
];
const EXPORT: &[Row] = &[("sessions", "", Aggregation::Count)];
const POLICY: &[Row] = &[
    ("promised_iops", "1/s", Aggregation::Level),
    ("windows", "1/s", Aggregation::Rate),
    ("met", "ratio", Aggregation::MeanOf(7)),
    ("held", "1/s", Aggregation::Rate),
    ("late", "1/s", Aggregation::Rate),
];

impl Kind {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Pool, "pool"),
        (Self::Tier, "tier"),
        (Self::Vdrive, "vdrive"),
        (Self::Drive, "drive"),
        (Self::Volume, "volume"),
        (Self::Export, "export"),
        (Self::Policy, "policy"),
    ];

    /// The kind of an object, which prefixes its name.
    pub fn of(object: &str) -> Option<Self> {
        let (kind, _) = object.split_once('/')?;
        let known = Self::ALL.iter().find(|(_, name)| *name == kind);
        known.map(|(kind, _)| *kind)
    }

    /// The name of an object of this kind.
    pub fn object(self, pool: &str, name: Option<&str>) -> String {
        let kind = Self::ALL.iter().find(|(kind, _)| *kind == self);
        let kind = kind.map_or("", |(_, name)| name);
        match name {
            Some(name) => format!("{kind}/{pool}/{name}"),
            None => format!("{kind}/{pool}"),
        }
    }

    fn rows(self) -> impl Iterator<Item = &'static Row> {
        let own = match self {
            Self::Pool | Self::Volume => HOSTS,
            Self::Tier => TIER,
            Self::Vdrive => VDRIVE,
            Self::Drive => DRIVE,
            Self::Export => EXPORT,
            Self::Policy => POLICY,
        };
        COMMON.iter().chain(own)
    }

    /// Converts the metrics of a step in the first format; missing ones are unknown.
    pub fn of_first(self, first: &[f32; FIRST_MAX]) -> Values {
        let places: &[usize] = match self {
            Self::Pool | Self::Volume => &[0, 1, 2, 3, 4, 5],
            Self::Tier => &[6, 8, 10, 11, 12],
            Self::Drive => &[0, 1, 2, 3, 6],
            Self::Export => &[6],
            // Not recorded by the first format.
            Self::Vdrive | Self::Policy => &[],
        };
        let mut values = [f32::NAN; SERIES_MAX];
        for (value, place) in first.iter().zip(places) {
            values[*place] = *value;
        }
        values
    }

    /// Names and units of the metrics, in order.
    pub fn names(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.rows().map(|(name, unit, _)| (*name, *unit))
    }

    /// The values of a step for which nothing was recorded although the daemon ran.
    pub fn quiet(self) -> Values {
        let mut values = [f32::NAN; SERIES_MAX];
        for (value, (_, _, how)) in values.iter_mut().zip(self.rows()) {
            if matches!(how, Aggregation::Rate | Aggregation::Count) {
                *value = 0.0;
            }
        }
        values
    }

    /// Whether the values equal those, so that they need not be recorded.
    pub fn is_quiet(self, values: &Values) -> bool {
        let mut pairs = values.iter().zip(self.quiet());
        pairs.all(|(value, quiet)| *value == quiet || (value.is_nan() && quiet.is_nan()))
    }

    /// Aggregates steps; `None` without steps.
    pub fn merge(self, steps: &[Values]) -> Option<Values> {
        let mut merged = [f32::NAN; SERIES_MAX];
        for (index, (_, _, how)) in self.rows().enumerate() {
            let weight = |step: &Values| match how {
                Aggregation::MeanOf(of) => f64::from(step[*of]),
                _ => 1.0,
            };
            let known = steps
                .iter()
                .filter(|step| !step[index].is_nan() && weight(step) > 0.0);
            let (sum, weights) = known.fold((0.0, 0.0), |(sum, weights), step| {
                let weight = weight(step);
                (sum + f64::from(step[index]) * weight, weights + weight)
            });
            if weights > 0.0 {
                merged[index] = (sum / weights) as f32;
            }
        }
        (!steps.is_empty()).then_some(merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: f32 = f32::NAN;

    #[test]
    fn means_are_weighted_by_their_count() {
        // 1 read of 10 ms, then 99 of 1 ms, then none.
        let steps = [
            [1.0, 0.0, 0.0, 0.0, 0.010, NONE],
            [99.0, 0.0, 0.0, 0.0, 0.001, NONE],
            [0.0, 0.0, 0.0, 0.0, NONE, NONE],
        ]
        .map(|first| Kind::Volume.of_first(&first));
        let merged = Kind::Volume.merge(&steps).unwrap();
        assert!((merged[0] - 100.0 / 3.0).abs() < 1e-4);
        assert!((merged[4] - 0.00109).abs() < 1e-7, "{}", merged[4]);
        assert!(merged[5].is_nan());
        assert!(Kind::Volume.merge(&[]).is_none());
    }

    #[test]
    fn quiet_values_equal_those_of_missing_steps() {
        for (kind, _) in Kind::ALL {
            assert!(kind.is_quiet(&kind.quiet()));
            assert!(kind.names().count() <= SERIES_MAX);
        }
        let but = |kind: Kind, name: &str, is: f32| {
            let mut values = kind.quiet();
            let at = kind.names().position(|(known, _)| known == name);
            values[at.unwrap()] = is;
            values
        };
        for name in ["writes", "read_bytes", "slow_bytes", "demoted_bytes"] {
            assert!(!Kind::Volume.is_quiet(&but(Kind::Volume, name, 1.0)));
        }
        // Fill levels must be recorded.
        for kind in [Kind::Tier, Kind::Vdrive] {
            assert!(!kind.is_quiet(&but(kind, "used", 5.0)));
        }
    }

    #[test]
    fn metrics_of_the_first_format_keep_their_names() {
        for (kind, names) in [
            (
                Kind::Volume,
                &[
                    "reads",
                    "writes",
                    "read_bytes",
                    "write_bytes",
                    "read_latency",
                    "write_latency",
                ][..],
            ),
            (
                Kind::Tier,
                &["served_bytes", "moved_in_bytes", "used", "dirty", "shadow"],
            ),
            (
                Kind::Drive,
                &["reads", "writes", "read_bytes", "write_bytes", "errors"],
            ),
            (Kind::Export, &["sessions"]),
        ] {
            let values = kind.of_first(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
            let mut known = vec![""; names.len()];
            for ((name, _), value) in kind.names().zip(values) {
                if !value.is_nan() {
                    known[value as usize - 1] = name;
                }
            }
            assert_eq!(known, names, "{kind:?}");
        }
    }

    #[test]
    fn kind_is_parsed_from_object_name() {
        assert_eq!(Kind::Pool.object("tank", None), "pool/tank");
        let drive = Kind::Drive.object("tank", Some("file:/dev/sda"));
        assert_eq!(Kind::of(&drive), Some(Kind::Drive));
        assert_eq!(Kind::of("tank"), None);
        assert_eq!(Kind::of("other/tank"), None);
    }
}
