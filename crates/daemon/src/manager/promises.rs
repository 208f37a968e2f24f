//! Volumes with quality-of-service policies, at each look.

use super::observe::finding;
use crate::events::Finding;
use crate::promises::Promise;
use api::v1::{EventCode, Subject, SubjectKind};
use engine::PoolLook;
use std::collections::BTreeMap;

/// By the pool's number and the volume's name.
pub(super) type Promises = BTreeMap<(String, String), Promise>;

/// The volume that has been charged for most time of those with policies, beside the one of this name.
fn busiest<'a>(pool: &'a PoolLook, but: &str) -> Option<&'a str> {
    let others = pool.volumes.iter().map(|volume| &volume.status);
    let others = others.filter(|status| status.name != but);
    let rates = others.filter_map(|status| {
        let rate = status.qos.as_ref().map_or(0, |qos| qos.bandwidth);
        (rate > 0).then_some((rate, status.name.as_str()))
    });
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
        for status in pool.volumes.iter().map(|volume| &volume.status) {
            let Some(qos) = &status.qos else { continue };
            let key = (pool.status.id.clone(), status.name.clone());
            let mut promise = before.remove(&key).unwrap_or_default();
            if let Some(unmet) = promise.look(qos, up_s) {
                let (pool_name, name) = (&pool.status.name, &status.name);
                let subject = Subject {
                    kind: SubjectKind::Volume,
                    pool: Some(pool_name.clone()),
                    name: name.clone(),
                };
                let beside = match busiest(pool, name) {
                    Some(other) => format!("; of volumes with policies {other} did most beside it"),
                    None => String::new(),
                };
                let message = format!(
                    "volume {pool_name}/{name} did not get what it was promised in the last minute: {unmet}{beside}"
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
