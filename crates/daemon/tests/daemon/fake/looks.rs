//! What volumes of an engine in memory did.

use super::{Fake, volume};
use engine::VolumeLook;

impl Fake {
    /// The volumes of an open pool, with what the world says that they did.
    pub fn volume_looks(&self, pool: &str) -> Vec<VolumeLook> {
        let pools = self.world.pools();
        let volumes = pools.get(pool).map(|pool| pool.volumes.values());
        let did = self.world.did.lock().unwrap();
        let look = |spec| {
            let mut status = volume(pool, spec);
            status.targets = *self.world.expected.lock().unwrap();
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
