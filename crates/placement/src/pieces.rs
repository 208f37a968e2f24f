//! A table that grows piece by piece, in memory that the system may come to back with huge pages.
//!
//! For tables of which any place may be examined next: with pages of 4 KiB each look waits for the page tables as well,
//! which are in no cache of the processor either. Nothing is moved once the table has more than one piece, so growing never
//! takes longer than copying 1 MiB.
//!
//! Deliberately the one place of the policy with `unsafe` and a call of the system: a hint about memory changes no decision.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Index, IndexMut};
use std::ptr::NonNull;

/// Size of a huge page, and of a piece, in bytes.
const HUGE: usize = 2 << 20;
/// The least that a first piece takes, in bytes.
const LEAST: usize = 2048;

/// A table of values that are found by their number. The first piece grows by doubling up to 2 MiB, the others have that
/// from the beginning.
pub(crate) struct Pieces<T: Copy> {
    pieces: Vec<Piece<T>>,
}

impl<T: Copy> Default for Pieces<T> {
    fn default() -> Self {
        Self { pieces: Vec::new() }
    }
}

impl<T: Copy> Pieces<T> {
    /// Values of a piece.
    pub(crate) const EACH: usize = {
        let each = HUGE / size_of::<T>();
        assert!(each.is_power_of_two() && each * size_of::<T>() == HUGE);
        each
    };

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        let whole = self.pieces.len().saturating_sub(1) * Self::EACH;
        whole + self.pieces.last().map_or(0, |last| last.len)
    }

    /// A value.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        let piece = self.pieces.get(at / Self::EACH)?;
        piece.values().get(at % Self::EACH)
    }

    /// The same, to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        let piece = self.pieces.get_mut(at / Self::EACH)?;
        piece.values_mut().get_mut(at % Self::EACH)
    }

    /// `count` values from a multiple of `count` on, which has to be a power of two.
    ///
    /// # Panics
    /// If the index is out of range.
    #[inline]
    pub(crate) fn run(&self, at: usize, count: usize) -> &[T] {
        let first = at % Self::EACH;
        &self.pieces[at / Self::EACH].values()[first..first + count]
    }

    /// The same, to change them.
    ///
    /// # Panics
    /// If the index is out of range.
    pub(crate) fn run_mut(&mut self, at: usize, count: usize) -> &mut [T] {
        let first = at % Self::EACH;
        &mut self.pieces[at / Self::EACH].values_mut()[first..first + count]
    }

    /// Adds `count` times a value.
    pub(crate) fn extend(&mut self, mut count: usize, value: T) {
        while count > 0 {
            match self.pieces.last_mut() {
                Some(last) if last.len < last.capacity => count -= last.extend(count, value),
                _ => self.grow(),
            }
        }
    }

    /// Adds a value.
    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        self.extend(1, value);
    }

    /// Makes room behind the last value.
    #[cold]
    fn grow(&mut self) {
        match self.pieces.as_mut_slice() {
            [] => {
                let least = (LEAST / size_of::<T>()).max(1);
                self.pieces.push(Piece::new(least));
            }
            [first] if first.capacity < Self::EACH => {
                let mut larger = Piece::new(2 * first.capacity);
                for value in first.values() {
                    larger.extend(1, *value);
                }
                *first = larger;
            }
            _ => self.pieces.push(Piece::new(Self::EACH)),
        }
    }
}

impl<T: Copy> Index<usize> for Pieces<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.pieces[at / Self::EACH].values()[at % Self::EACH]
    }
}

impl<T: Copy> IndexMut<usize> for Pieces<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.pieces[at / Self::EACH].values_mut()[at % Self::EACH]
    }
}

/// A vector with a fixed capacity, which may be backed by a huge page if it fills one.
struct Piece<T: Copy> {
    start: NonNull<T>,
    len: usize,
    capacity: usize,
}

