//! Quality-of-service policies of a pool and the policies that come with every pool (docs/qos.md), as labels keep them.
//!
//! A **group** is a tenant of several volumes that share one policy: its minimums and maximums are those of their sum.
//!
//! Leaves out: what a policy does (the crate `qos`), and which volume has which ([`VolumeConfig::policy`],
//! [`VolumeConfig::group`]).

use crate::ReactionConfig;
use crate::VolumeConfig;
use crate::config_check::{need, whole_limit};
use crate::knobs::is_default;
use serde::{Deserialize, Serialize};

/// Most policies of a pool, without the built-in ones.
pub const QOS_POLICIES_MAX: usize = 64;
/// Most groups of a pool.
pub const QOS_GROUPS_MAX: usize = 256;
/// Number of the first policy that a pool makes: those below are built in.
pub const QOS_OWN_FROM: u32 = 100;
/// Most operations per second, in a policy.
const IOPS_MAX: u64 = 1_000_000_000;
/// Most bytes per second, in a policy.
const BANDWIDTH_MAX: u64 = 1 << 40;
/// Maximum latencies, in nanoseconds: from 100 µs to an hour.
const LATENCY_NS: std::ops::RangeInclusive<u64> = 100_000..=3_600_000_000_000;
/// Longest burst, in seconds.
const BURST_MAX_S: u32 = 3600;
/// Service levels, the most important first.
pub const QOS_LEVELS: std::ops::RangeInclusive<u8> = 1..=5;
/// Weights.
const WEIGHTS: std::ops::RangeInclusive<u32> = 1..=10_000;
/// The weight of a policy where none was chosen, and of a volume without a policy.
pub const QOS_WEIGHT: u32 = 100;
/// Largest part of the RAM cache that a policy guarantees, in percent: the rest belongs to all volumes.
pub const QOS_RAM_MAX: u8 = 75;
/// Longest name of a policy or a group, in bytes.
const NAME_MAX: usize = 63;

fn weight() -> u32 {
    QOS_WEIGHT
}

fn is_weight(weight: &u32) -> bool {
    *weight == QOS_WEIGHT
}

/// Guarantees and limits of a volume. 0 means none for every figure but level and weight.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QosPolicyConfig {
    /// Its number, never used again in its pool.
    pub id: u32,
    /// Its name, unique in its pool.
    pub name: String,
    /// Service level, 1 (kept longest) to 5.
    pub level: u8,
    /// Operations a second that are guaranteed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub min_iops: u64,
    /// Bytes a second that are guaranteed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub min_bandwidth: u64,
    /// Operations a second at most.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_iops: u64,
    /// Bytes a second at most.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_bandwidth: u64,
    /// Seconds' worth of its maximum that a volume saves up while it does less.
    #[serde(default, skip_serializing_if = "is_default")]
    pub burst_s: u32,
    /// Nanoseconds within which 99 of 100 operations are to end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_latency_ns: u64,
    /// Part in what is left over when everyone has their minimum.
    #[serde(default = "weight", skip_serializing_if = "is_weight")]
    pub weight: u32,
    /// How eagerly data of its volumes is promoted; `Normal`: as the level says.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reaction: ReactionConfig,
    /// Bytes of the fast tier that are guaranteed, a multiple of 4 KiB.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fast_floor: u64,
    /// Percent of the RAM cache that are guaranteed, at most [`QOS_RAM_MAX`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub ram_percent: u8,
}

/// Volumes that share a policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QosGroupConfig {
    /// Its number, that of no volume or layer: numbers of all of them are given in one row ([`PoolConfig::next_volume`]).
    ///
    /// [`PoolConfig::next_volume`]: crate::PoolConfig::next_volume
    pub id: u32,
    /// Its name, unique among the groups of its pool.
    pub name: String,
    /// Number of its policy; one that the pool does not know: none.
    pub policy: u32,
}

/// The policies of a pool.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct QosConfig {
    /// The policies that the pool has beside the built-in ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<QosPolicyConfig>,
    /// Number of the next policy; 0: [`QOS_OWN_FROM`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub next: u32,
    /// Groups of volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<QosGroupConfig>,
}

/// The policies that every pool has, by number: name, level, IOPS, MB/s and milliseconds.
const BUILT_IN: [(&str, u8, u64, u64, u64); 5] = [
    ("mission-critical", 1, 75_000, 750, 10),
    ("business-critical", 2, 30_000, 375, 20),
    ("business-standard", 3, 15_000, 150, 40),
    ("non-critical", 4, 7_500, 75, 100),
    ("non-critical-low", 5, 1_500, 37, 250),
];

