//! A front end's memory: its own, or a guest's.

use smallvec::{SmallVec, smallvec};
use std::any::Any;
use std::sync::Arc;

/// A piece of memory of an [`IoBuf`].
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// First byte.
    pub ptr: *mut u8,
    /// Length in bytes.
    pub len: usize,
}

enum Keep {
    Owned(Box<[u8]>),
    Foreign(
        #[expect(dead_code, reason = "held so that the memory stays mapped")]
        Arc<dyn Any + Send + Sync>,
    ),
    Empty,
}

/// Memory that an operation reads into or writes from, in one or more segments; by default there is none.
///
/// It may be a guest's memory, which the guest can change at any time: it is only ever copied
/// from and to, through raw pointers, and no reference to it is made.
pub struct IoBuf {
    segments: SmallVec<[Segment; 2]>,
    len: usize,
    keep: Keep,
}

// SAFETY: the segments point into memory that `keep` owns or keeps mapped, and all access goes
// through `&mut self` or copies that tolerate concurrent change.
unsafe impl Send for IoBuf {}

impl Default for IoBuf {
    fn default() -> Self {
        Self::empty()
    }
}

impl IoBuf {
    /// No memory at all.
    pub fn empty() -> Self {
        Self {
            segments: SmallVec::new(),
            len: 0,
            keep: Keep::Empty,
        }
    }

    /// Zeroed memory of `len` bytes of its own.
    pub fn zeroed(len: usize) -> Self {
        Self::from_bytes(vec![0; len].into_boxed_slice())
    }

    /// Takes `bytes` as its memory.
    pub fn from_bytes(mut bytes: Box<[u8]>) -> Self {
        let segment = Segment {
            ptr: bytes.as_mut_ptr(),
            len: bytes.len(),
        };
        Self {
            segments: smallvec![segment],
            len: bytes.len(),
            keep: Keep::Owned(bytes),
        }
    }

    /// Memory of somebody else (a guest), in `segments`.
    ///
    /// # Safety
    /// Every segment must be mapped readable and writable for as long as `keep` lives.
    pub unsafe fn foreign(
        segments: SmallVec<[Segment; 2]>,
        keep: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        let len = segments.iter().map(|segment| segment.len).sum();
        Self {
            segments,
            len,
            keep: Keep::Foreign(keep),
        }
    }

    /// Length in bytes over all segments.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes, when the memory is its own (see [`IoBuf::from_bytes`]).
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match &self.keep {
            Keep::Owned(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Gives the memory back when it is its own.
    pub fn into_bytes(self) -> Option<Box<[u8]>> {
        match self.keep {
            Keep::Owned(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Calls `visit(pointer, offset within the range, length)` for each piece of `at..at + len`.
    fn pieces(&self, at: usize, len: usize, mut visit: impl FnMut(*mut u8, usize, usize)) {
        assert!(
            at.checked_add(len).is_some_and(|end| end <= self.len),
            "range outside of the buffer"
        );
        let (mut skip, mut done) = (at, 0);
        for segment in &self.segments {
            if skip >= segment.len {
                skip -= segment.len;
                continue;
            }
            let take = (segment.len - skip).min(len - done);
            if take > 0 {
                // SAFETY: `skip + take` lies within the segment.
                visit(unsafe { segment.ptr.add(skip) }, done, take);
                done += take;
            }
            skip = 0;
            if done == len {
                return;
            }
        }
    }

    /// Where `len` bytes from `at` on lie, if that is in one segment.
    pub(crate) fn one_piece(&self, at: usize, len: usize) -> Option<*mut u8> {
        let first = self.segments.first()?;
        let is_within = at.checked_add(len).is_some_and(|end| end <= first.len);
        // SAFETY: within the segment.
        is_within.then(|| unsafe { first.ptr.add(at) })
    }

    /// Copies `dst.len()` bytes that begin `at` bytes into this memory out to `dst`.
    ///
    /// # Panics
    /// When the range lies outside of this memory.
    pub fn read(&self, at: usize, dst: &mut [u8]) {
        // SAFETY: `dst` is not part of this memory, since it is borrowed mutably from elsewhere.
        unsafe { self.read_to(at, dst.as_mut_ptr(), dst.len()) };
    }

    /// As [`IoBuf::read`], to memory that need not hold anything yet.
    ///
    /// # Safety
    /// `to` can be written for `len` bytes, and is not part of this memory.
    pub(crate) unsafe fn read_to(&self, at: usize, to: *mut u8, len: usize) {
        self.pieces(at, len, |ptr, offset, len| {
            // SAFETY: source and target are valid for `len` bytes.
            unsafe { std::ptr::copy_nonoverlapping(ptr, to.add(offset), len) }
        });
    }

    /// Copies `src` into this memory, beginning `at` bytes into it.
    ///
    /// # Panics
    /// When the range lies outside of this memory.
    pub fn write(&mut self, at: usize, src: &[u8]) {
        self.pieces(at, src.len(), |ptr, offset, len| {
            // SAFETY: source and target are valid for `len` bytes and do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(src.as_ptr().add(offset), ptr, len) }
        });
    }

    /// Zeroes `len` bytes that begin `at` bytes into this memory.
    ///
    /// # Panics
    /// When the range lies outside of this memory.
    pub fn zero(&mut self, at: usize, len: usize) {
        self.pieces(at, len, |ptr, _, len| {
            // SAFETY: the target is valid for `len` bytes.
            unsafe { std::ptr::write_bytes(ptr, 0, len) }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_cross_segments() {
        let mut parts = [vec![1u8; 3], vec![2; 5], vec![3; 4]];
        let segments = parts.iter_mut().map(|part| Segment {
            ptr: part.as_mut_ptr(),
            len: part.len(),
        });
        // SAFETY: `parts` outlives the buffer.
        let mut buf = unsafe { IoBuf::foreign(segments.collect(), Arc::new(())) };
        let mut out = [0; 7];
        buf.read(2, &mut out);
        assert_eq!(out, [1, 2, 2, 2, 2, 2, 3]);
        buf.write(7, &[9, 9, 9]);
        buf.zero(0, 2);
        let mut all = [0; 12];
        buf.read(0, &mut all);
        assert_eq!(all, [0, 0, 1, 2, 2, 2, 2, 9, 9, 9, 3, 3]);
    }

    #[test]
    #[should_panic(expected = "outside of the buffer")]
    fn a_copy_past_the_end_is_refused() {
        IoBuf::zeroed(8).write(6, &[0; 3]);
    }
}