// SAFETY: it owns its values, to which no other pointer exists.
unsafe impl<T: Copy + Send> Send for Piece<T> {}
// SAFETY: shared, it gives out shared references alone.
unsafe impl<T: Copy + Sync> Sync for Piece<T> {}

impl<T: Copy> Piece<T> {
    fn new(capacity: usize) -> Self {
        let layout = Self::layout(capacity);
        assert!(layout.size() > 0, "values take memory");
        // SAFETY: the size is not 0.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else {
            handle_alloc_error(layout);
        };
        Self {
            start: start.cast(),
            len: 0,
            capacity,
        }
    }

    fn layout(capacity: usize) -> Layout {
        let layout = Layout::array::<T>(capacity).and_then(|layout| match layout.size() {
            HUGE => layout.align_to(HUGE),
            _ => Ok(layout),
        });
        layout.expect("a piece is at most a huge page")
    }

    /// Adds a value up to `most` times, as long as there is room; says how often.
    #[inline]
    fn extend(&mut self, most: usize, value: T) -> usize {
        let count = most.min(self.capacity - self.len);
        for at in self.len..self.len + count {
            // SAFETY: within the capacity, which was allocated.
            unsafe { self.start.add(at).write(value) };
        }
        self.len += count;
        if self.len == self.capacity && Self::layout(self.capacity).size() == HUGE {
            // Not before it was touched: the first touch of a huge page makes this thread wait until the system has
            // cleared one, and found one. Now the system's own thread takes it together.
            advise(self.start.cast(), HUGE);
        }
        count
    }

    #[inline]
    fn values(&self) -> &[T] {
        // SAFETY: the first `len` were written, and are borrowed as long as this is.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    #[inline]
    fn values_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and no other pointer to them exists.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> Drop for Piece<T> {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout; values that are `Copy` need no end.
        unsafe { dealloc(self.start.cast().as_ptr(), Self::layout(self.capacity)) };
    }
}

/// Asks for a huge page in place of small ones; a system without any refuses, which is no harm.
#[cfg(target_os = "linux")]
fn advise(start: NonNull<u8>, bytes: usize) {
    // SAFETY: whole pages that a piece owns; what they hold stays the same.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise(_: NonNull<u8>, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_what_they_are_while_the_table_grows() {
        let mut table = Pieces::default();
        assert!(table.len() == 0 && table.get(0).is_none());
        let count = 3 * Pieces::<u64>::EACH + 17;
        (0..count).for_each(|at| table.push(at as u64 * 3));
        assert_eq!(table.len(), count);
        assert!((0..count).all(|at| table[at] == at as u64 * 3));
        table[count - 1] = 1;
        *table.get_mut(0).expect("there") = 2;
        assert_eq!((table.get(count - 1), table.get(0)), (Some(&1), Some(&2)));
        assert!(table.get(count).is_none() && table.get_mut(count).is_none());
        assert!(table.get(usize::MAX).is_none());
    }

    #[test]
    fn runs_are_what_was_added() {
        let mut table = Pieces::default();
        (0..600).for_each(|number: u64| table.extend(4096, number));
        let is_run = |number: u64| {
            let run = table.run(number as usize * 4096, 4096);
            run.len() == 4096 && run.iter().all(|it| *it == number)
        };
        assert!((0..600).all(is_run));
        table.run_mut(4096, 4096).fill(9);
        assert_eq!(
            (table[4095], table[4096], table[8191], table[8192]),
            (0, 9, 9, 2)
        );
    }

    #[test]
    fn a_small_table_takes_little_and_a_large_one_whole_huge_pages() {
        let mut table = Pieces::default();
        table.push(0u64);
        assert_eq!(table.pieces[0].capacity * size_of::<u64>(), LEAST);
        table.extend(2 * Pieces::<u64>::EACH, 0);
        assert_eq!(table.pieces.len(), 3);
        for piece in &table.pieces {
            assert_eq!(piece.start.as_ptr() as usize % HUGE, 0);
            assert_eq!(piece.capacity * size_of::<u64>(), HUGE);
        }
    }
}