/// The policies that every pool has; none of them can be changed.
pub fn built_in_policies() -> impl Iterator<Item = QosPolicyConfig> {
    let rows = (1..).zip(BUILT_IN);
    rows.map(
        |(id, (name, level, min_iops, megabytes, milliseconds))| QosPolicyConfig {
            id,
            name: name.to_owned(),
            level,
            min_iops,
            min_bandwidth: megabytes * 1_000_000,
            max_iops: 0,
            max_bandwidth: 0,
            burst_s: 0,
            max_latency_ns: milliseconds * 1_000_000,
            weight: QOS_WEIGHT,
            reaction: ReactionConfig::Normal,
            fast_floor: 0,
            ram_percent: 0,
        },
    )
}

/// Refuses a name that no policy and no group can have.
fn check_name(name: &str) -> Result<(), String> {
    let fits = (1..=NAME_MAX).contains(&name.len())
        && name != "none"
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && (name.chars()).all(|c| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c));
    need(fits, || {
        let start: String = name.chars().take(32).collect();
        format!(
            "the name {start:?}: choose 1 to {NAME_MAX} letters, digits, '-', '_' or '.', a letter first, and not 'none'"
        )
    })
}

impl QosGroupConfig {
    /// Refuses a name that no group can have.
    ///
    /// # Errors
    /// The fault and what to choose instead, as half a sentence.
    pub fn check(&self) -> Result<(), String> {
        check_name(&self.name)
    }
}

impl QosPolicyConfig {
    /// Rejects a policy that cannot be met.
    ///
    /// # Errors
    /// The fault and what to choose instead, as half a sentence.
    pub fn check(&self) -> Result<(), String> {
        check_name(&self.name)?;
        need(QOS_LEVELS.contains(&self.level), || {
            format!("service level {}: choose 1 to 5", self.level)
        })?;
        need(WEIGHTS.contains(&self.weight), || {
            format!("weight {}: choose 1 to 10000", self.weight)
        })?;
        for (what, iops) in [("minimum", self.min_iops), ("maximum", self.max_iops)] {
            need(iops <= IOPS_MAX, || {
                format!("a {what} of {iops} IOPS: choose at most a billion")
            })?;
        }
        for (what, bytes) in [
            ("minimum", self.min_bandwidth),
            ("maximum", self.max_bandwidth),
        ] {
            need(bytes <= BANDWIDTH_MAX, || {
                format!("a {what} of {bytes} bytes a second: choose at most 1 TiB")
            })?;
        }
        let latency = self.max_latency_ns;
        need(latency == 0 || LATENCY_NS.contains(&latency), || {
            format!("a maximum latency of {latency} ns: choose 100 µs to an hour")
        })?;
        need(self.burst_s <= BURST_MAX_S, || {
            format!(
                "a burst of {} s: choose at most {BURST_MAX_S} s",
                self.burst_s
            )
        })?;
        let floor = self.fast_floor;
        need(whole_limit("floor", floor) == Ok(floor), || {
            format!("{floor} bytes of the fast tier: choose a multiple of 4 KiB, at most 1 EiB")
        })?;
        need(self.ram_percent <= QOS_RAM_MAX, || {
            format!(
                "{} % of the RAM cache: choose at most {QOS_RAM_MAX} %",
                self.ram_percent
            )
        })?;
        let is_capped = self.max_iops > 0 || self.max_bandwidth > 0;
        need(self.burst_s == 0 || is_capped, || {
            "a burst without a maximum: set a maximum of IOPS or bandwidth, too".into()
        })?;
        let within = |min: u64, max: u64| max == 0 || min <= max;
        need(within(self.min_iops, self.max_iops), || {
            format!(
                "a minimum of {} IOPS above its maximum of {}: choose a larger maximum",
                self.min_iops, self.max_iops
            )
        })?;
        need(within(self.min_bandwidth, self.max_bandwidth), || {
            format!(
                "a minimum of {} bytes a second above its maximum of {}: choose a larger maximum",
                self.min_bandwidth, self.max_bandwidth
            )
        })
    }
}

