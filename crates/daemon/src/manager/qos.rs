//! Quality of service: policies of pools, what they promise, and what volumes attained.

use super::core::{Manager, Result, lock};
use crate::admission;
use crate::history::Kind;
use crate::mapping::{ToApi, ToEngine};
use api::v1::{self, Problem, ProblemCode};

/// Most volumes that are planned for at once.
const PLANNED_MAX: usize = 10_000;

impl Manager {
    /// The policies of a pool.
    ///
    /// # Errors
    /// When the pool is not open.
    pub fn qos_policy_list(&self, pool: &str) -> Result<v1::QosPolicyList> {
        let policies = self.control.qos_policies(pool);
        let policies = policies.map_err(|error| self.pool_problem(pool, error))?;
        Ok(v1::QosPolicyList {
            items: policies.to_api(),
        })
    }

    /// One policy, by its name or number.
    ///
    /// # Errors
    /// `NotFound` when the pool has no such policy.
    pub fn qos_policy_show(&self, pool: &str, policy: &str) -> Result<v1::QosPolicy> {
        let policies = self.qos_policy_list(pool)?.items;
        let id = policy.parse::<u32>().ok();
        let mut named = policies.into_iter();
        let found = named.find(|known| known.name == policy || Some(known.id) == id);
        found.ok_or_else(|| {
            Problem::new(
                ProblemCode::NotFound,
                format!(
                    "pool {pool} has no policy '{policy}': see `convect qos policy list {pool}`"
                ),
            )
        })
    }

    /// Makes a policy.
    ///
    /// # Errors
    /// As the engine's.
    pub fn qos_policy_create(
        &self,
        pool: &str,
        request: v1::QosPolicyCreate,
    ) -> Result<v1::QosPolicy> {
        let made = self.control.qos_policy_create(pool, &request.to_engine());
        made.map(ToApi::to_api)
            .map_err(|error| self.pool_problem(pool, error))
    }

    /// Changes a policy, for all volumes that have it.
    ///
    /// # Errors
    /// As the engine's.
    pub fn qos_policy_change(
        &self,
        pool: &str,
        policy: &str,
        request: &v1::QosPolicyChange,
    ) -> Result<v1::QosPolicy> {
        let change = request.clone().to_engine();
        let changed = self.control.qos_policy_change(pool, policy, &change);
        changed
            .map(ToApi::to_api)
            .map_err(|error| self.pool_problem(pool, error))
    }

    /// Deletes a policy that no volume and no group has.
    ///
    /// # Errors
    /// As the engine's.
    pub fn qos_policy_delete(&self, pool: &str, policy: &str) -> Result<()> {
        let deleted = self.control.qos_policy_delete(pool, policy);
        deleted.map_err(|error| self.pool_problem(pool, error))
    }

    /// The groups of a pool.
    ///
    /// # Errors
    /// When the pool is not open.
    pub fn qos_group_list(&self, pool: &str) -> Result<v1::QosGroupList> {
        let groups = self.control.qos_groups(pool);
        let groups = groups.map_err(|error| self.pool_problem(pool, error))?;
        let mut items: Vec<v1::QosGroup> = groups.to_api();
        for group in &mut items {
            if let Some(qos) = &mut group.qos {
                self.tell_bottleneck(pool, &group.name, qos);
            }
        }
        Ok(v1::QosGroupList { items })
    }

    /// Adds to what a volume of this name, or its group, attained where its operations spent their time.
    pub(super) fn tell_bottleneck(&self, pool: &str, name: &str, qos: &mut v1::VolumeQos) {
        let (kind, name) = match &qos.group {
            Some(group) => (v1::SubjectKind::Group, group.as_str()),
            None => (v1::SubjectKind::Volume, name),
        };
        let subject = v1::Subject {
            kind,
            pool: Some(pool.to_owned()),
            name: name.to_owned(),
        };
        qos.bottleneck = lock(&self.bottlenecks).get(&subject).copied();
    }

    /// One group, by its name.
    ///
    /// # Errors
    /// `NotFound` when the pool has no such group.
    pub fn qos_group_show(&self, pool: &str, group: &str) -> Result<v1::QosGroup> {
        let mut groups = self.qos_group_list(pool)?.items.into_iter();
        groups.find(|known| known.name == group).ok_or_else(|| {
            Problem::new(
                ProblemCode::NotFound,
                format!("pool {pool} has no group '{group}': see `convect qos group list {pool}`"),
            )
        })
    }

