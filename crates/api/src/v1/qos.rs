//! Quality of service (docs/qos.md).

use super::{Reaction, Tier};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

fn default_level() -> u8 {
    3
}

/// A quality-of-service policy: guaranteed minimums, and maximums.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosPolicy {
    /// Number of the policy in the pool, usable in place of its name.
    pub id: u32,
    /// Name of the policy.
    pub name: String,
    /// Built-in policies cannot be changed.
    pub built_in: bool,
    /// Service level, 1 to 5: when minimums exceed the capacity, level 1 keeps its minimum longest
    /// and level 5 loses it first.
    pub level: u8,
    /// Guaranteed IOPS; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_iops: Option<u64>,
    /// Guaranteed bandwidth in bytes per second; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_bandwidth: Option<u64>,
    /// Maximum IOPS; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iops: Option<u64>,
    /// Maximum bandwidth in bytes per second; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bandwidth: Option<u64>,
    /// Burst: seconds' worth of the maximum that a volume accumulates while it does less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_s: Option<u32>,
    /// Maximum p99 latency in nanoseconds; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_latency_ns: Option<u64>,
    /// Weight in sharing what is left once all minimums are met.
    pub weight: u32,
    /// How eagerly data is promoted to the fast tier; `normal`: according to the level. A volume's
    /// own setting takes precedence.
    #[serde(default)]
    pub reaction: Reaction,
    /// Guaranteed fast-tier space in bytes of each volume with the policy, or of a group: data of
    /// other volumes is evicted first. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_floor: Option<u64>,
    /// Guaranteed share of the RAM cache in percent, likewise; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ram_percent: Option<u8>,
}

/// Policies of a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosPolicyList {
    /// Policies, built-in ones first.
    pub items: Vec<QosPolicy>,
}

/// A policy to create.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QosPolicyCreate {
    /// Name of the policy, unique in its pool: 1 to 63 letters, digits, `-`, `_` or `.`, beginning
    /// with a letter; not `none`.
    pub name: String,
    /// Service level, 1 (keeps its minimum longest) to 5; 3 by default.
    #[serde(default = "default_level")]
    pub level: u8,
    /// Guaranteed IOPS, at most 10^9; 0 or absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_iops: Option<u64>,
    /// Guaranteed bandwidth in bytes per second, at most 2^40; 0 or absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_bandwidth: Option<u64>,
    /// Maximum IOPS, not below the minimum; 0 or absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iops: Option<u64>,
    /// Maximum bandwidth in bytes per second, not below the minimum; 0 or absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bandwidth: Option<u64>,
    /// Burst: seconds' worth of the maximum that a volume may accumulate, at most 3,600; requires a
    /// maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_s: Option<u32>,
    /// Maximum p99 latency in nanoseconds, from 100,000 to an hour; 0 or absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_latency_ns: Option<u64>,
    /// Weight in sharing what is left once all minimums are met, 1 to 10,000; 100 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// How eagerly data is promoted to the fast tier; `normal`, the default: according to the level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaction: Option<Reaction>,
    /// Guaranteed fast-tier space in bytes, rounded up to a multiple of 4,096; 0 or absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_floor: Option<u64>,
    /// Guaranteed share of the RAM cache in percent, at most 75; 0 or absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ram_percent: Option<u8>,
}

/// Changes of a policy; fields that are absent are unchanged, and 0 removes a limit.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QosPolicyChange {
    /// Service level, 1 to 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// Guaranteed IOPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_iops: Option<u64>,
    /// Guaranteed bandwidth in bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_bandwidth: Option<u64>,
    /// Maximum IOPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iops: Option<u64>,
    /// Maximum bandwidth in bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bandwidth: Option<u64>,
    /// Burst: seconds' worth of the maximum that a volume may accumulate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_s: Option<u32>,
    /// Maximum p99 latency in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_latency_ns: Option<u64>,
    /// Weight in sharing what is left once all minimums are met, 1 to 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// How eagerly data is promoted to the fast tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaction: Option<Reaction>,
    /// Guaranteed fast-tier space in bytes, rounded up to a multiple of 4,096.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_floor: Option<u64>,
    /// Guaranteed share of the RAM cache in percent, at most 75.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ram_percent: Option<u8>,
    /// Allow minimums that exceed what the pool can guarantee.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overcommit: bool,
}

/// A group to create.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QosGroupCreate {
    /// Name of the group, unique among the groups of its pool: 1 to 63 letters, digits, `-`, `_` or
    /// `.`, beginning with a letter; not `none`.
    pub name: String,
    /// Name or number of the policy that its volumes share.
    pub policy: String,
    /// Allow minimums that exceed what the pool can guarantee.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overcommit: bool,
}

/// Changes of a group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QosGroupChange {
    /// Name or number of the new policy.
    pub policy: String,
    /// Allow minimums that exceed what the pool can guarantee.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overcommit: bool,
}

/// A group of volumes that share a policy: its minimums and maximums apply to the sum of their I/O.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosGroup {
    /// Name of the group.
    pub name: String,
    /// Its volumes.
    pub volumes: Vec<String>,
    /// Its policy and what its volumes attained together; absent if the pool does not know the
    /// policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<VolumeQos>,
}

/// Groups of a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosGroupList {
    /// Groups, in order of creation.
    pub items: Vec<QosGroup>,
}

