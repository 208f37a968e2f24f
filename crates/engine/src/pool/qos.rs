//! Quality-of-service policies of a pool: stored in its labels, assigned to volumes and groups if admission permits, and sent to shards.

mod admission;
mod groups;
mod tenants;

pub(crate) use tenants::AllTenants;

use super::{Pool, Result, error, lock};
use crate::control::qos::{PolicyChoice, QosPolicy, QosPolicyChange};
use crate::control::types::ErrorCode;
use format::{QOS_POLICIES_MAX, QosPolicyConfig, whole_limit};

fn status(policy: QosPolicyConfig) -> QosPolicy {
    QosPolicy {
        id: policy.id,
        name: policy.name,
        level: policy.level,
        min_iops: policy.min_iops,
        min_bandwidth: policy.min_bandwidth,
        max_iops: policy.max_iops,
        max_bandwidth: policy.max_bandwidth,
        burst_s: policy.burst_s,
        max_latency_ns: policy.max_latency_ns,
        weight: policy.weight,
        reaction: policy.reaction.into(),
        fast_floor: policy.fast_floor,
        ram_percent: policy.ram_percent,
    }
}

/// A policy's figures with changes.
fn changed(before: &QosPolicyConfig, change: &QosPolicyChange) -> QosPolicyConfig {
    QosPolicyConfig {
        id: before.id,
        name: before.name.clone(),
        level: change.level.unwrap_or(before.level),
        min_iops: change.min_iops.unwrap_or(before.min_iops),
        min_bandwidth: change.min_bandwidth.unwrap_or(before.min_bandwidth),
        max_iops: change.max_iops.unwrap_or(before.max_iops),
        max_bandwidth: change.max_bandwidth.unwrap_or(before.max_bandwidth),
        burst_s: change.burst_s.unwrap_or(before.burst_s),
        max_latency_ns: change.max_latency_ns.unwrap_or(before.max_latency_ns),
        weight: change.weight.unwrap_or(before.weight),
        reaction: change.reaction.map_or(before.reaction, Into::into),
        fast_floor: change.fast_floor.unwrap_or(before.fast_floor),
        ram_percent: change.ram_percent.unwrap_or(before.ram_percent),
    }
}

/// Rounds a policy's floor up to whole blocks, and refuses an invalid policy.
fn check_policy(policy: &mut QosPolicyConfig) -> Result<()> {
    let floor = whole_limit("fast floor", policy.fast_floor);
    let checked = floor.and_then(|floor| {
        policy.fast_floor = floor;
        policy.check()
    });
    match checked {
        Ok(()) => Ok(()),
        Err(wrong) => error(
            ErrorCode::Invalid,
            format!("policy {} would have {wrong}", policy.name),
        ),
    }
}

impl Pool {
    /// The pool's policies, the built-in ones first.
    pub fn qos_policies(&self) -> Vec<QosPolicy> {
        lock(&self.config).qos.all().map(status).collect()
    }

    fn find_policy(&self, name: &str) -> Result<QosPolicyConfig> {
        match lock(&self.config).qos.named(name) {
            Some(policy) => Ok(policy),
            None => error(
                ErrorCode::NotFound,
                format!(
                    "pool {} has no policy '{name}': see `convect qos policy list {}`",
                    self.name, self.name
                ),
            ),
        }
    }

    /// A policy that may be changed and deleted.
    fn find_own_policy(&self, name: &str) -> Result<QosPolicyConfig> {
        let policy = self.find_policy(name)?;
        match policy.id < format::QOS_OWN_FROM {
            false => Ok(policy),
            true => error(
                ErrorCode::Invalid,
                format!(
                    "policy {} is built in and cannot be changed: create your own with `convect qos policy create`",
                    policy.name
                ),
            ),
        }
    }

