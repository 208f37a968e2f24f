//! Snapshot diffs and receives of the fake engine.

use super::{Fake, Result};
use engine::*;

impl Fake {
    /// 1 MiB, of which the first block differs.
    pub fn diff_from(&self, start: u64) -> Result<SnapshotDiff> {
        let (size, next) = (1 << 20, (start == 0).then_some(4096));
        let (offset, len, data) = (start, 4096, true);
        let ranges = vec![ChangedRange { offset, len, data }];
        Ok(SnapshotDiff { size, ranges, next })
    }

    /// Begins a receive into a volume.
    pub fn begin_to_receive(&self, pool: &str, volume: &str, spec: &ReceiveSpec) -> Result<u64> {
        self.with(pool, |stored| {
            let made = VolumeSpec {
                name: volume.to_owned(),
                size: spec.size,
                lba_size: spec.lba_size,
                thick: false,
                quota: 0,
                reservation: 0,
            };
            stored.volumes.entry(volume.to_owned()).or_insert(made);
            stored.receiving = spec.snapshot.clone();
            Ok(0)
        })
    }
}
