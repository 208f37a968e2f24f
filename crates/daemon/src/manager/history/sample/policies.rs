//! Samples of quality-of-service policies: combined activity of their volumes, their minimums, and
//! the share of time with demand in which these were met.

use super::{Deltas, Sample};
use crate::history::{Kind, SERIES_MAX};
use engine::{PoolLook, VolumeQos};
use std::collections::BTreeMap;

/// Indices of a policy's own metrics, as in `history::Kind`.
const PROMISED: usize = 6;
const WINDOWS: usize = 7;
const MET: usize = 8;
const HELD: usize = 9;
const LATE: usize = 10;

/// Deltas of the volumes with a policy.
#[derive(Default)]
struct OfPolicy {
    hosts: Deltas,
    /// In the order of the policy's metrics.
    attained: [u64; SERIES_MAX],
    promised_iops: u64,
}

/// Counters of a guarantee.
fn counted(qos: &VolumeQos) -> Deltas {
    let mut did = Deltas::default();
    did.counted[WINDOWS] = qos.windows;
    did.counted[MET] = qos.met;
    did.counted[HELD] = qos.held;
    did.counted[LATE] = qos.late;
    did
}

impl Sample {
    /// Adds the policies in use in a pool. `volumes`: deltas of each volume by name.
    pub(super) fn policies(&mut self, look: &PoolLook, volumes: &BTreeMap<&str, Deltas>) {
        let pool = &look.status.name;
        let mut policies = BTreeMap::<&str, OfPolicy>::new();
        for status in look.volumes.iter().map(|volume| &volume.status) {
            let Some(qos) = &status.qos else { continue };
            let of = policies.entry(&qos.policy.name).or_default();
            if let Some(did) = volumes.get(status.name.as_str()) {
                of.hosts.add(did);
            }
            if qos.group.is_none() {
                let key = format!("promise to {pool}/{}", status.name);
                self.promise(of, &key, qos);
            }
        }
        for group in &look.groups {
            let Some(qos) = &group.qos else { continue };
            let of = policies.entry(&qos.policy.name).or_default();
            let key = format!("promise to the group {pool}/{}", group.name);
            self.promise(of, &key, qos);
        }
        for (name, of) in policies {
            let mut values = of.hosts.values(self.seconds);
            let rate = |index: usize| (of.attained[index] as f64 / self.seconds) as f32;
            values[PROMISED] = of.promised_iops as f32;
            for index in [WINDOWS, HELD, LATE] {
                values[index] = rate(index);
            }
            values[MET] = match of.attained[WINDOWS] {
                0 => f32::NAN,
                windows => of.attained[MET] as f32 / windows as f32,
            };
            let object = Kind::Policy.object(pool, Some(name));
            self.tell(Kind::Policy, object, values, of.hosts.spread);
        }
    }

    /// Adds a volume with its own policy, or a group.
    fn promise(&mut self, of: &mut OfPolicy, key: &str, qos: &VolumeQos) {
        of.promised_iops += qos.policy.min_iops;
        let did = self.since(key, counted(qos)).unwrap_or_default();
        let sums = of.attained.iter_mut().zip(did.counted);
        sums.for_each(|(sum, more)| *sum += more);
    }
}