    /// Creates a policy.
    ///
    /// # Errors
    /// As [`crate::Engine::qos_policy_create`]'s.
    pub fn create_policy(&self, policy: &QosPolicy) -> Result<QosPolicy> {
        let _changing = lock(&self.changing);
        let mut made = QosPolicyConfig {
            id: lock(&self.config).qos.next(),
            name: policy.name.clone(),
            level: policy.level,
            min_iops: policy.min_iops,
            min_bandwidth: policy.min_bandwidth,
            max_iops: policy.max_iops,
            max_bandwidth: policy.max_bandwidth,
            burst_s: policy.burst_s,
            max_latency_ns: policy.max_latency_ns,
            weight: policy.weight,
            reaction: policy.reaction.into(),
            fast_floor: policy.fast_floor,
            ram_percent: policy.ram_percent,
        };
        check_policy(&mut made)?;
        if self.find_policy(&made.name).is_ok() {
            let text = format!(
                "pool {} already has a policy '{}': choose another name",
                self.name, made.name
            );
            return error(ErrorCode::Exists, text);
        }
        self.update_soon(|config| {
            if config.qos.policies.len() >= QOS_POLICIES_MAX {
                let text = format!(
                    "a pool has at most {QOS_POLICIES_MAX} policies of its own: delete an unused one"
                );
                return error(ErrorCode::Invalid, text);
            }
            made.id = config.qos.next();
            config.qos.next = made.id + 1;
            config.qos.policies.push(made.clone());
            Ok(())
        })?;
        Ok(status(made))
    }

    /// Changes a policy.
    ///
    /// # Errors
    /// As [`crate::Engine::qos_policy_change`]'s.
    pub fn change_policy(&self, name: &str, change: &QosPolicyChange) -> Result<QosPolicy> {
        let _changing = lock(&self.changing);
        let before = self.find_own_policy(name)?;
        let mut after = changed(&before, change);
        check_policy(&mut after)?;
        let mut planned = self.config();
        let policies = planned.qos.policies.iter_mut();
        policies
            .filter(|known| known.id == after.id)
            .for_each(|known| *known = after.clone());
        if !change.overcommit {
            self.refuse_overcommit(&planned)?;
        }
        self.update_soon(|config| {
            config.qos.policies = planned.qos.policies;
            Ok(())
        })?;
        self.tell_tenants()?;
        Ok(status(after))
    }

    /// Deletes a policy.
    ///
    /// # Errors
    /// As [`crate::Engine::qos_policy_delete`]'s.
    pub fn delete_policy(&self, name: &str) -> Result<()> {
        let _changing = lock(&self.changing);
        let policy = self.find_own_policy(name)?;
        let config = self.config();
        let groups = config.qos.groups.iter();
        if let Some(group) = groups.clone().find(|group| group.policy == policy.id) {
            let text = format!(
                "policy {} is used by group {}: change that with `convect qos group set`, or delete the group",
                policy.name, group.name
            );
            return error(ErrorCode::Busy, text);
        }
        let users = config.volumes.iter();
        let users: Vec<&str> = users
            .filter(|volume| volume.policy == policy.id && !volume.deleting)
            .map(|volume| volume.name.as_str())
            .collect();
        if let Some(first) = users.first() {
            let text = format!(
                "policy {} is that of {} volumes ({first} is the first): give them another one with `convect volume set \
                 --policy`",
                policy.name,
                users.len()
            );
            return error(ErrorCode::Busy, text);
        }
        self.update_soon(|config| {
            config.qos.policies.retain(|known| known.id != policy.id);
            Ok(())
        })
    }

    /// The numbers of the policy and of the group that are chosen for a volume, of which one at least is 0. The minimum
    /// of a policy is compared with the pool's measured capacity; that of a group is already included.
    ///
    /// # Errors
    /// `NotFound`, `Invalid`, or `Refused`.
    pub(super) fn choose_policy(
        &self,
        volume: Option<u32>,
        choice: &PolicyChoice,
    ) -> Result<(u32, u32)> {
        let policy = match (choice.policy.as_str(), choice.group.as_str()) {
            ("", "") => return Ok((0, 0)),
            (policy, "") => self.find_policy(policy)?,
            ("", group) => return Ok((0, self.find_group(group)?.id)),
            (policy, group) => {
                let text = format!(
                    "a volume cannot have policy {policy} of its own and share that of group {group}: choose one of them"
                );
                return error(ErrorCode::Invalid, text);
            }
        };
        if choice.overcommit {
            return Ok((policy.id, 0));
        }
        let mut planned = self.config();
        let mut known = planned.volumes.iter_mut();
        match known.find(|known| Some(known.id) == volume) {
            Some(known) => {
                (known.policy, known.group) = (policy.id, 0);
                self.refuse_overcommit(&planned)?;
            }
            None => {
                self.check_floors(&planned, policy.fast_floor)?;
                self.refuse(&self.check_with(&planned, Some((&policy, 1)))?)?;
            }
        }
        Ok((policy.id, 0))
    }
}
