//! Volumes with quality-of-service policies, and groups that share one, at each look.

use super::observe::finding;
use crate::events::Finding;
use crate::promises::Promise;
use api::v1::{EventCode, Subject, SubjectKind};
use engine::{PoolLook, VolumeQos};
use std::collections::BTreeMap;

/// By the pool's number, and the name of the volume or the group.
pub(super) type Promises = BTreeMap<(String, SubjectKind, String), Promise>;

/// Volumes with policies of their own and groups with one: what each is, its name, and what it attained.
fn tenants(pool: &PoolLook) -> impl Iterator<Item = (SubjectKind, &str, &VolumeQos)> {
    let volumes = pool.volumes.iter().filter_map(|volume| {
        let qos = volume.status.qos.as_ref()?;
        let alone = qos.group.is_none();
        alone.then_some((SubjectKind::Volume, volume.status.name.as_str(), qos))
    });
    let groups = pool.groups.iter();
    let groups =
        groups.filter_map(|of| Some((SubjectKind::Group, of.name.as_str(), of.qos.as_ref()?)));
    volumes.chain(groups)
}

/// The tenant that did most of those with policies, beside the one of this name.
fn busiest<'a>(pool: &'a PoolLook, but: &str) -> Option<&'a str> {
    let others = tenants(pool).filter(|(_, name, _)| *name != but);
    let rates = others.filter(|(_, _, qos)| qos.bandwidth > 0);
    let rates = rates.map(|(_, name, qos)| (qos.bandwidth, name));
    rates.max().map(|(_, name)| name)
}

/// Volumes that do not get what their policies promise.
pub(super) fn find_broken(
    promises: &mut Promises,
    pools: &[PoolLook],
    up_s: u64,
    found: &mut Vec<Finding>,
) {
    let mut before = std::mem::take(promises);
    for pool in pools {
        for (kind, name, qos) in tenants(pool) {
            let key = (pool.status.id.clone(), kind, name.to_owned());
            let mut promise = before.remove(&key).unwrap_or_default();
            if let Some(unmet) = promise.look(qos, up_s) {
                let pool_name = &pool.status.name;
                let subject = Subject {
                    kind,
                    pool: Some(pool_name.clone()),
                    name: name.to_owned(),
                };
                let what = match kind {
                    SubjectKind::Group => "group",
                    _ => "volume",
                };
                let beside = match busiest(pool, name) {
                    Some(other) => format!("; of volumes with policies {other} did most beside it"),
                    None => String::new(),
                };
                let message = format!(
                    "{what} {pool_name}/{name} did not get what it was promised in the last minute: {unmet}{beside}"
                );
                let advice = format!(
                    "see `convect qos status {pool_name}`: give other volumes lower levels or maximums, or this one smaller \
                     minimums"
                );
                found.push(finding(EventCode::PromiseUnmet, subject, message, advice));
            }
            promises.insert(key, promise);
        }
    }
}
