//! A drive's memory, lent for as long as something is read or written in place.
//!
//! Like a guest's it is only ever copied from and to, through raw pointers, and no reference to it is made: if
//! another thread writes there at the same time, a copy may mix both, as with a disk.

use crate::IoBuf;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use units::BLOCK;

/// Memory that is shown, to be read.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    ptr: *const u8,
    len: usize,
    of: PhantomData<&'a [u8]>,
}

impl<'a> Shown<'a> {
    /// The `len` bytes at `ptr`.
    ///
    /// # Safety
    /// They are mapped readable for as long as this lives.
    pub unsafe fn new(ptr: *const u8, len: usize) -> Self {
        let of = PhantomData;
        Self { ptr, len, of }
    }

    /// Its blocks, the last of which may be a part of one.
    pub fn blocks(self) -> impl Iterator<Item = Self> {
        (0..self.len).step_by(BLOCK).map(move |at| Self {
            // SAFETY: within the memory.
            ptr: unsafe { self.ptr.add(at) },
            len: BLOCK.min(self.len - at),
            of: PhantomData,
        })
    }

    /// Copies a part of one block into `buf` from `at` on, and returns the CRC32C of all of it.
    ///
    /// # Panics
    /// When it is longer than a block, or the part is outside of it or does not fit.
    pub fn read_into(self, part: Range<usize>, buf: &mut IoBuf, at: usize) -> u32 {
        if part == (0..self.len)
            && let Some(to) = buf.one_piece(at, self.len)
        {
            // SAFETY: both are valid for the length and do not overlap.
            let sum = unsafe { checksum::copy(self.ptr, to, self.len) };
            if let Some(sum) = sum {
                return sum;
            }
        }
        // SAFETY: valid for the length; `to` is elsewhere.
        let fill = |to: *mut u8| unsafe { std::ptr::copy_nonoverlapping(self.ptr, to, self.len) };
        at_hand(self.len, fill, |block| {
            buf.write(at, &block[part]);
            checksum::crc32c(block)
        })
    }

    /// Copies all of it out.
    ///
    /// # Panics
    /// When `to` has another length.
    pub fn copy_out(self, to: &mut [u8]) {
        assert_eq!(to.len(), self.len, "as long as what is shown");
        // SAFETY: both are valid for the length; `to` is borrowed from elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(self.ptr, to.as_mut_ptr(), self.len) };
    }
}

impl<'a> From<&'a [u8]> for Shown<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        // SAFETY: borrowed for that long.
        unsafe { Self::new(bytes.as_ptr(), bytes.len()) }
    }
}

/// Memory that is lent, to be written.
pub struct Lent<'a> {
    ptr: *mut u8,
    len: usize,
    /// It will be used again immediately: it should stay in the processor's caches.
    soon: bool,
    of: PhantomData<&'a mut [u8]>,
}

impl<'a> Lent<'a> {
    /// The `len` bytes at `ptr`, which are not used again soon: they are written past the caches
    /// ([`checksum::copy_away`]), and [`crate::settle`] has to be called before another thread is notified.
    ///
    /// # Safety
    /// They are mapped writable for as long as this lives.
    pub unsafe fn new(ptr: *mut u8, len: usize) -> Self {
        let (soon, of) = (false, PhantomData);
        Self { ptr, len, soon, of }
    }

    /// Its blocks, the last of which may be a part of one.
    pub fn blocks(&mut self) -> impl Iterator<Item = Lent<'_>> {
        (0..self.len).step_by(BLOCK).map(|at| Lent {
            // SAFETY: within the memory.
            ptr: unsafe { self.ptr.add(at) },
            len: BLOCK.min(self.len - at),
            soon: self.soon,
            of: PhantomData,
        })
    }

    /// Fills one block with what `buf` has from `at` on, and returns the CRC32C of what arrived.
    ///
    /// # Panics
    /// When it is longer than a block, or `buf` has less.
    pub fn fill_from(&mut self, buf: &IoBuf, at: usize) -> u32 {
        if let Some(from) = buf.one_piece(at, self.len) {
            // SAFETY: both are valid for the length and do not overlap.
            let sum = unsafe {
                match self.soon {
                    true => checksum::copy(from, self.ptr, self.len),
                    false => checksum::copy_away(from, self.ptr, self.len),
                }
            };
            if let Some(sum) = sum {
                return sum;
            }
        }
        let len = self.len;
        // SAFETY: `to` has room for as much, elsewhere.
        let fill = |to: *mut u8| unsafe { buf.read_to(at, to, len) };
        at_hand(len, fill, |block| {
            self.copy_in(block);
            checksum::crc32c(block)
        })
    }

    /// Fills it with `from`.
    ///
    /// # Panics
    /// When `from` has another length.
    pub fn copy_in(&mut self, from: &[u8]) {
        assert_eq!(from.len(), self.len, "as long as what is lent");
        // SAFETY: both are valid for the length; `from` is borrowed from elsewhere.
        unsafe {
            match self.soon {
                true => std::ptr::copy_nonoverlapping(from.as_ptr(), self.ptr, self.len),
                false => checksum::store(from.as_ptr(), self.ptr, self.len),
            }
        }
    }
}

