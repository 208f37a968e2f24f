//! Requests to and status of quality of service (docs/qos.md).

use super::engine::{Engine, Result};
use super::types::{VolumeSpec, VolumeStatus};
use crate::Reaction;
use serde::{Deserialize, Serialize};

/// Guarantees and limits of a policy. 0 means none for every figure but level and weight.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QosPolicy {
    /// Its number in the pool; 0 for a new one.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Service level, 1 (highest) to 5.
    pub level: u8,
    /// Guaranteed operations per second.
    pub min_iops: u64,
    /// Bytes a second that are guaranteed.
    pub min_bandwidth: u64,
    /// Maximum operations per second.
    pub max_iops: u64,
    /// Bytes a second at most.
    pub max_bandwidth: u64,
    /// Burst: seconds of its maximum that a volume may accumulate.
    pub burst_s: u32,
    /// Maximum latency (p99), in nanoseconds.
    pub max_latency_ns: u64,
    /// Weight for the remaining capacity, 1 to 10,000.
    pub weight: u32,
    /// How eagerly data of its volumes is promoted; `Normal`: as the level says.
    pub reaction: Reaction,
    /// Bytes of the fast tier that are guaranteed, a multiple of 4 KiB.
    pub fast_floor: u64,
    /// Percent of the RAM cache that are guaranteed, at most 75.
    pub ram_percent: u8,
}

/// Changes of a policy; omitted ones stay.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct QosPolicyChange {
    /// As in [`QosPolicy`], like those that follow.
    pub level: Option<u8>,
    /// See [`QosPolicy`].
    pub min_iops: Option<u64>,
    /// See [`QosPolicy`].
    pub min_bandwidth: Option<u64>,
    /// See [`QosPolicy`].
    pub max_iops: Option<u64>,
    /// See [`QosPolicy`].
    pub max_bandwidth: Option<u64>,
    /// See [`QosPolicy`].
    pub burst_s: Option<u32>,
    /// See [`QosPolicy`].
    pub max_latency_ns: Option<u64>,
    /// See [`QosPolicy`].
    pub weight: Option<u32>,
    /// See [`QosPolicy`].
    pub reaction: Option<Reaction>,
    /// See [`QosPolicy`].
    pub fast_floor: Option<u64>,
    /// See [`QosPolicy`].
    pub ram_percent: Option<u8>,
    /// Also if the pool cannot meet all minimums (overcommit).
    pub overcommit: bool,
}

/// The policy for a volume: its own, or that of a group.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PolicyChoice {
    /// Name or number of the policy; empty: none.
    pub policy: String,
    /// Name of the group that it shares a policy with; empty: none.
    pub group: String,
    /// Also if the pool cannot meet all minimums (overcommit).
    pub overcommit: bool,
}

/// A group to create, or to change.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GroupChoice {
    /// Its name.
    pub name: String,
    /// Name or number of its policy.
    pub policy: String,
    /// Also if the pool cannot meet all minimums (overcommit).
    pub overcommit: bool,
}

/// Volumes that share a policy: its minimums and maximums are those of their sum.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QosGroup {
    /// Its name.
    pub name: String,
    /// Its volumes.
    pub volumes: Vec<String>,
    /// Its policy and the service attained by its volumes together; `None` if its policy is unknown.
    pub qos: Option<VolumeQos>,
}

/// A tenant that was served while operations were held.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QosRival {
    /// The volume, or the group.
    pub name: String,
    /// It is a group.
    pub group: bool,
    /// Its share of the recent time for which operations were held for others, in millionths.
    pub share_ppm: u64,
}

/// A volume's policy, and its attained service since the policy was assigned, or since the pool was opened. If it shares the policy with
/// a group, the service is the group's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VolumeQos {
    /// The policy.
    pub policy: QosPolicy,
    /// The group that it shares the policy with.
    pub group: Option<String>,
    /// Operations per second in the last 100 ms.
    pub iops: u64,
    /// Bytes a second in the last 100 ms.
    pub bandwidth: u64,
    /// Operations that ended.
    pub operations: u64,
    /// Of these, those that took longer than the maximum latency.
    pub late: u64,
    /// Operations that were held for others, or for its own maximum.
    pub held: u64,
    /// Nanoseconds for which operations were held, summed over shards.
    pub held_ns: u64,
    /// Of these, those held for its own maximum.
    pub own_ns: u64,
    /// Nanoseconds for which operations were held, summed over the operations.
    pub waited_ns: u64,
    /// Nanoseconds that operations took after passing the gate, summed over the operations.
    pub took_ns: u64,
    /// Volumes and groups served while operations were held for others recently: at most three, largest share first.
    pub held_for: Vec<QosRival>,
    /// Nanoseconds of shards' time that its operations took.
    pub cost_ns: u64,
    /// Windows of 100 ms with demand for the guaranteed minimum.
    pub windows: u64,
    /// Of these, those in which the minimum was met.
    pub met: u64,
}

