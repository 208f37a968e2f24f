//! Memory that operations have given back, for the next ones of the same thread: a large buffer that the
//! system has to map, zero and unmap each time costs more than the copies that it is for.

use crate::IoBuf;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Lengths that are kept, in bytes, and how many bytes of a thread at most.
const KEPT: RangeInclusive<usize> = 512..=1 << 20;
const HELD_MAX: usize = 8 << 20;

#[derive(Default)]
struct Spare {
    held: usize,
    by_len: BTreeMap<usize, Vec<IoBuf>>,
}

thread_local! {
    static SPARE: RefCell<Spare> = RefCell::default();
}

impl IoBuf {
    /// Memory of `len` bytes of its own, with whatever content it had: only for what is overwritten as a
    /// complete before it is read.
    pub fn spare(len: usize) -> Self {
        let kept = SPARE.with_borrow_mut(|spare| {
            let kept = spare.by_len.get_mut(&len)?.pop()?;
            spare.held -= len;
            Some(kept)
        });
        kept.unwrap_or_else(|| Self::zeroed(len))
    }

    /// Leaves memory of its own to the next operation of this thread that wants so much.
    pub fn give_back(self) {
        let len = self.len();
        if self.as_bytes().is_none() || !KEPT.contains(&len) {
            return;
        }
        SPARE.with_borrow_mut(|spare| {
            if spare.held + len > HELD_MAX {
                // Other lengths than are wanted now make room.
                spare.by_len.clear();
                spare.held = 0;
            }
            spare.held += len;
            spare.by_len.entry(len).or_default().push(self);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_to_who_wants_as_much() {
        let mut buf = IoBuf::spare(4096);
        buf.write(0, &[7; 4096]);
        let place = buf.as_bytes().map(<[u8]>::as_ptr);
        buf.give_back();
        let other = IoBuf::spare(512);
        assert_eq!(other.as_bytes(), Some(&[0; 512][..]), "none of that length");
        let again = IoBuf::spare(4096);
        assert_eq!(again.as_bytes().map(<[u8]>::as_ptr), place);
        let third = IoBuf::spare(4096);
        assert_ne!(third.as_bytes().map(<[u8]>::as_ptr), place);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        for _ in 0..3 {
            let many: Vec<_> = (0..20).map(|_| IoBuf::spare(1 << 20)).collect();
            many.into_iter().for_each(IoBuf::give_back);
            SPARE.with_borrow(|spare| {
                let kept: usize = spare.by_len.values().flatten().map(IoBuf::len).sum();
                assert!(kept == spare.held && kept <= HELD_MAX && kept > 0);
            });
        }
        IoBuf::zeroed(2 << 20).give_back();
        IoBuf::empty().give_back();
        SPARE.with_borrow(|spare| assert!(spare.by_len.keys().all(|len| KEPT.contains(len))));
    }
}
