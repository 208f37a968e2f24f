//! Memory that is requested before it is needed.

use std::cell::Cell;

/// Bytes that a processor fetches at a time.
const LINE: usize = 64;
/// Lines that are prefetched at a time: a processor has some 16 misses in flight, and what is done meanwhile is to find some of
/// these free.
const LINES: usize = 6;
/// Bytes between the prefetched lines of data that is needed immediately: enough of them for the processor to see what is wanted.
const APART: usize = 1024;

/// Has the processor fetch a value that will be used in a moment, while other things are done.
#[inline]
pub fn prefetch<T>(value: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads and writes nothing that a program sees, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(value.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// A range of memory that will be used soon. It need not be there any more when it is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coming {
    start: *const u8,
    end: *const u8,
}

impl Coming {
    /// Nothing.
    pub const NOTHING: Self = Self {
        start: std::ptr::null(),
        end: std::ptr::null(),
    };

    /// `len` bytes from `start` on.
    pub fn new(start: *const u8, len: usize) -> Self {
        let end = start.wrapping_add(len);
        Self { start, end }
    }

    /// Prefetches some lines all over the range, which is needed immediately.
    pub fn begin(self) {
        let mut at = self.start;
        while at < self.end {
            prefetch(at);
            at = at.wrapping_add(APART);
        }
    }
}

/// Data being prefetched, some lines at a time between other work: all in one go would delay the present work.
// Fields of their own: a processor waits for what it reads as one and has just written as two.
#[derive(Debug)]
pub struct Fetching {
    next: Cell<*const u8>,
    end: Cell<*const u8>,
}

impl Default for Fetching {
    fn default() -> Self {
        let Coming { start, end } = Coming::NOTHING;
        Self {
            next: Cell::new(start),
            end: Cell::new(end),
        }
    }
}

impl Fetching {
    /// From now on this is fetched.
    #[inline]
    pub fn begin(&self, coming: Coming) {
        self.next.set(coming.start);
        self.end.set(coming.end);
    }

    /// Whether all was requested.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.next.get() >= self.end.get()
    }

    /// Has the processor fetch the next lines.
    #[inline]
    pub fn some(&self) {
        if self.is_over() {
            return;
        }
        let next = self.next.get();
        (0..LINES).for_each(|index| prefetch(next.wrapping_add(index * LINE)));
        self.next.set(next.wrapping_add(LINES * LINE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_fetched_to_its_end_and_no_further() {
        let block = [0_u8; 4096];
        let coming = Coming::new(block.as_ptr(), block.len());
        let fetching = Fetching::default();
        let times = || {
            let mut times = 0;
            while !fetching.is_over() {
                fetching.some();
                times += 1;
            }
            times
        };
        assert_eq!(times(), 0);
        fetching.begin(coming);
        assert_eq!(times(), 11);
        fetching.begin(Coming::NOTHING);
        assert_eq!(times(), 0);
        coming.begin();
    }
}