/// Whether a pool can meet its guarantees.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QosVerdict {
    /// It can meet them.
    Accepted,
    /// Uncertain: little capacity is left, or it has not been measured yet.
    Warning,
    /// It cannot meet them.
    Refused,
}

/// The guarantee of one volume, as a share of the pool's capacity.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QosClaim {
    /// The volume, or the group; `(planned)` for a planned one.
    pub volume: String,
    /// It is a group's.
    pub group: bool,
    /// Its policy.
    pub policy: QosPolicy,
    /// Millionths of the pool's measured capacity; `None` without a measurement.
    pub share_ppm: Option<u64>,
}

/// Whether the sum of minimums fits, with the arithmetic.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QosCheck {
    /// Measured capacity of the pool in operations of 4 KiB per second; `None` without a measurement.
    pub capacity_iops: Option<u64>,
    /// The guarantees of each volume with a policy of its own and of each group, by level and name.
    pub claims: Vec<QosClaim>,
    /// The sum of the claims' shares, in millionths.
    pub total_ppm: Option<u64>,
    /// Bytes of the fast tier that policies, pins and floors guarantee.
    pub fast_guaranteed: u64,
    /// Bytes of the fast tier that can be guaranteed.
    pub fast_limit: u64,
    /// Whether they fit.
    pub verdict: QosVerdict,
    /// The same in a sentence.
    pub message: String,
}

impl Engine {
    /// The policies of a pool, the built-in ones first.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn qos_policies(&self, pool: &str) -> Result<Vec<QosPolicy>> {
        Ok(self.pool(pool)?.qos_policies())
    }

    /// Creates a policy.
    ///
    /// # Errors
    /// `Exists`, `Invalid` for figures that cannot be met, or when no label can be written.
    pub fn qos_policy_create(&self, pool: &str, policy: &QosPolicy) -> Result<QosPolicy> {
        self.pool(pool)?.create_policy(policy)
    }

    /// Changes a policy, for all volumes that have it.
    ///
    /// # Errors
    /// `NotFound`, `Invalid`, also for a built-in one, `Refused` when the minimums would not fit, or when no label can be
    /// written.
    pub fn qos_policy_change(
        &self,
        pool: &str,
        policy: &str,
        change: &QosPolicyChange,
    ) -> Result<QosPolicy> {
        self.pool(pool)?.change_policy(policy, change)
    }

    /// Deletes an unused policy.
    ///
    /// # Errors
    /// `NotFound`, `Invalid` for a built-in one, `Busy` while volumes or groups have it, or when no label can be written.
    pub fn qos_policy_delete(&self, pool: &str, policy: &str) -> Result<()> {
        self.pool(pool)?.delete_policy(policy)
    }

    /// The groups of a pool, in the order in which they were made.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn qos_groups(&self, pool: &str) -> Result<Vec<QosGroup>> {
        Ok(self.pool(pool)?.qos_groups())
    }

    /// Creates a group without volumes.
    ///
    /// # Errors
    /// `Exists`, `NotFound` when there is no such policy, `Invalid`, `Refused` when its minimum does not fit, or when no
    /// label can be written.
    pub fn qos_group_create(&self, pool: &str, group: &GroupChoice) -> Result<QosGroup> {
        self.pool(pool)?.create_group(group)
    }

    /// Changes the policy of a group, for all of its volumes.
    ///
    /// # Errors
    /// `NotFound`, `Refused` when its minimum does not fit, or when no label can be written.
    pub fn qos_group_change(&self, pool: &str, group: &GroupChoice) -> Result<QosGroup> {
        self.pool(pool)?.change_group(group)
    }

    /// Deletes an empty group.
    ///
    /// # Errors
    /// `NotFound`, `Busy` while volumes are in it, or when no label can be written.
    pub fn qos_group_delete(&self, pool: &str, group: &str) -> Result<()> {
        self.pool(pool)?.delete_group(group)
    }

    /// Whether the pool can meet the minimums of its volumes' policies, and of a number of volumes with a planned policy.
    ///
    /// # Errors
    /// `NotFound` when there is no such policy.
    pub fn qos_check(&self, pool: &str, planned: Option<(&str, usize)>) -> Result<QosCheck> {
        self.pool(pool)?.check_qos(planned)
    }

    /// Creates a volume with a policy.
    ///
    /// # Errors
    /// As [`Engine::volume_create`]'s, `NotFound` when there is no such policy, and `Refused` when its minimum does not
    /// fit.
    pub fn volume_create_with(
        &self,
        pool: &str,
        spec: &VolumeSpec,
        policy: &PolicyChoice,
    ) -> Result<VolumeStatus> {
        self.pool(pool)?.create_volume_with(spec, policy)
    }
}
