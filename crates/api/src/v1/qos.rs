//! Quality of service (docs/qos.md).

use super::Tier;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

fn default_level() -> u8 {
    3
}

/// A policy: what a volume is promised, and the most that it gets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosPolicy {
    /// Its number in the pool; volumes may name it by that, too.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// It came with the pool and cannot be changed.
    pub built_in: bool,
    /// Service level, 1 (kept longest) to 5.
    pub level: u8,
    /// Operations a second that are guaranteed; nothing: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_iops: Option<u64>,
    /// Bytes a second that are guaranteed; nothing: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_bandwidth: Option<u64>,
    /// Operations a second at most; nothing: no maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iops: Option<u64>,
    /// Bytes a second at most; nothing: no maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bandwidth: Option<u64>,
    /// Seconds' worth of its maximum that a volume saves up while it does less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_s: Option<u32>,
    /// Nanoseconds within which 99 of 100 operations are to end; nothing: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_latency_ns: Option<u64>,
    /// Part in what is left over when everyone has their minimum.
    pub weight: u32,
}

/// Policies.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosPolicyList {
    /// The built-in ones first.
    pub items: Vec<QosPolicy>,
}

/// A policy to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QosPolicyCreate {
    /// 1 to 63 letters, digits, `-`, `_` or `.`, a letter first; unique in its pool, and not `none`.
    pub name: String,
    /// Service level, 1 (kept longest) to 5; 3 when left out.
    #[serde(default = "default_level")]
    pub level: u8,
    /// Operations a second that are guaranteed, at most 10^9; 0 or nothing: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_iops: Option<u64>,
    /// Bytes a second that are guaranteed, at most 2^40; 0 or nothing: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_bandwidth: Option<u64>,
    /// Operations a second at most, not below the minimum; 0 or nothing: no maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iops: Option<u64>,
    /// Bytes a second at most, not below the minimum; 0 or nothing: no maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bandwidth: Option<u64>,
    /// Seconds' worth of its maximum that a volume saves up, at most 3,600; only with a maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_s: Option<u32>,
    /// Nanoseconds within which 99 of 100 operations are to end, from 100,000 to an hour; 0 or nothing: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_latency_ns: Option<u64>,
    /// Part in what is left over, 1 to 10,000; 100 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// What is to be changed of a policy; what is left out stays, and 0 takes a figure away.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QosPolicyChange {
    /// Service level, 1 to 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// Operations a second that are guaranteed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_iops: Option<u64>,
    /// Bytes a second that are guaranteed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_bandwidth: Option<u64>,
    /// Operations a second at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iops: Option<u64>,
    /// Bytes a second at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bandwidth: Option<u64>,
    /// Seconds' worth of its maximum that a volume saves up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_s: Option<u32>,
    /// Nanoseconds within which 99 of 100 operations are to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_latency_ns: Option<u64>,
    /// Part in what is left over, 1 to 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Also when the pool cannot keep all minimums then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overcommit: bool,
}

/// A group to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QosGroupCreate {
    /// 1 to 63 letters, digits, `-`, `_` or `.`, a letter first; unique among the groups of its pool, and not `none`.
    pub name: String,
    /// Name or number of the policy that its volumes share.
    pub policy: String,
    /// Also when the pool cannot keep all minimums then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overcommit: bool,
}

/// What is to be changed of a group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QosGroupChange {
    /// Name or number of the policy that its volumes share from then on.
    pub policy: String,
    /// Also when the pool cannot keep all minimums then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overcommit: bool,
}

/// Volumes that share a policy: its minimums and maximums are those of their sum.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosGroup {
    /// Its name.
    pub name: String,
    /// Its volumes.
    pub volumes: Vec<String>,
    /// Its policy and what its volumes attained together; nothing where the pool does not know the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<VolumeQos>,
}

/// Groups.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosGroupList {
    /// In the order in which they were made.
    pub items: Vec<QosGroup>,
}

/// Where operations spend their time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QosBottleneck {
    /// Held at the gate for the policy's own maximum.
    OwnMaximum,
    /// Held at the gate while others were served.
    ShardTime,
    /// Reads from the fast tier, and writes to it.
    FastTier,
    /// Reads from the slow tier, and writes to it.
    SlowTier,
    /// Writes to a fast tier that is nearly full of data that is not on the slow one yet.
    Room,
}

