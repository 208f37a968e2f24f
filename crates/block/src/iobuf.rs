//! A front end's memory: its own, or a guest's.

use smallvec::{SmallVec, smallvec};
use std::any::Any;
use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

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
    Foreign {
        #[expect(dead_code, reason = "held so that the memory stays mapped")]
        memory: Arc<dyn Any + Send + Sync>,
        /// The segment that was looked for last: mostly one looks for a place in it, or in the next one. Both lie
        /// where the memory's owner leaves room, so that an operation does not grow.
        near: Cell<u16>,
        /// Its first byte within the memory.
        near_from: Cell<u32>,
    },
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

/// Memory that was cut into parts.
pub struct CutBuf(Arc<Mutex<IoBuf>>);

impl CutBuf {
    /// The memory as it was before it was cut; none while there are parts of it.
    pub fn rejoin(self) -> Option<IoBuf> {
        let whole = Arc::into_inner(self.0)?;
        Some(whole.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
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

    /// Foreign memory (of a guest), in `segments`.
    ///
    /// # Safety
    /// Every segment must be mapped readable and writable for as long as `memory` lives.
    pub unsafe fn foreign(
        segments: SmallVec<[Segment; 2]>,
        memory: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        let len = segments.iter().map(|segment| segment.len).sum();
        Self {
            segments,
            len,
            keep: Keep::Foreign {
                memory,
                near: Cell::default(),
                near_from: Cell::default(),
            },
        }
    }

    /// Cuts the memory into parts of these starts and lengths, in bytes, without a copy; [`CutBuf::rejoin`] gives it back
    /// when all of them are dropped.
    ///
    /// # Panics
    /// When the parts do not follow one another, overlap, or pass the end.
    pub fn cut(self, parts: &[(usize, usize)]) -> (CutBuf, Vec<Self>) {
        let whole = Arc::new(Mutex::new(self));
        let mut free_from = 0;
        let part = |(start, len): &(usize, usize)| {
            assert!(*start >= free_from, "parts of a buffer overlap");
            let mut segments = SmallVec::new();
            let whole_buf = whole.lock().unwrap_or_else(PoisonError::into_inner);
            whole_buf.pieces(*start, *len, |ptr, _, len| {
                segments.push(Segment { ptr, len })
            });
            free_from = start + len;
            // SAFETY: the segments are a part of the memory that `whole` keeps, which no other part has.
            unsafe { Self::foreign(segments, whole.clone()) }
        };
        let parts = parts.iter().map(part).collect();
        (CutBuf(whole), parts)
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

    /// The segment that has the byte `at`, which is within the memory: its number and its first byte there.
    fn find(&self, at: usize) -> (usize, usize) {
        let Keep::Foreign {
            near, near_from, ..
        } = &self.keep
        else {
            // All others have one segment.
            return (0, 0);
        };
        let (mut index, mut from) = (usize::from(near.get()), near_from.get() as usize);
        if at < from {
            (index, from) = (0, 0);
        }
        while at - from >= self.segments[index].len {
            from += self.segments[index].len;
            index += 1;
        }
        if let (Ok(index), Ok(from)) = (index.try_into(), from.try_into()) {
            near.set(index);
            near_from.set(from);
        }
        (index, from)
    }

    /// Calls `visit(pointer, offset within the range, length)` for each piece of `at..at + len`.
    fn pieces(&self, at: usize, len: usize, mut visit: impl FnMut(*mut u8, usize, usize)) {
        assert!(
            at.checked_add(len).is_some_and(|end| end <= self.len),
            "range outside of the buffer"
        );
        if len == 0 {
            return;
        }
        let (index, from) = self.find(at);
        let (mut skip, mut done) = (at - from, 0);
        for segment in &self.segments[index..] {
            let take = (segment.len - skip).min(len - done);
            // SAFETY: `skip + take` is within the segment.
            visit(unsafe { segment.ptr.add(skip) }, done, take);
            done += take;
            skip = 0;
            if done == len {
                return;
            }
        }
    }

    /// Where `len` bytes from `at` on lie, if that is in one segment.
    #[inline]
    pub(crate) fn one_piece(&self, at: usize, len: usize) -> Option<*mut u8> {
        let end = at.checked_add(len)?;
        let first = self.segments.first()?;
        if end <= first.len {
            // SAFETY: within the segment.
            return Some(unsafe { first.ptr.add(at) });
        }
        self.further_piece(at, end)
    }

    /// The same of `at..end` beyond the first segment, as of longer requests alone.
    #[inline(never)]
    fn further_piece(&self, at: usize, end: usize) -> Option<*mut u8> {
        if at == end || end > self.len {
            return None;
        }
        let (index, from) = self.find(at);
        let segment = self.segments[index];
        // SAFETY: within the segment.
        (end - from <= segment.len).then(|| unsafe { segment.ptr.add(at - from) })
    }

    /// Copies `dst.len()` bytes that begin `at` bytes into this memory out to `dst`.
    ///
    /// # Panics
    /// When the range is outside of this memory.
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
    /// When the range is outside of this memory.
    pub fn write(&mut self, at: usize, src: &[u8]) {
        self.pieces(at, src.len(), |ptr, offset, len| {
            // SAFETY: source and target are valid for `len` bytes and do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(src.as_ptr().add(offset), ptr, len) }
        });
    }

    /// Zeroes `len` bytes that begin `at` bytes into this memory.
    ///
    /// # Panics
    /// When the range is outside of this memory.
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
    fn what_lies_in_one_segment_is_found_in_any_order() {
        let mut parts = [vec![1u8; 3], vec![], vec![2; 5], vec![3; 4]];
        let at: Vec<_> = parts.iter_mut().map(|part| part.as_mut_ptr()).collect();
        let segments = parts.iter_mut().map(|part| Segment {
            ptr: part.as_mut_ptr(),
            len: part.len(),
        });
        // SAFETY: `parts` outlives the buffer.
        let buf = unsafe { IoBuf::foreign(segments.collect(), Arc::new(())) };
        let in_part = |part: usize, skip| Some(at[part].wrapping_add(skip));
        for (from, len, right) in [
            (0, 3, in_part(0, 0)),
            (8, 4, in_part(3, 0)),
            (3, 5, in_part(2, 0)),
            (2, 2, None),
            (7, 1, in_part(2, 4)),
            (7, 2, None),
            (11, 1, in_part(3, 3)),
            (11, 2, None),
            (1, 1, in_part(0, 1)),
            (12, 0, None),
            (usize::MAX, 2, None),
        ] {
            assert_eq!(buf.one_piece(from, len), right, "{len} bytes at {from}");
        }
    }

    #[test]
    fn parts_are_the_same_memory() {
        let mut parts = [vec![1u8; 3], vec![2; 5], vec![3; 4]];
        let segments = parts.iter_mut().map(|part| Segment {
            ptr: part.as_mut_ptr(),
            len: part.len(),
        });
        // SAFETY: `parts` outlives the buffer.
        let buf = unsafe { IoBuf::foreign(segments.collect(), Arc::new(())) };
        let (whole, mut cut) = buf.cut(&[(0, 4), (4, 0), (4, 7)]);
        let lens: Vec<_> = cut.iter().map(IoBuf::len).collect();
        assert_eq!(lens, [4, 0, 7]);
        cut[0].write(2, &[8, 8]);
        cut[2].write(6, &[9]);
        let mut bytes = [0; 7];
        cut[2].read(0, &mut bytes);
        assert_eq!(bytes, [2, 2, 2, 2, 3, 3, 9]);
        drop(cut);
        let mut all = [0; 12];
        whole.rejoin().unwrap().read(0, &mut all);
        assert_eq!(all, [1, 1, 8, 8, 2, 2, 2, 2, 3, 3, 9, 3]);
    }

    #[test]
    fn memory_of_its_own_is_whole_again_when_its_parts_are_gone() {
        let (whole, mut parts) = IoBuf::zeroed(16).cut(&[(0, 8), (8, 8)]);
        parts[1].write(0, &[5; 8]);
        parts.pop();
        let left = parts.pop();
        assert!(CutBuf(whole.0.clone()).rejoin().is_none(), "a part is left");
        drop(left);
        let bytes = whole.rejoin().unwrap().into_bytes().unwrap();
        assert_eq!(bytes[..], [[0; 8], [5; 8]].concat());
    }

    #[test]
    #[should_panic(expected = "overlap")]
    fn parts_that_overlap_are_refused() {
        let _ = IoBuf::zeroed(16).cut(&[(0, 8), (7, 8)]);
    }

    #[test]
    #[should_panic(expected = "outside of the buffer")]
    fn a_copy_past_the_end_is_refused() {
        IoBuf::zeroed(8).write(6, &[0; 3]);
    }
}
