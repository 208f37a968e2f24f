//! The tenants of a pool: volumes with a policy, and groups of volumes that share one, as its shards are told of them.

use super::super::shards::ask_all;
use super::super::{Pool, Result, lock};
use super::status;
use crate::control::qos::VolumeQos;
use format::{PoolConfig, QosPolicyConfig};
use qos::Tenant;
use std::collections::BTreeMap;
use std::sync::Arc;

type Tenants = BTreeMap<u32, Arc<Tenant>>;

/// All of them.
#[derive(Default)]
pub(crate) struct AllTenants {
    /// By the numbers of volumes; those of a group have one together.
    volumes: Tenants,
    /// By the numbers of groups, also of those without volumes.
    groups: Tenants,
}

/// The tenant that goes on as `known` did, or with other figures of the same policy from what it had counted.
fn next(
    known: Option<&Arc<Tenant>>,
    policy: QosPolicyConfig,
    group: u32,
    shards: usize,
) -> Arc<Tenant> {
    match known {
        Some(known) if *known.policy() == policy => known.clone(),
        known => {
            let id = policy.id;
            let tenant = match group {
                0 => Tenant::new(policy, shards),
                group => Tenant::of_group(group, policy, shards),
            };
            if let Some(known) = known.filter(|known| known.policy().id == id) {
                tenant.service().resume(known.service().totals());
            }
            Arc::new(tenant)
        }
    }
}

impl AllTenants {
    /// Follows a pool's description, for so many shards. False when nothing changed for its volumes.
    pub fn follow(&mut self, config: &PoolConfig, shards: usize) -> bool {
        let groups = config.qos.groups.iter().filter_map(|group| {
            let policy = config.qos.policy(group.policy)?;
            let known = self.groups.get(&group.id);
            Some((group.id, next(known, policy, group.id, shards)))
        });
        let groups: Tenants = groups.collect();
        let mut volumes = Tenants::new();
        for volume in config.volumes.iter().filter(|volume| !volume.deleting) {
            let tenant = match groups.get(&volume.group) {
                Some(group) => group.clone(),
                None => {
                    let Some(policy) = config.qos.policy(volume.policy) else {
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

fn attained(tenant: &Tenant, group: Option<String>) -> VolumeQos {
    let service = tenant.service();
    let (totals, (iops, bandwidth)) = (service.totals(), service.rates());
    VolumeQos {
        policy: status(tenant.policy().clone()),
        group,
        iops,
        bandwidth,
        operations: totals.operations,
        late: totals.late,
        held: totals.held,
        cost_ns: totals.cost_ns,
        windows: totals.windows,
        met: totals.met,
    }
}

impl Pool {
    /// A volume's policy and what it, or its group, attained; none where it has none.
    pub(in crate::pool) fn volume_qos(&self, volume: u32) -> Option<VolumeQos> {
        let tenant = lock(&self.tenants).volumes.get(&volume).cloned()?;
        let group = lock(&self.config).qos.group(tenant.group()).cloned();
        Some(attained(&tenant, group.map(|group| group.name)))
    }

    /// The policy of a group and what its volumes attained together; none where the pool does not know its policy.
    pub(super) fn group_qos(&self, id: u32, name: &str) -> Option<VolumeQos> {
        let tenant = lock(&self.tenants).groups.get(&id).cloned()?;
        Some(attained(&tenant, Some(name.to_owned())))
    }

    /// Tells the shards which volumes have which policies. Whatever changes that, in the pool's description, is followed
    /// by this.
    pub(in crate::pool) fn tell_tenants(&self) -> Result<()> {
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

    /// Has the shards go by these policies.
    pub(in crate::pool) fn give_tenants(&self, of: Arc<Tenants>) -> Result<()> {
        ask_all(&self.shards, move |shard| {
            let of = of.clone();
            async move { shard.set_tenants(&of) }
        })
        .map(drop)
    }
}
