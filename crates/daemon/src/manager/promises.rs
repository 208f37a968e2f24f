//! Observes the guarantees of volumes with QoS policies, and of groups that share one.

use super::findings::finding;
use crate::events::Finding;
use crate::promises::{Beneath, Promise, Written};
use crate::sync::lock;
use api::v1::{self, EventCode, QosBottleneck, Subject, SubjectKind};
use engine::{PoolLook, PoolStatus, VolumeLook, VolumeQos};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// By the pool's id, and the volume or group.
pub(super) type Promises = BTreeMap<(String, Subject), Promise>;

/// The bottleneck of volumes and groups in the last minute.
type Bottlenecks = BTreeMap<Subject, QosBottleneck>;

/// The latest bottlenecks. Locked briefly.
#[derive(Default)]
pub struct QosBottlenecks(Mutex<Bottlenecks>);

impl QosBottlenecks {
    /// Replaces them.
    pub(super) fn set(&self, seen: Bottlenecks) {
        *lock(&self.0) = seen;
    }

    /// Adds the bottleneck of a volume, or of its group, to its QoS status.
    pub fn tell(&self, pool: &str, name: &str, qos: &mut v1::VolumeQos) {
        let (kind, name) = match &qos.group {
            Some(group) => (SubjectKind::Group, group.as_str()),
            None => (SubjectKind::Volume, name),
        };
        let subject = Subject {
            kind,
            pool: Some(pool.to_owned()),
            name: name.to_owned(),
        };
        qos.bottleneck = lock(&self.0).get(&subject).copied();
    }
}

/// Share of dirty data on the fast tier in percent from which it counts as full.
const FULL_PERCENT: u128 = 90;

/// Volumes with their own policies and groups, their QoS status, and the names of their volumes.
fn tenants(pool: &PoolLook) -> impl Iterator<Item = (Subject, &VolumeQos, Vec<&str>)> {
    let of = |kind, name: &str| Subject {
        kind,
        pool: Some(pool.status.name.clone()),
        name: name.to_owned(),
    };
    let volumes = pool.volumes.iter().filter_map(move |volume| {
        let status = &volume.status;
        let qos = status.qos.as_ref().filter(|qos| qos.group.is_none())?;
        let name = status.name.as_str();
        Some((of(SubjectKind::Volume, name), qos, vec![name]))
    });
    let groups = pool.groups.iter().filter_map(move |group| {
        let members = group.volumes.iter().map(String::as_str).collect();
        let qos = group.qos.as_ref()?;
        Some((of(SubjectKind::Group, &group.name), qos, members))
    });
    volumes.chain(groups)
}

/// The tier that the pool's writes go to.
fn written(pool: &PoolStatus) -> Written {
    let (dirty, capacity) = (pool.fast_dirty, pool.fast_capacity);
    match capacity {
        0 => Written::Slow,
        _ if u128::from(dirty) * 100 >= u128::from(capacity) * FULL_PERCENT => Written::Full,
        _ => Written::Fast,
    }
}

/// A bottleneck in words, and what to do about it.
fn explained(bottleneck: QosBottleneck, pool: &str, qos: &VolumeQos) -> (String, String) {
    let policy = &qos.policy.name;
    match bottleneck {
        QosBottleneck::OwnMaximum => (
            format!("the maximum of its policy {policy}"),
            format!("raise the maximum with `convect qos policy set {pool}/{policy}`"),
        ),
        QosBottleneck::ShardTime => {
            let rivals = qos.held_for.iter().map(|rival| {
                let kind = if rival.group { "group " } else { "" };
                format!("{kind}{} ({} %)", rival.name, rival.share_ppm / 10_000)
            });
            let rivals: Vec<String> = rivals.collect();
            let others = match rivals.is_empty() {
                true => "others".to_owned(),
                false => rivals.join(", "),
            };
            (
                format!("waiting for shard time while {others} were served"),
                format!(
                    "see `convect qos check {pool}`: lower the levels or maximums of others, or \
                     the minimums of this one"
                ),
            )
        }
        QosBottleneck::FastTier => (
            "the fast tier".to_owned(),
            format!("look for a slow drive with `convect pool iostat {pool} --watch`"),
        ),
        QosBottleneck::SlowTier => (
            "the slow tier".to_owned(),
            format!("pin its data to the fast tier: `convect volume set {pool}/VOLUME --pin fast`"),
        ),
        QosBottleneck::Room => (
            "a fast tier full of dirty data".to_owned(),
            format!(
                "see `convect pool status {pool}`: set a maximum for volumes with many writes, or \
                 enlarge the fast tier"
            ),
        ),
    }
}

/// Finds volumes and groups whose guarantees are not met. Returns the bottleneck of each.
pub(super) fn find_broken(
    promises: &mut Promises,
    pools: &[PoolLook],
    up_s: u64,
    found: &mut Vec<Finding>,
) -> Bottlenecks {
    let mut bottlenecks = Bottlenecks::new();
    let mut before = std::mem::take(promises);
    for pool in pools {
        let pool_name = &pool.status.name;
        let volumes: BTreeMap<&str, &VolumeLook> = (pool.volumes.iter())
            .map(|volume| (volume.status.name.as_str(), volume))
            .collect();
        for (subject, qos, members) in tenants(pool) {
            let members = members.into_iter();
            let beneath = Beneath::of(members.filter_map(|name| volumes.get(name).copied()));
            let key = (pool.status.id.clone(), subject.clone());
            let mut promise = before.remove(&key).unwrap_or_default();
            promise.look(qos, beneath, written(&pool.status), up_s);
            if let Some(unmet) = promise.unmet() {
                let what = match subject.kind {
                    SubjectKind::Group => "group",
                    _ => "volume",
                };
                let (mostly, advice) = match promise.bottleneck() {
                    Some(bottleneck) => {
                        let (mostly, advice) = explained(bottleneck, pool_name, qos);
                        (format!("; bottleneck: {mostly}"), advice)
                    }
                    None => (
                        String::new(),
                        format!("see `convect qos status {pool_name}`"),
                    ),
                };
                let message = format!(
                    "{what} {pool_name}/{} missed its guarantees in the last minute: \
                     {unmet}{mostly}",
                    subject.name
                );
                found.push(finding(
                    EventCode::PromiseUnmet,
                    subject.clone(),
                    message,
                    advice,
                ));
            }
            if let Some(bottleneck) = promise.bottleneck() {
                bottlenecks.insert(subject, bottleneck);
            }
            promises.insert(key, promise);
        }
    }
    bottlenecks
}