impl QosConfig {
    /// Every policy of the pool, the built-in ones first.
    pub fn all(&self) -> impl Iterator<Item = QosPolicyConfig> {
        built_in_policies().chain(self.policies.iter().cloned())
    }

    /// The policy with a number; none for 0 and numbers that the pool does not know.
    pub fn policy(&self, id: u32) -> Option<QosPolicyConfig> {
        self.all().find(|policy| policy.id == id)
    }

    /// The policy of a name, or with a number in digits.
    pub fn named(&self, name: &str) -> Option<QosPolicyConfig> {
        let id = name.parse::<u32>().ok();
        self.all()
            .find(|policy| policy.name == name || Some(policy.id) == id)
    }

    /// The group with a number; none for 0 and numbers that the pool does not know.
    pub fn group(&self, id: u32) -> Option<&QosGroupConfig> {
        self.groups.iter().find(|group| group.id == id)
    }

    /// The policy of a volume, which is that of its group where it has one; none where it has none.
    pub fn policy_of(&self, volume: &VolumeConfig) -> Option<QosPolicyConfig> {
        let group = self.group(volume.group);
        self.policy(group.map_or(volume.policy, |group| group.policy))
    }

    /// Volumes that share a volume's policy, with itself: those of its group, or it alone.
    pub fn sharers(&self, volume: &VolumeConfig, volumes: &[VolumeConfig]) -> u64 {
        match self.group(volume.group) {
            None => 1,
            Some(group) => {
                let same = |of: &&VolumeConfig| of.group == group.id && !of.deleting;
                (volumes.iter().filter(same).count() as u64).max(1)
            }
        }
    }