/// Where operations spend most of their time. `own_maximum`: queued at the gate because of the
/// policy's own maximum; `shard_time`: queued at the gate while others were served; `fast_tier`:
/// I/O of the fast tier; `slow_tier`: I/O of the slow tier; `room`: writes waiting for space on a
/// fast tier that is nearly full of dirty data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QosBottleneck {
    /// Queued at the gate because of the policy's own maximum.
    OwnMaximum,
    /// Queued at the gate while others were served.
    ShardTime,
    /// Reads from and writes to the fast tier.
    FastTier,
    /// Reads from and writes to the slow tier.
    SlowTier,
    /// Writes to a fast tier that is nearly full of dirty data.
    Room,
}

/// A volume or group that was served while operations were queued.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosRival {
    /// Name of the volume or group.
    pub name: String,
    /// The name is that of a group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub group: bool,
    /// Its share of the recent time in which operations were queued because of others, in percent.
    pub share_percent: u8,
}

/// Policy of a volume, and what the volume attained since it has the policy or since its pool was
/// opened. If the policy is shared by a group, the figures are those of the group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VolumeQos {
    /// The policy.
    pub policy: QosPolicy,
    /// Group that shares the policy; absent for a policy of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// IOPS of the last 100 ms.
    pub iops: u64,
    /// Bandwidth of the last 100 ms in bytes per second.
    pub bandwidth: u64,
    /// Completed operations.
    pub operations: u64,
    /// Operations that exceeded the maximum latency, including queueing.
    pub late: u64,
    /// Operations that were queued at the gate, because of others or the policy's own maximum.
    pub held: u64,
    /// Time in which operations were queued, in nanoseconds, summed over shards.
    pub held_ns: u64,
    /// Part of `held_ns` because of the policy's own maximum.
    pub own_ns: u64,
    /// Queueing time in nanoseconds, summed over operations.
    pub waited_ns: u64,
    /// Latency below the gate in nanoseconds, summed over operations.
    pub took_ns: u64,
    /// Volumes and groups that were recently served while operations were queued because of others:
    /// at most three, largest share first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_for: Vec<QosRival>,
    /// Where operations spent most of their time in the last minute; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<QosBottleneck>,
    /// Shard time charged for its operations, in nanoseconds.
    pub cost_ns: u64,
    /// Windows of 100 ms in which the guarantee was needed.
    pub windows: u64,
    /// Windows in which the guarantee was met.
    pub met: u64,
}

/// Whether the pool can guarantee the minimums. `accepted`: it can; `warning`: they use more than
/// 80 % of what it has shown it can do, or it has not shown anything yet; `refused`: they exceed
/// it, so that a policy is assigned only with `overcommit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QosVerdict {
    /// The pool can guarantee the minimums.
    Accepted,
    /// Little capacity is left, or the pool has not shown yet what it can do.
    Warning,
    /// The minimums exceed the capacity: a policy is assigned only with `overcommit`.
    Refused,
}

/// Guarantee of a volume or group, relative to the capacity of its pool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosClaim {
    /// Name of the volume or group; `(planned)` for a planned volume.
    pub volume: String,
    /// The name is that of a group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub group: bool,
    /// Its policy.
    pub policy: QosPolicy,
    /// Guaranteed share of what the pool has shown it can do, in percent; absent if it has not
    /// shown anything yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_percent: Option<f64>,
}

/// What a tier of a pool has shown it can do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosTier {
    /// The tier.
    pub tier: Tier,
    /// Number of its drives.
    pub drives: u64,
    /// IOPS: the most requests that its drives completed in one second since the pool was opened,
    /// or reads one after the other (drives divided by mean read latency), whichever is more; 0
    /// without I/O.
    pub iops: u64,
    /// Bandwidth in bytes per second: the most bytes that its drives transferred in one second
    /// since the pool was opened.
    pub bandwidth: u64,
    /// Mean read latency of its drives in nanoseconds since the pool was opened; absent without
    /// reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ns: Option<u64>,
}

/// Whether a pool can guarantee all minimums, with the calculation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosCheck {
    /// 4 KiB IOPS that the pool has shown it can do; absent if it has not shown anything yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_iops: Option<u64>,
    /// Guarantees of volumes with policies of their own and of groups, by level and name.
    pub claims: Vec<QosClaim>,
    /// Sum of the shares in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_percent: Option<f64>,
    /// Fast-tier space that policies, pins and floors guarantee to volumes, in bytes, including that
    /// of planned volumes.
    #[serde(default)]
    pub fast_guaranteed: u64,
    /// Fast-tier space that can be guaranteed, in bytes.
    #[serde(default)]
    pub fast_limit: u64,
    /// Whether they fit.
    pub verdict: QosVerdict,
    /// Explanation of the verdict.
    pub message: String,
    /// What each tier has shown it can do, fast tier first.
    pub tiers: Vec<QosTier>,
    /// Why they fit only while the data in use is on the fast tier or in memory; absent if that
    /// makes no difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_fast: Option<String>,
}

/// A volume with a policy of its own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosVolume {
    /// Name of the volume.
    pub volume: String,
    /// Its policy, and what it attained.
    pub qos: VolumeQos,
}

/// Quality of service of a pool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QosStatus {
    /// Guarantees, and whether they fit.
    pub check: QosCheck,
    /// Volumes with policies of their own and what they attained, by level and name.
    pub volumes: Vec<QosVolume>,
    /// Groups and what their volumes attained together, in order of creation.
    pub groups: Vec<QosGroup>,
}