/// Somebody who was served while operations were held.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosRival {
    /// The volume, or the group.
    pub name: String,
    /// It is a group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub group: bool,
    /// Its share of the recent time for which operations were held for others, in percent.
    pub share_percent: u8,
}

/// A volume's policy, and what it attained since it has it, or since its pool was opened. Where it shares the policy with a
/// group, that is what the group attained.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VolumeQos {
    /// The policy.
    pub policy: QosPolicy,
    /// The group that it shares the policy with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Operations a second in the last 100 ms.
    pub iops: u64,
    /// Bytes a second in the last 100 ms.
    pub bandwidth: u64,
    /// Operations that ended.
    pub operations: u64,
    /// Of them, those that took longer than the maximum latency.
    pub late: u64,
    /// Operations that were held, for others or for its own maximum.
    pub held: u64,
    /// Nanoseconds for which operations were held, summed over shards.
    pub held_ns: u64,
    /// Of them, those for its own maximum.
    pub own_ns: u64,
    /// Nanoseconds for which operations were held, summed over the operations.
    pub waited_ns: u64,
    /// Nanoseconds that operations took once they had passed the gate, summed over the operations.
    pub took_ns: u64,
    /// Volumes and groups served while operations were held for others recently: at most three, largest share first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_for: Vec<QosRival>,
    /// Where its operations spent most of their time in the last minute; nothing while that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<QosBottleneck>,
    /// Nanoseconds of shards' time that its operations took.
    pub cost_ns: u64,
    /// Windows of 100 ms in which it asked for what it was promised.
    pub windows: u64,
    /// Of them, those in which it got that.
    pub met: u64,
}

/// Whether a pool can keep what it promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QosVerdict {
    /// It can.
    Accepted,
    /// It may not: little is left, or it has not shown yet what it can do.
    Warning,
    /// It cannot: giving such a policy is refused unless `overcommit` is set.
    Refused,
}

/// What a volume was promised, as a part of what its pool can do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosClaim {
    /// The volume, or the group; `(planned)` for a volume that is not there.
    pub volume: String,
    /// It is a group's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub group: bool,
    /// Its policy.
    pub policy: QosPolicy,
    /// Per cent of what the pool has shown it can do; nothing while it has shown nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_percent: Option<f64>,
}

/// What a tier of a pool has shown that it can do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosTier {
    /// The tier.
    pub tier: Tier,
    /// Its drives.
    pub drives: u64,
    /// Requests a second: the most that its drives did in a second since the pool was opened, or as many reads as they do one
    /// after the other, whichever is more; 0 while nothing was seen.
    pub iops: u64,
    /// Bytes a second: the most that its drives did in a second since the pool was opened.
    pub bandwidth: u64,
    /// Nanoseconds that a read of its drives took on average since the pool was opened; nothing where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ns: Option<u64>,
}

/// Whether the sum of minimums fits, with the arithmetic.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosCheck {
    /// Operations of 4 KiB a second that the pool has shown it can do; nothing while it has shown nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_iops: Option<u64>,
    /// What was promised to each volume with a policy of its own and to each group, by level and name.
    pub claims: Vec<QosClaim>,
    /// The sum of the shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_percent: Option<f64>,
    /// Whether they fit.
    pub verdict: QosVerdict,
    /// The same in a sentence.
    pub message: String,
    /// What each tier has shown that it can do, the fast one first.
    pub tiers: Vec<QosTier>,
    /// Why it fits only while what is used lies on the fast tier or in memory; nothing where that makes no difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_fast: Option<String>,
}

/// A volume with a policy of its own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosVolume {
    /// The volume.
    pub volume: String,
    /// Its policy and what it attained.
    pub qos: VolumeQos,
}

/// The quality of service of a pool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosStatus {
    /// What is promised, and whether that fits.
    pub check: QosCheck,
    /// Volumes with policies of their own and what they attained, by level and name.
    pub volumes: Vec<QosVolume>,
    /// Groups and what their volumes attained together, in the order in which they were made.
    pub groups: Vec<QosGroup>,
}
