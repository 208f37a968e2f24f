//! Canned responses of the fake engine.

use block::{BlockDevice, Completion, Geometry, Op, OpKind};
use engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A block moved from RAM to the fast tier 100 s ago, when RAM needed space.
pub fn explained(offset: u64) -> Explanation {
    let rose = MoveStatus {
        ago_ns: 100_000_000_000,
        cause: Cause::RoseWorth,
        blocks: 0b1010,
        worth: 0.5,
        wanted: 0.25,
        displaced: Some(ExtentPlace {
            volume: Some("w".to_owned()),
            offset: 65_536,
        }),
    };
    let wrote = MoveStatus {
        ago_ns: 200_000_000_000,
        cause: Cause::Written,
        blocks: u16::MAX,
        worth: 0.0,
        wanted: 0.0,
        displaced: None,
    };
    Explanation {
        offset: offset / 4096 * 4096,
        inherited: false,
        snapshot: None,
        places: vec![BlockPlace {
            tier: Spot::Fast,
            kind: CopyKind::Copy,
            vdrive: Some(1),
            drives: vec![DrivePlace {
                drive: "ram:a".to_owned(),
                byte: 8192,
            }],
            came: Some(rose.clone()),
            log_ns: 400_000_000_000,
        }],
        heat: None,
        moves: vec![rose, wrote],
        log_ns: 300_000_000_000,
        log_is_whole: false,
    }
}

/// A volume that discards writes, but records whether any were not flushed.
pub struct Nothing(pub Arc<AtomicBool>);

impl BlockDevice for Nothing {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: 1 << 20,
            lba_size: 512,
            block_size: 4096,
            read_only: false,
            serial: "s".to_owned(),
        }
    }

    fn submit(&self, op: Op) -> std::result::Result<(), Op> {
        let Op {
            tag,
            kind,
            buf,
            done,
            ..
        } = op;
        match kind {
            OpKind::Write | OpKind::WriteZeroes => self.0.store(true, Ordering::Relaxed),
            OpKind::Flush => self.0.store(false, Ordering::Relaxed),
            _ => {}
        }
        done.complete(Completion {
            tag,
            result: Ok(()),
            buf,
            extents: Vec::new(),
        });
        Ok(())
    }

    fn on_change(&self, _listener: u64, _waker: std::task::Waker) {}

    fn is_gone(&self) -> bool {
        false
    }
}
