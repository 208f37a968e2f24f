//! Quality of service: policies and groups of pools, admission checks, and attained performance.

use super::Result;
use super::history::History;
use super::promises::QosBottlenecks;
use super::registry::PoolRegistry;
use super::volumes::Volumes;
use crate::admission;
use crate::control::PoolCalls;
use crate::history::Kind;
use crate::mapping::{ToApi, ToEngine};
use api::v1::{self, Problem};
use std::sync::Arc;

/// Maximum number of planned volumes.
const PLANNED_MAX: usize = 10_000;

/// Policies and groups of open pools.
pub struct Qos {
    registry: Arc<PoolRegistry>,
    volumes: Arc<Volumes>,
    history: Arc<History>,
    bottlenecks: Arc<QosBottlenecks>,
}

impl Qos {
    pub(super) fn new(
        registry: &Arc<PoolRegistry>,
        volumes: &Arc<Volumes>,
        history: &Arc<History>,
        bottlenecks: &Arc<QosBottlenecks>,
    ) -> Self {
        Self {
            registry: Arc::clone(registry),
            volumes: Arc::clone(volumes),
            history: Arc::clone(history),
            bottlenecks: Arc::clone(bottlenecks),
        }
    }

    /// The policies of a pool.
    ///
    /// # Errors
    /// When the pool is not open.
    pub fn policy_list(&self, pool: &str) -> Result<v1::QosPolicyList> {
        let policies = self.registry.qos_policies(pool)?;
        Ok(v1::QosPolicyList {
            items: policies.to_api(),
        })
    }

    /// A policy, by its name or number.
    ///
    /// # Errors
    /// `NotFound` when the pool has no such policy.
    pub fn policy_show(&self, pool: &str, policy: &str) -> Result<v1::QosPolicy> {
        let policies = self.policy_list(pool)?.items;
        let id = policy.parse::<u32>().ok();
        let mut named = policies.into_iter();
        let found = named.find(|known| known.name == policy || Some(known.id) == id);
        found.ok_or_else(|| {
            Problem::not_found(format!(
                "pool {pool} has no policy '{policy}': see `convect qos policy list {pool}`"
            ))
        })
    }

    /// Creates a policy.
    ///
    /// # Errors
    /// As the engine's.
    pub fn policy_create(&self, pool: &str, request: v1::QosPolicyCreate) -> Result<v1::QosPolicy> {
        self.registry
            .qos_policy_create(pool, &request.to_engine())
            .map(ToApi::to_api)
    }

    /// Changes a policy for all volumes that use it.
    ///
    /// # Errors
    /// As the engine's.
    pub fn policy_change(
        &self,
        pool: &str,
        policy: &str,
        request: &v1::QosPolicyChange,
    ) -> Result<v1::QosPolicy> {
        let change = request.clone().to_engine();
        self.registry
            .qos_policy_change(pool, policy, &change)
            .map(ToApi::to_api)
    }

    /// Deletes a policy that no volume and no group uses.
    ///
    /// # Errors
    /// As the engine's.
    pub fn policy_delete(&self, pool: &str, policy: &str) -> Result<()> {
        self.registry.qos_policy_delete(pool, policy)
    }

    /// The groups of a pool.
    ///
    /// # Errors
    /// When the pool is not open.
    pub fn group_list(&self, pool: &str) -> Result<v1::QosGroupList> {
        let groups = self.registry.qos_groups(pool)?;
        let mut items: Vec<v1::QosGroup> = groups.to_api();
        for group in &mut items {
            if let Some(qos) = &mut group.qos {
                self.bottlenecks.tell(pool, &group.name, qos);
            }
        }
        Ok(v1::QosGroupList { items })
    }

    /// A group, by its name.
    ///
    /// # Errors
    /// `NotFound` when the pool has no such group.
    pub fn group_show(&self, pool: &str, group: &str) -> Result<v1::QosGroup> {
        let mut groups = self.group_list(pool)?.items.into_iter();
        groups.find(|known| known.name == group).ok_or_else(|| {
            Problem::not_found(format!(
                "pool {pool} has no group '{group}': see `convect qos group list {pool}`"
            ))
        })
    }

    /// Creates an empty group.
    ///
    /// # Errors
    /// As the engine's.
    pub fn group_create(&self, pool: &str, request: v1::QosGroupCreate) -> Result<v1::QosGroup> {
        let choice = engine::GroupChoice {
            name: request.name,
            policy: request.policy,
            overcommit: request.overcommit,
        };
        self.registry
            .qos_group_create(pool, &choice)
            .map(ToApi::to_api)
    }

    /// Changes the policy of a group.
    ///
    /// # Errors
    /// As the engine's.
    pub fn group_change(
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
        self.registry
            .qos_group_change(pool, &choice)
            .map(ToApi::to_api)
    }

    /// Deletes an empty group.
    ///
    /// # Errors
    /// As the engine's.
    pub fn group_delete(&self, pool: &str, group: &str) -> Result<()> {
        self.registry.qos_group_delete(pool, group)
    }

    /// Whether the pool can guarantee its minimums, and would with `count` more volumes of a
    /// policy.
    ///
    /// # Errors
    /// When the pool or policy does not exist, or `count` is out of range.
    pub fn check(
        &self,
        pool: &str,
        policy: Option<&str>,
        count: Option<usize>,
    ) -> Result<v1::QosCheck> {
        let invalid = |message: String| Err(Problem::invalid(message));
        let planned = match (policy, count) {
            (Some(policy), count) => Some((policy, count.unwrap_or(1))),
            (None, None) => None,
            (None, Some(_)) => {
                return invalid("planned volumes require a policy: name one".to_owned());
            }
        };
        if let Some((_, count)) = planned
            && !(1..=PLANNED_MAX).contains(&count)
        {
            return invalid(format!(
                "the number of volumes is 1 to {PLANNED_MAX}, not {count}"
            ));
        }
        let check = self.registry.qos_check(pool, planned)?;
        let status = self.registry.pool_status(pool)?;
        let tiers = [(v1::Tier::Fast, "fast"), (v1::Tier::Slow, "slow")];
        let tiers = tiers.into_iter().filter_map(|(tier, name)| {
            let object = Kind::Tier.object(pool, Some(name));
            let peak = self.history.peak(&object);
            admission::tier(tier, &status, peak)
        });
        let mut check: v1::QosCheck = check.to_api();
        check.tiers = tiers.collect();
        let promised = check.claims.iter().map(|claim| &claim.policy);
        check.needs_fast = admission::needs_fast(&check.tiers, promised);
        Ok(check)
    }

    /// Guarantees in a pool, and what volumes attained.
    ///
    /// # Errors
    /// When the pool is not open.
    pub fn status(&self, pool: &str) -> Result<v1::QosStatus> {
        let check = self.check(pool, None, None)?;
        let volumes = self.volumes.list(Some(pool))?.items.into_iter();
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
        let groups = self.group_list(pool)?.items;
        Ok(v1::QosStatus {
            check,
            volumes,
            groups,
        })
    }
}
