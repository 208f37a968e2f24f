//! Volumes of the fake engine and their counters.

use super::Fake;
use engine::*;

/// A volume created from a specification.
pub fn volume(pool: &str, spec: &VolumeSpec) -> VolumeStatus {
    VolumeStatus {
        id: 1,
        name: spec.name.clone(),
        pool: pool.to_owned(),
        size: spec.size,
        lba_size: spec.lba_size,
        thick: spec.thick,
        mapped: 0,
        held: 0,
        quota: spec.quota,
        reservation: spec.reservation,
        reserved: spec.reservation,
        fast: 0,
        knobs: KnobsStatus {
            promotion: true,
            pins: Vec::new(),
            fast_floor: 0,
            fast_ceiling: 0,
            reaction: Reaction::Normal,
            write_budget: 0,
            bypass: Vec::new(),
            bypassed: [0; 3],
            budget_used: 0,
            budget_left: 0,
        },
        targets: Targets::default(),
        qos: None,
        serial: "s".to_owned(),
        state: "online".to_owned(),
        receiving: None,
    }
}

impl Fake {
    /// Volumes of an open pool, with the counters given by the world.
    pub fn volume_looks(&self, pool: &str) -> Vec<VolumeLook> {
        let pools = self.world.pools();
        let volumes = pools.get(pool).map(|pool| pool.volumes.values());
        let did = self.world.did.lock().unwrap();
        let look = |spec| {
            let mut status = volume(pool, spec);
            status.targets = *self.world.expected.lock().unwrap();
            status.qos = self.world.attained.lock().unwrap().clone();
            let (counters, spread) = did.get(&status.name).copied().unwrap_or_default();
            VolumeLook {
                status,
                counters,
                spread,
                sources: engine::SourceTimes::default(),
            }
        };
        volumes.into_iter().flatten().map(look).collect()
    }
}
