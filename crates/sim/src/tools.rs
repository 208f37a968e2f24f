//! The recovery tools on the state after a crash: they read the format independently, and must find
//! the same as an opening.

use crate::openings::Opening;
use crate::oracle::{Oracle, Wrong};
use drives::OpenDrive;
use inspect::{Inspection, Mode, Pool};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use units::BLOCK;

/// Copies every volume out as `convect restore` does, and compares it.
///
/// # Errors
/// The fault.
pub async fn compare(opening: &Opening, oracle: &Oracle) -> Result<(), Wrong> {
    let (handle, drives) = (opening.handle(), opening.drives());
    let drives: Vec<Arc<dyn OpenDrive>> = drives.iter().map(|drive| drive.clone() as _).collect();
    let failed = |failed: inspect::InspectError| Wrong(format!("the tools: {failed}"));
    let pool = Pool::open(handle, &drives).await.map_err(failed)?;
    for (number, known) in &oracle.volumes {
        let Some(name) = crate::snapshots::name(pool.config(), *number, known) else {
            return Err(Wrong(format!("the tools know no volume {number}")));
        };
        let inspection = Inspection::new(&pool, Mode::Look, false, &|_| ());
        let known: BTreeSet<u64> = known.sectors.blocks().collect();
        // One layer is written over the other: what came last counts, and is zeroes where nothing came.
        let (mut missing, mut wrong) = (known.clone(), BTreeMap::new());
        let mut sink = |offset: u64, bytes: &[u8]| {
            for (block, bytes) in (offset / BLOCK as u64..).zip(bytes.chunks(BLOCK)) {
                if !known.contains(&block) {
                    continue;
                }
                missing.remove(&block);
                match oracle.check_crashed(*number, block * BLOCK as u64, bytes) {
                    Ok(()) => wrong.remove(&block),
                    Err(what) => wrong.insert(block, what),
                };
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
        for block in missing {
            let offset = block * BLOCK as u64;
            if let Err(what) = oracle.check_crashed(*number, offset, &[0; BLOCK]) {
                wrong.insert(block, what);
            }
        }
        if let Some((_, Wrong(what))) = wrong.pop_first() {
            return Err(Wrong(format!("the tools: {what}")));
        }
    }
    Ok(())
}
