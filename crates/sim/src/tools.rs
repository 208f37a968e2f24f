//! The recovery tools over what a crash left: they read the format by themselves, and have to find
//! what an opening would.

use crate::instant::Instant;
use crate::oracle::{Oracle, Wrong};
use drives::OpenDrive;
use inspect::{Inspection, Mode, Pool};
use reactor::Handle;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::BLOCK;

/// Blocks compared together.
const LONGEST: u64 = 64;

/// Copies every volume out as `convect restore` does, and compares it.
///
/// # Errors
/// What is wrong.
pub async fn compare(
    handle: &Handle,
    drives: &[Arc<Instant>],
    oracle: &Oracle,
) -> Result<(), Wrong> {
    let drives: Vec<Arc<dyn OpenDrive>> = drives.iter().map(|drive| drive.clone() as _).collect();
    let failed = |failed: inspect::InspectError| Wrong(format!("the tools: {failed}"));
    let pool = Pool::open(handle, &drives).await.map_err(failed)?;
    for (number, known) in &oracle.volumes {
        let Some(name) = crate::snapshots::name(pool.config(), *number, known) else {
            return Err(Wrong(format!("the tools know no volume {number}")));
        };
        let inspection = Inspection::new(&pool, Mode::Look, false, &|_| ());
        let mut content: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut sink = |offset: u64, bytes: &[u8]| {
            for (block, bytes) in (offset / BLOCK as u64..).zip(bytes.chunks(BLOCK)) {
                content.insert(block, bytes.to_vec());
            }
            Ok(())
        };
        let restored = inspect::restore_volume(&inspection, &name, &mut sink).await;
        let restored = restored.map_err(failed)?;
        if let Some(range) = restored.volume.lost.first() {
            return Err(Wrong(format!(
                "the tools lose {range:?} of volume {number}"
            )));
        }
        for (first, count) in oracle.ranges(*number, LONGEST) {
            let mut bytes = vec![0; count as usize * BLOCK];
            for (block, part) in (first..).zip(bytes.chunks_mut(BLOCK)) {
                if let Some(known) = content.get(&block) {
                    part[..known.len()].copy_from_slice(known);
                }
            }
            let offset = first * BLOCK as u64;
            let compared = oracle.check_crashed(*number, offset, &bytes);
            compared.map_err(|Wrong(what)| Wrong(format!("the tools: {what}")))?;
        }
    }
    Ok(())
}
