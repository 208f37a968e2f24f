//! What the tests of quotas and reservations share.

use block::{ErrorKind, IoError};
use engine::{Engine, ErrorCode, VolumeChange, VolumeStatus};

/// Regions of 256 MiB, which shards have in turn.
pub const REGION: u64 = 256 * super::MIB;

/// A volume of the pool `tank`.
pub fn show(engine: &Engine, name: &str) -> VolumeStatus {
    let volumes = engine.volume_list("tank").unwrap();
    let mut named = volumes.into_iter().filter(|known| known.name == name);
    named.next().unwrap()
}

/// Changes one.
pub fn change(
    engine: &Engine,
    name: &str,
    change: VolumeChange,
) -> Result<VolumeStatus, ErrorCode> {
    let changed = engine.volume_change("tank", name, &change);
    changed.map_err(|failed| failed.code)
}

/// Whether a write found no space.
pub fn is_full(result: Result<(), IoError>) -> bool {
    result.is_err_and(|error| error.kind == ErrorKind::NoSpace)
}

/// The books of the pool `tank` are right.
pub fn right(engine: &Engine) {
    super::audit_at_rest(engine, "tank");
}