impl<'a> From<&'a mut [u8]> for Lent<'a> {
    /// Memory that is used again immediately.
    fn from(bytes: &'a mut [u8]) -> Self {
        Self {
            ptr: bytes.as_mut_ptr(),
            len: bytes.len(),
            soon: true,
            of: PhantomData,
        }
    }
}

/// The result of `then` on `len` bytes, a block at most, that `fill` copies elsewhere, where they cannot be changed any longer:
/// two passes are made of them.
fn at_hand<T>(len: usize, fill: impl FnOnce(*mut u8), then: impl FnOnce(&[u8]) -> T) -> T {
    assert!(len <= BLOCK, "a block at most");
    // Not zeroed first: that would take as long as the copy.
    let mut block = MaybeUninit::<[u8; BLOCK]>::uninit();
    let at = block.as_mut_ptr().cast();
    fill(at);
    // SAFETY: this many bytes were copied there.
    then(unsafe { std::slice::from_raw_parts(at, len) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segment;
    use std::sync::Arc;

    fn content(len: usize) -> Vec<u8> {
        (0..len).map(|index| ((index * index) >> 7) as u8).collect()
    }

    /// Memory of a drive: aligned to a block.
    struct Memory(Vec<u8>, usize);

    impl Memory {
        fn new(blocks: usize) -> Self {
            let bytes = vec![0xff; (blocks + 2) * BLOCK];
            let begin = bytes.as_ptr().align_offset(BLOCK);
            Self(bytes, begin)
        }

        fn lent(&mut self, len: usize) -> Lent<'_> {
            // SAFETY: as long as that, and borrowed.
            unsafe { Lent::new(self.0[self.1..].as_mut_ptr(), len) }
        }

        fn bytes(&self, len: usize) -> &[u8] {
            &self.0[self.1..][..len]
        }
    }

    /// The bytes in two segments that do not end where blocks do.
    fn apart(bytes: &mut [u8]) -> IoBuf {
        let (first, second) = bytes.split_at_mut(1000);
        let segments = [first, second].map(|part| Segment {
            ptr: part.as_mut_ptr(),
            len: part.len(),
        });
        // SAFETY: callers keep the bytes for as long.
        unsafe { IoBuf::foreign(segments.into_iter().collect(), Arc::new(())) }
    }

    #[test]
    fn blocks_are_written_and_read_with_their_checksums() {
        let len = 2 * BLOCK;
        let mut bytes = content(len);
        let right: Vec<u32> = bytes.chunks(BLOCK).map(checksum::crc32c).collect();
        let whole = IoBuf::from_bytes(bytes.clone().into_boxed_slice());
        for buf in [whole, apart(&mut bytes)] {
            let (mut memory, mut near) = (Memory::new(2), vec![0; len]);
            for lent in [&mut memory.lent(len), &mut Lent::from(&mut near[..])] {
                let blocks = lent.blocks().enumerate();
                let sums = blocks.map(|(index, mut block)| block.fill_from(&buf, index * BLOCK));
                assert!(sums.eq(right.iter().copied()));
            }
            assert!(near == content(len) && memory.bytes(len) == near);
            assert_eq!(memory.0[memory.1 + len], 0xff, "and no further");
        }
        let mut two = vec![0; len];
        for mut buf in [IoBuf::zeroed(len), apart(&mut two)] {
            let bytes = content(len);
            let blocks = Shown::from(&bytes[..]).blocks().enumerate();
            let sums =
                blocks.map(|(index, block)| block.read_into(0..BLOCK, &mut buf, index * BLOCK));
            assert!(sums.eq(right.iter().copied()));
            let mut back = vec![0; len];
            buf.read(0, &mut back);
            assert!(back == bytes);
        }
    }

    #[test]
    fn of_a_part_the_whole_block_is_summed() {
        let bytes = content(BLOCK);
        let (mut buf, mut back) = (IoBuf::zeroed(512), [0; 512]);
        let sum = Shown::from(&bytes[..]).read_into(512..1024, &mut buf, 0);
        assert_eq!(sum, checksum::crc32c(&bytes));
        buf.read(0, &mut back);
        assert_eq!(back, bytes[512..1024]);
    }

    #[test]
    fn what_is_copied_in_comes_out() {
        let bytes = content(BLOCK);
        let (mut memory, mut back) = (Memory::new(1), vec![0; BLOCK]);
        memory.lent(BLOCK).copy_in(&bytes);
        Shown::from(memory.bytes(BLOCK)).copy_out(&mut back);
        assert!(back == bytes);
    }
}
