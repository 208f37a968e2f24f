//! A volume in memory whose operations end where they are submitted: what is left to measure is
//! the front end. Shared by the examples of several front ends.

use block::{BlockDevice, Completion, Geometry, IoBuf, Op, OpKind};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

/// Ends each operation where it is submitted.
pub struct Memory(Mutex<Vec<u8>>);

impl Memory {
    /// A volume of `size` zeroes.
    pub fn volume(size: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(vec![0; size as usize])))
    }
}

impl BlockDevice for Memory {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: self.0.lock().unwrap_or_else(PoisonError::into_inner).len() as u64,
            lba_size: 512,
            block_size: 4096,
            read_only: false,
            serial: "memory".to_owned(),
        }
    }

    fn submit(&self, mut op: Op) -> Result<(), Op> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let range = op.offset as usize..(op.offset + op.len) as usize;
        match op.kind {
            OpKind::Read => op.buf.write(0, &bytes[range]),
            OpKind::Write => op.buf.read(0, &mut bytes[range]),
            OpKind::Discard | OpKind::WriteZeroes => bytes[range].fill(0),
            OpKind::Flush | OpKind::Status | OpKind::Changed(_) => {}
        }
        drop(bytes);
        op.done.complete(Completion {
            tag: op.tag,
            result: Ok(()),
            buf: std::mem::replace(&mut op.buf, IoBuf::empty()),
            extents: Vec::new(),
        });
        Ok(())
    }

    fn on_change(&self, _listener: u64, _waker: Waker) {}

    fn is_gone(&self) -> bool {
        false
    }
}
