//! Requests to and status of quality of service (docs/qos.md).

use super::engine::{Engine, Result};
use super::types::{VolumeSpec, VolumeStatus};
use serde::{Deserialize, Serialize};

/// Guarantees and limits of a policy. 0 means none for every figure but level and weight.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QosPolicy {
    /// Its number in the pool; 0 for one that is to be made.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Service level, 1 (kept longest) to 5.
    pub level: u8,
    /// Operations a second that are guaranteed.
    pub min_iops: u64,
    /// Bytes a second that are guaranteed.
    pub min_bandwidth: u64,
    /// Operations a second at most.
    pub max_iops: u64,
    /// Bytes a second at most.
    pub max_bandwidth: u64,
    /// Seconds' worth of its maximum that a volume saves up.
    pub burst_s: u32,
    /// Nanoseconds within which 99 of 100 operations are to end.
    pub max_latency_ns: u64,
    /// Part in what is left over, 1 to 10,000.
    pub weight: u32,
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
    /// Also when the pool cannot keep all minimums then.
    pub overcommit: bool,
}

/// The policy that a volume is to have: its own, or that of a group.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PolicyChoice {
    /// Name or number of the policy; empty: none.
    pub policy: String,
    /// Name of the group that it shares a policy with; empty: none.
    pub group: String,
    /// Also when the pool cannot keep all minimums then.
    pub overcommit: bool,
}

/// A group that is to be made, or to have another policy.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GroupChoice {
    /// Its name.
    pub name: String,
    /// Name or number of its policy.
    pub policy: String,
    /// Also when the pool cannot keep all minimums then.
    pub overcommit: bool,
}

/// Volumes that share a policy: its minimums and maximums are those of their sum.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QosGroup {
    /// Its name.
    pub name: String,
    /// Its volumes.
    pub volumes: Vec<String>,
    /// Its policy and what its volumes attained together; none where the pool does not know the policy.
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

/// A volume's policy, and its attained service since the policy was assigned, or since the pool was opened. Where it shares the policy with
/// a group, that is what the group attained.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VolumeQos {
    /// The policy.
    pub policy: QosPolicy,
    /// The group that it shares the policy with.
    pub group: Option<String>,
    /// Operations a second in the last 100 ms.
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
    /// Nanoseconds that operations took once they had passed, summed over the operations.
    pub took_ns: u64,
    /// Volumes and groups served while operations were held for others recently: at most three, largest share first.
    pub held_for: Vec<QosRival>,
    /// Nanoseconds of shards' time that its operations took.
    pub cost_ns: u64,
    /// Windows of 100 ms in which it requested what it was promised.
    pub windows: u64,
    /// Of these, those in which the minimum was met.
    pub met: u64,
}

/// Whether a pool can keep what it promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QosVerdict {
    /// It can.
    Accepted,
    /// It may not: little is left, or it has not shown yet what it can do.
    Warning,
    /// It cannot.
    Refused,
}

/// The guarantee of one volume, as a share of the pool's capacity.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QosClaim {
    /// The volume, or the group; `(planned)` for one that is not there.
    pub volume: String,
    /// It is a group's.
    pub group: bool,
    /// Its policy.
    pub policy: QosPolicy,
    /// Millionths of what the pool has shown it can do; none while it has shown nothing.
    pub share_ppm: Option<u64>,
}

/// Whether the sum of minimums fits, with the arithmetic.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QosCheck {
    /// Operations of 4 KiB per second that the pool has shown it can do; none while it has shown nothing.
    pub capacity_iops: Option<u64>,
    /// The guarantees of each volume with a policy of its own and of each group, by level and name.
    pub claims: Vec<QosClaim>,
    /// The sum of the claims' shares, in millionths.
    pub total_ppm: Option<u64>,
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

    /// Deletes a policy that no volume and no group has.
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

    /// Gives a group another policy, for all of its volumes.
    ///
    /// # Errors
    /// `NotFound`, `Refused` when its minimum does not fit, or when no label can be written.
    pub fn qos_group_change(&self, pool: &str, group: &GroupChoice) -> Result<QosGroup> {
        self.pool(pool)?.change_group(group)
    }

    /// Deletes a group that no volume is in.
    ///
    /// # Errors
    /// `NotFound`, `Busy` while volumes are in it, or when no label can be written.
    pub fn qos_group_delete(&self, pool: &str, group: &str) -> Result<()> {
        self.pool(pool)?.delete_group(group)
    }

    /// Whether the pool can keep the minimums of its volumes' policies, and of as many volumes of a planned policy.
    ///
    /// # Errors
    /// `NotFound` when there is no such policy.
    pub fn qos_check(&self, pool: &str, planned: Option<(&str, usize)>) -> Result<QosCheck> {
        self.pool(pool)?.check_qos(planned)
    }

    /// Creates a volume that has a policy from the beginning.
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