    /// Makes a group without volumes.
    ///
    /// # Errors
    /// As the engine's.
    pub fn qos_group_create(
        &self,
        pool: &str,
        request: v1::QosGroupCreate,
    ) -> Result<v1::QosGroup> {
        let choice = engine::GroupChoice {
            name: request.name,
            policy: request.policy,
            overcommit: request.overcommit,
        };
        let made = self.control.qos_group_create(pool, &choice);
        made.map(ToApi::to_api)
            .map_err(|error| self.pool_problem(pool, error))
    }

    /// Gives a group another policy.
    ///
    /// # Errors
    /// As the engine's.
    pub fn qos_group_change(
        &self,
        pool: &str,
        group: &str,
        request: v1::QosGroupChange,
    ) -> Result<v1::QosGroup> {
        let choice = engine::GroupChoice {
            name: group.to_owned(),
            policy: request.policy,
            overcommit: request.overcommit,
        };
        let changed = self.control.qos_group_change(pool, &choice);
        changed
            .map(ToApi::to_api)
            .map_err(|error| self.pool_problem(pool, error))
    }

    /// Deletes a group that no volume is in.
    ///
    /// # Errors
    /// As the engine's.
    pub fn qos_group_delete(&self, pool: &str, group: &str) -> Result<()> {
        let deleted = self.control.qos_group_delete(pool, group);
        deleted.map_err(|error| self.pool_problem(pool, error))
    }

    /// Whether the pool can keep what it promises, and would with `count` volumes more of a policy.
    ///
    /// # Errors
    /// When there is no such pool or policy, or the number makes no sense.
    pub fn qos_check(
        &self,
        pool: &str,
        policy: Option<&str>,
        count: Option<usize>,
    ) -> Result<v1::QosCheck> {
        let invalid = |message: String| Err(Problem::new(ProblemCode::Invalid, message));
        let planned = match (policy, count) {
            (Some(policy), count) => Some((policy, count.unwrap_or(1))),
            (None, None) => None,
            (None, Some(_)) => {
                return invalid("volumes are planned with a policy: name one".to_owned());
            }
        };
        if let Some((_, count)) = planned
            && !(1..=PLANNED_MAX).contains(&count)
        {
            return invalid(format!("volumes are 1 to {PLANNED_MAX}, not {count}"));
        }
        let check = self.control.qos_check(pool, planned);
        let check = check.map_err(|error| self.pool_problem(pool, error))?;
        let status = self.control.pool_status(pool);
        let status = status.map_err(|error| self.pool_problem(pool, error))?;
        let peaks = lock(&self.peaks);
        let tiers = [(v1::Tier::Fast, "fast"), (v1::Tier::Slow, "slow")];
        let tiers = tiers.into_iter().filter_map(|(tier, name)| {
            let object = Kind::Tier.object(pool, Some(name));
            let peak = peaks.get(&object).copied().unwrap_or_default();
            admission::tier(tier, &status, peak)
        });
        let mut check: v1::QosCheck = check.to_api();
        check.tiers = tiers.collect();
        let promised = check.claims.iter().map(|claim| &claim.policy);
        check.needs_fast = admission::needs_fast(&check.tiers, promised);
        Ok(check)
    }

    /// What is promised in a pool, and what volumes attained.
    ///
    /// # Errors
    /// When the pool is not open.
    pub fn qos_status(&self, pool: &str) -> Result<v1::QosStatus> {
        let check = self.qos_check(pool, None, None)?;
        let volumes = self.volume_list(Some(pool))?.items.into_iter();
        let mut volumes: Vec<v1::QosVolume> = volumes
            .filter_map(|volume| {
                Some(v1::QosVolume {
                    volume: volume.name,
                    qos: volume.qos.filter(|qos| qos.group.is_none())?,
                })
            })
            .collect();
        volumes.sort_by(|one, other| {
            let key = |of: &v1::QosVolume| (of.qos.policy.level, of.volume.clone());
            key(one).cmp(&key(other))
        });
        let groups = self.qos_group_list(pool)?.items;
        Ok(v1::QosStatus {
            check,
            volumes,
            groups,
        })
    }
}
