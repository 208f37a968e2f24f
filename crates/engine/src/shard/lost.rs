//! Blocks that no drive has right: which they are, and where they lie.

use super::state::Shard;
use format::crc32c;
use units::{BLOCK, CHUNK, Place};

/// Blocks named in one line of the log; the rest is counted.
const NAMED: usize = 8;

impl Shard {
    /// Says which blocks of a volume that should lie from `place` on cannot be read: `first` is the
    /// first one's number within the chunk, `crcs` are what they should have.
    pub(super) async fn tell_lost(
        &self,
        (volume, chunk): (u32, u32),
        first: usize,
        place: Place,
        crcs: &[u32],
    ) {
        let Ok(vdrive) = self.vdrive(place.vdrive()) else {
            return;
        };
        let mut lost = 0;
        let mut named = Vec::new();
        for (index, crc) in crcs.iter().enumerate() {
            let check = |_: usize, bytes: &[u8]| crc32c(bytes) == *crc;
            let at = place.plus(index as u64);
            let Err(error) = self.read_place(at, 1, &check).await else {
                continue;
            };
            lost += 1;
            if named.len() < NAMED {
                let offset = u64::from(chunk) * CHUNK as u64 + ((first + index) * BLOCK) as u64;
                let places = vdrive.places_of(at.block()).join(", ");
                named.push(format!("byte {offset} ({places}: {error})"));
            }
        }
        if lost > 0 {
            let blocks = named.join("; ");
            tracing::error!(
                volume,
                vdrive = place.vdrive().0,
                lost,
                blocks,
                "blocks of {BLOCK} bytes are lost: no drive has them right; write them anew or restore them"
            );
        }
    }
}
