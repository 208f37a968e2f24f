//! Quality-of-service policies of a pool: kept in its labels, given to volumes when they fit, told to shards.

use super::shards::ask_all;
use super::{Pool, Result, error, lock};
use crate::control::qos::{
    PolicyChoice, QosCheck, QosClaim, QosPolicy, QosPolicyChange, QosVerdict, VolumeQos,
};
use crate::control::types::ErrorCode;
use format::{PoolConfig, QOS_POLICIES_MAX, QosPolicyConfig};
use qos::{Costs, Tenant};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A whole, in millionths.
const WHOLE_PPM: u64 = 1_000_000;
/// What may be promised without a warning, in millionths of what a pool has shown it can do.
const AMPLE_PPM: u64 = 800_000;
/// How a volume is called that is not there.
const PLANNED: &str = "(planned)";

/// The volumes that have policies, by their numbers.
#[derive(Default)]
pub(crate) struct AllTenants(BTreeMap<u32, Arc<Tenant>>);

impl AllTenants {
    /// Follows a pool's description, for so many shards. False when nothing changed.
    pub fn follow(&mut self, config: &PoolConfig, shards: usize) -> bool {
        let mut next = BTreeMap::new();
        let mut same = true;
        for volume in config.volumes.iter().filter(|volume| !volume.deleting) {
            let Some(policy) = config.qos.policy(volume.policy) else {
                continue;
            };
            let known = self.0.get(&volume.id);
            let tenant = match known.filter(|known| *known.policy() == policy) {
                Some(known) => known.clone(),
                None => {
                    let is_kept = known.filter(|known| known.policy().id == policy.id);
                    let tenant = Tenant::new(policy, shards);
                    if let Some(known) = is_kept {
                        tenant.service().resume(known.service().totals());
                    }
                    same = false;
                    Arc::new(tenant)
                }
            };
            next.insert(volume.id, tenant);
        }
        let changed = !same || next.len() != self.0.len();
        self.0 = next;
        changed
    }
}

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
    }
}

fn check_policy(policy: &QosPolicyConfig) -> Result<()> {
    match policy.check() {
        Ok(()) => Ok(()),
        Err(wrong) => error(
            ErrorCode::Invalid,
            format!("policy {} would have {wrong}", policy.name),
        ),
    }
}

/// What a pool's shards have shown they can do.
struct Shown {
    costs: Vec<Costs>,
}

impl Shown {
    /// Operations of 4 KiB a second of the whole pool; none while no shard has shown any. A shard that has shown nothing
    /// is taken to be like the others.
    fn iops(&self) -> Option<u64> {
        let shown: Vec<u64> = self.costs.iter().filter_map(Costs::iops).collect();
        let sum: u64 = shown.iter().sum();
        let mean = sum.checked_div(shown.len() as u64)?;
        Some(mean.saturating_mul(self.costs.len() as u64))
    }

    /// What a policy's minimum takes of that, in millionths.
    fn share_ppm(&self, policy: &QosPolicyConfig) -> Option<u64> {
        let floors = self.costs.iter();
        let floors: Vec<u64> = floors
            .filter_map(|costs| costs.floor(policy.min_iops, policy.min_bandwidth))
            .collect();
        let mean = floors
            .iter()
            .sum::<u64>()
            .checked_div(floors.len() as u64)?;
        // Nanoseconds a second, of one second a shard.
        Some(mean / 1000 / self.costs.len().max(1) as u64)
    }
}

