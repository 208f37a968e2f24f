//! SANITIZE (SBC-3 5.19): nothing that a host could read before can be read afterwards.
//!
//! Responsible for: overwriting or unmapping every block of the volume. Leaves out: what drives keep
//! of blocks that the pool has given to others or free; CRYPTO ERASE, as there is no key.

use crate::execute::{Answer, Call};
use crate::fields::u16_at;
use crate::io::{Step, run};
use crate::nexus::Nexus;
use crate::once::Once;
use crate::sense::Sense;
use crate::transfer::{TOGETHER, aligned, pieces};
use crate::unit::Unit;
use block::{BlockDevice, IoBuf, IoError, OpKind};
use reactor::Handle;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Rate of OVERWRITE, in bytes per second: the unit cannot be used meanwhile, but other units use the
/// drives beneath.
const RATE: u64 = 256 << 20;

/// The operation in progress, independent of the nexus that began it: it continues when that is gone or reset.
struct Work {
    handle: Handle,
    device: Arc<dyn BlockDevice>,
    unit: Arc<Unit>,
    /// Written everywhere; where it is empty the blocks are given back.
    pattern: Vec<u8>,
}

impl Drop for Work {
    fn drop(&mut self) {
        self.unit
            .switches
            .sanitizing
            .store(false, Ordering::Release);
    }
}

impl Work {
    fn begin(nexus: &Nexus, pattern: Vec<u8>) -> Result<Self, Sense> {
        let sanitizing = &nexus.unit.switches.sanitizing;
        if sanitizing.swap(true, Ordering::AcqRel) {
            return Err(Sense::SANITIZING);
        }
        Ok(Self {
            handle: nexus.handle.clone(),
            device: nexus.device.clone(),
            unit: nexus.unit.clone(),
            pattern,
        })
    }

    async fn run(self) -> Result<(), IoError> {
        let size = self.unit.size();
        let _held = self.unit.hold_to_change(0..size, true).await;
        if self.pattern.is_empty() {
            for piece in aligned(0..size, TOGETHER) {
                let step = Step::new(OpKind::Discard, piece.start, piece.end - piece.start);
                run(&self.handle, &self.device, step, IoBuf::empty()).await?;
            }
        }
        // The pattern begins again with every block.
        let lba_size = self.unit.lba_size() as usize;
        let block: Vec<u8> = self
            .pattern
            .iter()
            .copied()
            .cycle()
            .take(lba_size)
            .collect();
        let range = 0..if block.is_empty() { 0 } else { size };
        let began_ns = self.handle.now_ns();
        for piece in pieces(range) {
            let due_ns = (piece.start >> 20) * (1_000_000_000 / (RATE >> 20));
            self.handle.sleep_until(began_ns + due_ns).await;
            let len = piece.end - piece.start;
            let bytes = block.repeat(len as usize / lba_size).into_boxed_slice();
            let step = Step::new(OpKind::Write, piece.start, len);
            run(&self.handle, &self.device, step, IoBuf::from_bytes(bytes)).await?;
        }
        let step = Step::new(OpKind::Flush, 0, 0);
        run(&self.handle, &self.device, step, IoBuf::empty()).await?;
        Ok(())
    }
}

/// The pattern of OVERWRITE (SBC-3 5.19.2.2).
fn pattern(list: &[u8], lba_size: usize) -> Result<Vec<u8>, Sense> {
    let count = list[0] & 0x1f;
    let inverts = list[0] & 0x80 != 0;
    let len = usize::from(u16_at(list, 2));
    if count == 0 || len == 0 || len > lba_size || 4 + len > list.len() {
        return Err(Sense::INVALID_FIELD_IN_CDB);
    }
    let pattern = &list[4..4 + len];
    // Only the last of the passes can be read; before each but the first it is inverted.
    let flips = inverts && count.is_multiple_of(2);
    Ok(pattern
        .iter()
        .map(|byte| if flips { !byte } else { *byte })
        .collect())
}

impl Call<'_> {
    pub(crate) async fn sanitize(mut self) -> Answer {
        if self.cdb[1] & 0x40 != 0 || self.cdb[2..7].iter().any(|byte| *byte != 0) {
            return Err(Sense::INVALID_FIELD_IN_CDB.into());
        }
        let at_once = self.cdb[1] & 0x80 != 0;
        let len = usize::from(u16_at(self.cdb, 7));
        let pattern = match self.cdb[1] & 0x1f {
            // EXIT FAILURE MODE: it has never failed so that it would have to be left.
            0x1f if len == 0 => return Ok(self.empty()),
            0x02 if len == 0 => Vec::new(),
            0x01 => {
                let lba_size = self.nexus.block_size() as usize;
                if !(5..=lba_size + 4).contains(&len) {
                    return Err(Sense::INVALID_FIELD_IN_CDB.into());
                }
                pattern(self.data(len as u64)?, lba_size)?
            }
            _ => return Err(Sense::INVALID_FIELD_IN_CDB.into()),
        };
        let work = Work::begin(self.nexus, pattern)?;
        let ended = Arc::new(Once::default());
        let done = ended.clone();
        self.nexus
            .handle
            .spawn(async move { done.give(work.run().await) });
        if !at_once {
            // No abort and no reset ends it, and none waits for it (SBC-3 4.11.2).
            self.running = None;
            ended.take().await?;
        }
        Ok(self.took(len as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_is_checked_and_inverted_as_asked() {
        assert_eq!(pattern(&[1, 0, 0, 2, 5, 6], 512), Ok(vec![5, 6]));
        assert_eq!(pattern(&[0x82, 0, 0, 1, 0x0f], 512), Ok(vec![0xf0]));
        assert_eq!(pattern(&[0x81, 0, 0, 1, 0x0f], 512), Ok(vec![0x0f]));
        for list in [
            &[0, 0, 0, 1, 5][..],
            &[1, 0, 0, 0, 5],
            &[1, 0, 0, 2, 5],
            &[1, 0, 2, 1, 5],
        ] {
            assert!(pattern(list, 512).is_err(), "{list:?}");
        }
    }
}
