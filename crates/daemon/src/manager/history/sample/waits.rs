//! Waits of volumes at the gate of quality of service.

use super::{Deltas, Sample};
use engine::{VolumeQos, VolumeStatus};

/// Indices of the counters below in their deltas.
const WAITED: usize = 0;
const HELD: usize = 1;
const OWN: usize = 2;
const GROUP: usize = 3;

/// Waits since the last sample, in nanoseconds summed over operations: for the volume's own maximum,
/// and for others. The gate tells the two apart by the time in which any operation was held.
fn divided(did: &Deltas, share_of_group: f64) -> [u64; 2] {
    let [waited, held, own] = [WAITED, HELD, OWN].map(|index| did.counted[index] as f64);
    let waited = waited * share_of_group;
    let own = match held > 0.0 {
        true => waited * (own / held).min(1.0),
        false => 0.0,
    };
    [own as u64, (waited - own) as u64]
}

impl Sample {
    /// Waits of a volume since the last sample, in which hosts `did` this. The counters of a group are of all its volumes: its
    /// waits are divided by their operations.
    pub(super) fn waited(&mut self, pool: &str, volume: &VolumeStatus, did: &Deltas) -> [u64; 2] {
        let Some(qos) = &volume.qos else {
            return [0; 2];
        };
        let VolumeQos { policy, group, .. } = qos;
        // Counters restart with another policy or group, and so does their name here.
        let group = group.as_deref().unwrap_or_default();
        let key = format!("waits of {pool}/{} in {group}/{}", volume.name, policy.id);
        let mut now = Deltas::default();
        for (index, count) in [
            (WAITED, qos.waited_ns),
            (HELD, qos.held_ns),
            (OWN, qos.own_ns),
            (GROUP, qos.operations),
        ] {
            now.counted[index] = count;
        }
        let Some(of_gate) = self.since(&key, now) else {
            return [0; 2];
        };
        let operations = did.counted[0] + did.counted[1];
        let share_of_group = match group.is_empty() {
            true => 1.0,
            false => (operations as f64 / of_gate.counted[GROUP].max(1) as f64).min(1.0),
        };
        divided(&of_gate, share_of_group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_divided_by_the_time_held_for_each_reason() {
        let mut did = Deltas::default();
        did.counted[WAITED] = 1000;
        did.counted[HELD] = 80;
        did.counted[OWN] = 60;
        assert_eq!(divided(&did, 1.0), [750, 250]);
        assert_eq!(divided(&did, 0.5), [375, 125]);
        assert_eq!(divided(&Deltas::default(), 1.0), [0, 0]);
    }
}