    /// Number of the next policy that is made.
    pub fn next(&self) -> u32 {
        self.next.max(QOS_OWN_FROM)
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses what no pool wrote.
    pub(crate) fn check(&self, next_volume: u32) -> Result<(), String> {
        need(self.groups.len() <= QOS_GROUPS_MAX, || {
            format!("{} groups of volumes", self.groups.len())
        })?;
        for (at, group) in self.groups.iter().enumerate() {
            let wrong = |wrong: String| format!("group {} with {wrong}", group.id);
            group.check().map_err(wrong)?;
            let is_new = (self.groups[..at].iter())
                .all(|other| other.id != group.id && other.name != group.name);
            need(is_new && (1..next_volume).contains(&group.id), || {
                format!("two groups {}, or one that was never created", group.id)
            })?;
        }
        need(self.policies.len() <= QOS_POLICIES_MAX, || {
            format!("{} policies", self.policies.len())
        })?;
        for (at, policy) in self.policies.iter().enumerate() {
            let wrong = |wrong: String| format!("policy {} with {wrong}", policy.id);
            policy.check().map_err(wrong)?;
            let is_own = (QOS_OWN_FROM..self.next()).contains(&policy.id);
            let before = built_in_policies().chain(self.policies[..at].iter().cloned());
            let is_new = before
                .into_iter()
                .all(|other| other.id != policy.id && other.name != policy.name);
            need(is_own && is_new, || {
                format!("two policies {}, or one that was never created", policy.id)
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> QosPolicyConfig {
        QosPolicyConfig {
            id: QOS_OWN_FROM,
            name: "gold".to_owned(),
            level: 2,
            min_iops: 100,
            min_bandwidth: 1 << 20,
            max_iops: 200,
            max_bandwidth: 2 << 20,
            burst_s: 5,
            max_latency_ns: 5_000_000,
            weight: 200,
            reaction: ReactionConfig::Eager,
            fast_floor: 1 << 20,
            ram_percent: 10,
        }
    }

    #[test]
    fn built_in_policies_are_the_published_ones_and_valid() {
        let all: Vec<_> = QosConfig::default().all().collect();
        assert_eq!(all.len(), 5);
        for (policy, id) in all.iter().zip(1..) {
            assert_eq!((policy.id, u32::from(policy.level)), (id, id));
            assert_eq!(policy.check(), Ok(()));
        }
        let first = &all[0];
        assert_eq!((first.min_iops, first.min_bandwidth), (75_000, 750_000_000));
        assert_eq!(all[4].max_latency_ns, 250_000_000);
    }

    #[test]
    fn impossible_figures_are_refused_with_what_to_choose() {
        assert_eq!(good().check(), Ok(()));
        type Case = (fn(&mut QosPolicyConfig), &'static str);
        let cases: [Case; 16] = [
            (|policy| policy.name = "none".to_owned(), "not 'none'"),
            (|policy| policy.name = String::new(), "the name"),
            (|policy| policy.name = "7up".to_owned(), "a letter first"),
            (|policy| policy.name = "a b".to_owned(), "the name"),
            (|policy| policy.level = 0, "choose 1 to 5"),
            (|policy| policy.level = 6, "choose 1 to 5"),
            (|policy| policy.weight = 0, "choose 1 to 10000"),
            (|policy| policy.min_iops = u64::MAX, "at most a billion"),
            (|policy| policy.max_bandwidth = u64::MAX, "at most 1 TiB"),
            (|policy| policy.max_latency_ns = 1, "100 µs"),
            (|policy| policy.burst_s = 3601, "at most 3600 s"),
            (|policy| policy.ram_percent = 76, "at most 75 %"),
            (|policy| policy.fast_floor = 1, "a multiple of 4 KiB"),
            (|policy| policy.fast_floor = 2 << 60, "at most 1 EiB"),
            (|policy| policy.min_iops = 201, "above its maximum"),
            (|policy| policy.min_bandwidth = 3 << 20, "above its maximum"),
        ];
        for (change, what) in cases {
            let mut policy = good();
            change(&mut policy);
            let wrong = policy.check().unwrap_err();
            assert!(wrong.contains(what), "{wrong}");
        }
        let mut uncapped = good();
        (uncapped.max_iops, uncapped.max_bandwidth) = (0, 0);
        assert!(uncapped.check().unwrap_err().contains("without a maximum"));
    }

    #[test]
    fn policies_are_found_by_name_and_number() {
        let qos = QosConfig {
            policies: vec![good()],
            next: QOS_OWN_FROM + 1,
            ..QosConfig::default()
        };
        assert_eq!(qos.check(1), Ok(()));
        assert_eq!(qos.named("gold"), qos.policy(QOS_OWN_FROM));
        assert_eq!(qos.named("1").map(|policy| policy.level), Some(1));
        assert_eq!(qos.named("silver"), None);
        assert_eq!(qos.policy(0), None);
    }

    #[test]
    fn labels_without_policies_read_as_none_and_are_written_as_before() {
        let none: QosConfig = serde_json::from_str("{}").unwrap();
        assert!(none.is_empty());
        assert_eq!(serde_json::to_string(&none).unwrap(), "{}");
        let text = serde_json::to_string(&good()).unwrap();
        assert_eq!(
            serde_json::from_str::<QosPolicyConfig>(&text).unwrap(),
            good()
        );
    }

    #[test]
    fn labels_with_two_policies_of_one_name_or_number_are_refused() {
        let with = |policies: Vec<QosPolicyConfig>| QosConfig {
            policies,
            next: QOS_OWN_FROM + 2,
            ..QosConfig::default()
        };
        let other = QosPolicyConfig {
            id: QOS_OWN_FROM + 1,
            ..good()
        };
        for wrong in [
            vec![good(), good()],
            vec![good(), other.clone()],
            vec![QosPolicyConfig { id: 1, ..good() }],
            vec![QosPolicyConfig { id: 500, ..good() }],
            vec![QosPolicyConfig {
                name: "mission-critical".to_owned(),
                ..good()
            }],
        ] {
            assert!(with(wrong.clone()).check(1).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn groups_have_names_and_numbers_of_their_own() {
        let group = |id: u32, name: &str| QosGroupConfig {
            id,
            name: name.to_owned(),
            policy: 2,
        };
        let check = |groups: &[QosGroupConfig]| {
            let qos = QosConfig {
                groups: groups.to_vec(),
                ..QosConfig::default()
            };
            let text = serde_json::to_string(&qos).unwrap();
            assert_eq!(serde_json::from_str::<QosConfig>(&text).unwrap(), qos);
            qos.check(10)
        };
        assert_eq!(check(&[group(3, "accounting"), group(9, "vdi")]), Ok(()));
        for wrong in [
            vec![group(3, "accounting"), group(3, "vdi")],
            vec![group(3, "vdi"), group(4, "vdi")],
            vec![group(10, "vdi")],
            vec![group(0, "vdi")],
            vec![group(3, "none")],
            (0..=QOS_GROUPS_MAX as u32)
                .map(|at| group(1 + at % 9, &format!("g{at}")))
                .collect(),
        ] {
            assert!(check(&wrong).is_err(), "{wrong:?}");
        }
    }
}
