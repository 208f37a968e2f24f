//! The tenants of a pool: volumes with a policy, and groups of volumes that share one, as its shards know them.

use super::super::shards::ask_all;
use super::super::{Pool, Result, lock};
use super::status;
use crate::control::qos::{QosRival, VolumeQos};
use format::{PoolConfig, QosGroupConfig, QosPolicyConfig};
use qos::Tenant;
use std::collections::BTreeMap;
use std::sync::Arc;

type Tenants = BTreeMap<u32, Arc<Tenant>>;

/// All tenants.
#[derive(Default)]
pub(crate) struct AllTenants {
    /// By the numbers of volumes; those of a group share one.
    volumes: Tenants,
    /// By the numbers of groups, also of those without volumes.
    groups: Tenants,
}

/// The tenant `known` if its policy is unchanged; otherwise a new one that continues its counters.
fn next(
    known: Option<&Arc<Tenant>>,
    policy: &Arc<QosPolicyConfig>,
    group: u32,
    shards: usize,
) -> Arc<Tenant> {
    match known {
        Some(known) if known.policy() == &**policy => known.clone(),
        known => {
            let id = policy.id;
            let policy = policy.clone();
            let tenant = match group {
                0 => Tenant::new(policy, shards),
                group => Tenant::of_group(group, policy, shards),
            };
            if let Some(known) = known {
                tenant.resume(known, known.policy().id == id);
            }
            Arc::new(tenant)
        }
    }
}

impl AllTenants {
    /// Applies a pool's description, for a number of shards. False when nothing changed for its volumes.
    pub fn follow(&mut self, config: &PoolConfig, shards: usize) -> bool {
        let policies = config.qos.all().map(|policy| (policy.id, Arc::new(policy)));
        let policies: BTreeMap<u32, Arc<QosPolicyConfig>> = policies.collect();
        let groups = config.qos.groups.iter().filter_map(|group| {
            let policy = policies.get(&group.policy)?;
            let known = self.groups.get(&group.id);
            Some((group.id, next(known, policy, group.id, shards)))
        });
        let groups: Tenants = groups.collect();
        let mut volumes = Tenants::new();
        for volume in config.volumes.iter().filter(|volume| !volume.deleting) {
            let tenant = match groups.get(&volume.group) {
                Some(group) => group.clone(),
                None => {
                    let Some(policy) = policies.get(&volume.policy) else {
                        continue;
                    };
                    let known = self.volumes.get(&volume.id);
                    next(known.filter(|known| known.group() == 0), policy, 0, shards)
                }
            };
            volumes.insert(volume.id, tenant);
        }
        let is_known = |(id, tenant): (&u32, &Arc<Tenant>)| {
            let known = self.volumes.get(id);
            known.is_some_and(|known| Arc::ptr_eq(known, tenant))
        };
        let same = volumes.len() == self.volumes.len() && volumes.iter().all(is_known);
        *self = Self { volumes, groups };
        !same
    }
}

/// How many of those for whom operations were held are reported.
const RIVALS: usize = 3;

/// The tenant with this key in a gate; `None` if it no longer exists.
fn rival(config: &PoolConfig, (key, share_ppm): (u32, u64)) -> Option<QosRival> {
    let group = config.qos.group(key).map(|group| &group.name);
    let volume = || config.volumes.iter().find(|volume| volume.id == key);
    let name = group.or_else(|| volume().map(|volume| &volume.name))?;
    Some(QosRival {
        name: name.clone(),
        group: group.is_some(),
        share_ppm,
    })
}

fn attained(config: &PoolConfig, tenant: &Tenant, group: Option<String>) -> VolumeQos {
    let service = tenant.service();
    let (totals, (iops, bandwidth)) = (service.totals(), service.rates());
    let held_for = service.held_for();
    drop(service);
    let held_for = held_for.into_iter().filter_map(|of| rival(config, of));
    VolumeQos {
        policy: status(tenant.policy().clone()),
        group,
        iops,
        bandwidth,
        operations: totals.operations,
        late: totals.late,
        held: totals.held,
        held_ns: totals.held_ns,
        own_ns: totals.own_ns,
        waited_ns: totals.waited_ns,
        took_ns: totals.took_ns,
        held_for: held_for.take(RIVALS).collect(),
        cost_ns: totals.cost_ns,
        windows: totals.windows,
        met: totals.met,
    }
}

impl Pool {
    /// A volume's policy and the service attained by it, or its group; `None` without a policy.
    pub(in crate::pool) fn volume_qos(&self, volume: u32) -> Option<VolumeQos> {
        let tenant = lock(&self.tenants).volumes.get(&volume).cloned()?;
        let config = lock(&self.config);
        let group = config.qos.group(tenant.group());
        let group = group.map(|group| group.name.clone());
        Some(attained(&config, &tenant, group))
    }

    /// The policy of a group and the service attained by its volumes together; `None` if its policy is unknown.
    pub(super) fn group_qos(&self, config: &PoolConfig, of: &QosGroupConfig) -> Option<VolumeQos> {
        let tenant = lock(&self.tenants).groups.get(&of.id).cloned()?;
        Some(attained(config, &tenant, Some(of.name.clone())))
    }

    /// Sends the shards the policies of volumes, and the consequences for their placement. Every change of that,
    /// in the pool's description, is followed by this.
    pub(in crate::pool) fn tell_tenants(&self) -> Result<()> {
        self.tell_settings()?;
        let of = {
            let config = lock(&self.config);
            let mut all = lock(&self.tenants);
            match all.follow(&config, self.shards.len()) {
                false => return Ok(()),
                true => Arc::new(all.volumes.clone()),
            }
        };
        self.give_tenants(of)
    }

    /// Applies these policies in the shards.
    pub(in crate::pool) fn give_tenants(&self, of: Arc<Tenants>) -> Result<()> {
        ask_all(&self.shards, move |shard| {
            let of = of.clone();
            async move { shard.set_tenants(&of) }
        })
        .map(drop)
    }
}
