//! Volumes that miss their IOPS, bandwidth or latency targets.

use crate::events::Finding;
use crate::goals::Goal;
use crate::manager::findings::finding;
use api::v1::{EventCode, Subject, SubjectKind};
use engine::{PoolLook, Targets};
use std::collections::BTreeMap;

/// By the pool's id and the volume's name.
pub(super) type Goals = BTreeMap<(String, String), Goal>;

/// Finds volumes that miss their targets.
pub(super) fn find_unmet(
    goals: &mut Goals,
    pools: &[PoolLook],
    up_s: u64,
    found: &mut Vec<Finding>,
) {
    let mut before = std::mem::take(goals);
    for pool in pools {
        for volume in &pool.volumes {
            let (status, did) = (&volume.status, (&volume.counters, &volume.spread));
            if status.targets == Targets::default() {
                continue;
            }
            let key = (pool.status.id.clone(), status.name.clone());
            let mut goal = before.remove(&key).unwrap_or_default();
            if let Some(unmet) = goal.look(&status.targets, up_s, did) {
                let (pool, name) = (&pool.status.name, &status.name);
                let subject = Subject {
                    kind: SubjectKind::Volume,
                    pool: Some(pool.clone()),
                    name: name.clone(),
                };
                let message = format!("volume {pool}/{name}, last minute: {unmet}");
                let advice = format!(
                    "check `convect history {pool}/{name}`, and the other load with `convect \
                     top`; move the volume to the fast tier with `convect volume set \
                     {pool}/{name} --pin fast`, or lower its targets"
                );
                found.push(finding(EventCode::TargetUnmet, subject, message, advice));
            }
            goals.insert(key, goal);
        }
    }
}