fn percent(ppm: u64) -> String {
    format!("{:.1} %", ppm as f64 / 1e4)
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
                    "policy {} is built in and stays as it is: create one of your own with `convect qos policy create`",
                    policy.name
                ),
            ),
        }
    }

    /// Makes a policy.
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
        };
        check_policy(&made)?;
        if self.find_policy(&made.name).is_ok() {
            let text = format!(
                "pool {} has a policy '{}' already: choose another name",
                self.name, made.name
            );
            return error(ErrorCode::Exists, text);
        }
        self.update_soon(|config| {
            if config.qos.policies.len() >= QOS_POLICIES_MAX {
                let text = format!(
                    "a pool has at most {QOS_POLICIES_MAX} policies of its own: delete one that no volume has"
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
        let after = changed(&before, change);
        check_policy(&after)?;
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

    /// The number of the policy that is chosen for a volume: as one is chosen for the first time it is held against
    /// what the pool has shown it can do.
    ///
    /// # Errors
    /// `NotFound`, or `Refused`.
    pub(super) fn choose_policy(&self, volume: Option<u32>, choice: &PolicyChoice) -> Result<u32> {
        if choice.policy.is_empty() {
            return Ok(0);
        }
        let policy = self.find_policy(&choice.policy)?;
        if !choice.overcommit {
            let mut planned = self.config();
            match volume {
                Some(id) => (planned.volumes.iter_mut())
                    .filter(|known| known.id == id)
                    .for_each(|known| known.policy = policy.id),
                None => {
                    let check = self.check_with(&planned, Some((&policy, 1)))?;
                    return self.refuse(&check).map(|()| policy.id);
                }
            }
            self.refuse_overcommit(&planned)?;
        }
        Ok(policy.id)
    }

    /// Refuses a description in which more is promised than the pool has shown it can do, and than is promised now.
    fn refuse_overcommit(&self, planned: &PoolConfig) -> Result<()> {
        let before = self.check_with(&self.config(), None)?;
        let after = self.check_with(planned, None)?;
        match after.total_ppm > before.total_ppm {
            true => self.refuse(&after),
            false => Ok(()),
        }
    }

    fn refuse(&self, check: &QosCheck) -> Result<()> {
        match check.verdict {
            QosVerdict::Refused => error(
                ErrorCode::Refused,
                format!(
                    "{}: choose smaller minimums, or --overcommit to have the lowest levels miss theirs first",
                    check.message
                ),
            ),
            QosVerdict::Accepted | QosVerdict::Warning => Ok(()),
        }
    }

    /// Whether the minimums fit, with as many volumes of a planned policy.
    ///
    /// # Errors
    /// As [`crate::Engine::qos_check`]'s.
    pub fn check_qos(&self, planned: Option<(&str, usize)>) -> Result<QosCheck> {
        let planned = match planned {
            Some((name, count)) => Some((self.find_policy(name)?, count)),
            None => None,
        };
        let planned = planned.as_ref().map(|(policy, count)| (policy, *count));
        self.check_with(&self.config(), planned)
    }

    fn check_with(
        &self,
        config: &PoolConfig,
        planned: Option<(&QosPolicyConfig, usize)>,
    ) -> Result<QosCheck> {
        let costs = ask_all(&self.shards, |shard| async move { shard.costs() })?;
        let shown = Shown { costs };
        let claim = |volume: &str, policy: QosPolicyConfig| QosClaim {
            volume: volume.to_owned(),
            share_ppm: shown.share_ppm(&policy),
            policy: status(policy),
        };
        let volumes = config.volumes.iter().filter(|volume| !volume.deleting);
        let mut claims: Vec<QosClaim> = volumes
            .filter_map(|volume| Some(claim(&volume.name, config.qos.policy(volume.policy)?)))
            .collect();
        if let Some((policy, count)) = planned {
            claims.extend((0..count).map(|_| claim(PLANNED, policy.clone())));
        }
        claims.sort_by(|one, other| {
            (one.policy.level, &one.volume).cmp(&(other.policy.level, &other.volume))
        });
        let capacity_iops = shown.iops();
        let sum = || claims.iter().filter_map(|claim| claim.share_ppm).sum();
        let total_ppm: Option<u64> = capacity_iops.map(|_| sum());
        let (verdict, message) = self.judge(capacity_iops.zip(total_ppm), claims.len());
        Ok(QosCheck {
            capacity_iops,
            claims,
            total_ppm,
            verdict,
            message,
        })
    }

    fn judge(&self, shown: Option<(u64, u64)>, volumes: usize) -> (QosVerdict, String) {
        let name = &self.name;
        let Some((iops, total)) = shown else {
            let text = format!(
                "pool {name} has not shown yet what it can do: use volumes that have policies, then check again"
            );
            let verdict = match volumes {
                0 => QosVerdict::Accepted,
                _ => QosVerdict::Warning,
            };
            return (verdict, text);
        };
        let text = format!(
            "the minimums of {volumes} volumes take {} of what pool {name} has shown it can do, {iops} operations of 4 KiB a \
             second",
            percent(total)
        );
        let verdict = if total <= AMPLE_PPM {
            QosVerdict::Accepted
        } else if total <= WHOLE_PPM {
            QosVerdict::Warning
        } else {
            QosVerdict::Refused
        };
        (verdict, text)
    }

    /// A volume's policy and what it attained; none where it has none.
    pub(super) fn volume_qos(&self, volume: u32) -> Option<VolumeQos> {
        let tenant = lock(&self.tenants).0.get(&volume).cloned()?;
        let service = tenant.service();
        let (totals, (iops, bandwidth)) = (service.totals(), service.rates());
        Some(VolumeQos {
            policy: status(tenant.policy().clone()),
            iops,
            bandwidth,
            operations: totals.operations,
            late: totals.late,
            held: totals.held,
            cost_ns: totals.cost_ns,
            windows: totals.windows,
            met: totals.met,
        })
    }

    /// Tells the shards which volumes have which policies, and what follows of them for their placement. Whatever changes that, in
    /// the pool's description, is followed by this.
    pub(super) fn tell_tenants(&self) -> Result<()> {
        self.tell_knobs()?;
        let of = {
            let config = lock(&self.config);
            let mut all = lock(&self.tenants);
            match all.follow(&config, self.shards.len()) {
                false => return Ok(()),
                true => Arc::new(all.0.clone()),
            }
        };
        self.give_tenants(of)
    }

    /// Has the shards go by these policies.
    pub(super) fn give_tenants(&self, of: Arc<BTreeMap<u32, Arc<Tenant>>>) -> Result<()> {
        ask_all(&self.shards, move |shard| {
            let of = of.clone();
            async move { shard.set_tenants(&of) }
        })
        .map(drop)
    }
}
