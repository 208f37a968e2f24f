//! Private memory that a drive can transfer into directly.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::rc::Rc;

const ALIGN: usize = 4096;
const CLASSES: usize = 9; // 4 KiB << 0..=8: up to 1 MiB

struct Memory {
    ptr: NonNull<u8>,
    capacity: usize,
}

impl Memory {
    fn new(capacity: usize) -> Self {
        let layout =
            Layout::from_size_align(capacity, ALIGN).expect("a size below the address space");
        // SAFETY: the capacity is never zero (see `DmaPool::class`).
        let ptr = unsafe { alloc_zeroed(layout) };
        let Some(ptr) = NonNull::new(ptr) else {
            handle_alloc_error(layout)
        };
        Self { ptr, capacity }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let layout = Layout::from_size_align(self.capacity, ALIGN).expect("as it was allocated");
        // SAFETY: allocated with this layout in `new`, freed once.
        unsafe { dealloc(self.ptr.as_ptr(), layout) }
    }
}

struct Shared {
    memory: Option<Memory>,
    pool: Rc<RefCell<[Vec<Memory>; CLASSES]>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else {
            return;
        };
        let class = class_of(memory.capacity);
        if class < CLASSES {
            let mut free = self.pool.borrow_mut();
            if (free[class].len() + 1) * memory.capacity <= KEEP_BYTES {
                free[class].push(memory);
            }
        }
    }
}

/// Free memory kept for each size class, in bytes.
const KEEP_BYTES: usize = 8 << 20;

fn class_of(capacity: usize) -> usize {
    (capacity / ALIGN).trailing_zeros() as usize
}

/// Hands out [`DmaBuf`]s and takes their memory back; one a thread, bounded in what it keeps.
#[derive(Clone, Default)]
pub struct DmaPool {
    free: Rc<RefCell<[Vec<Memory>; CLASSES]>>,
}

impl DmaPool {
    /// An empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// A buffer of `len` bytes, aligned to 4 KiB. Its content is whatever was there before.
    pub fn get(&self, len: usize) -> DmaBuf {
        let capacity = len.max(ALIGN).next_power_of_two();
        let class = class_of(capacity);
        let reused = if class < CLASSES {
            self.free.borrow_mut()[class].pop()
        } else {
            None
        };
        let memory = reused.unwrap_or_else(|| Memory::new(capacity));
        let ptr = memory.ptr;
        DmaBuf {
            shared: Rc::new(Shared {
                memory: Some(memory),
                pool: self.free.clone(),
            }),
            ptr,
            len,
        }
    }

    /// A buffer of `len` zeroes.
    pub fn zeroed(&self, len: usize) -> DmaBuf {
        let mut buf = self.get(len);
        buf.fill(0);
        buf
    }
}

/// Memory aligned to 4 KiB that belongs to the engine: no guest sees it.
///
/// Clones share the memory, so that one write can go to several legs. Only a buffer without
/// clones can be changed.
#[derive(Clone)]
pub struct DmaBuf {
    shared: Rc<Shared>,
    ptr: NonNull<u8>,
    len: usize,
}

impl DmaBuf {
    /// The same memory, `start..start + len` of it.
    ///
    /// # Panics
    /// When the range lies outside of this buffer.
    pub fn slice(&self, start: usize, len: usize) -> Self {
        assert!(
            start.checked_add(len).is_some_and(|end| end <= self.len),
            "slice outside of the buffer"
        );
        // SAFETY: `start` lies within the allocation.
        let ptr = unsafe { self.ptr.add(start) };
        Self {
            shared: self.shared.clone(),
            ptr,
            len,
        }
    }

    /// First byte, for the operating system.
    pub fn as_raw(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Whether this is the only handle on its memory.
    pub fn is_unique(&self) -> bool {
        Rc::strong_count(&self.shared) == 1
    }
}

impl Deref for DmaBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: initialised when allocated; nobody changes it while shared, and a drive that
        // reads into it holds the only handle.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
}

impl DerefMut for DmaBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        assert!(self.is_unique(), "a shared buffer cannot be changed");
        // SAFETY: the only handle, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl std::fmt::Debug for DmaBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DmaBuf({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_used_again() {
        let pool = DmaPool::new();
        let first = pool.get(5000);
        let address = first.as_raw();
        assert_eq!(address as usize % ALIGN, 0);
        assert_eq!(first.len(), 5000);
        drop(first);
        assert_eq!(pool.get(8192).as_raw(), address);
    }

    #[test]
    #[should_panic(expected = "cannot be changed")]
    fn a_shared_buffer_cannot_be_changed() {
        let pool = DmaPool::new();
        let mut buf = pool.zeroed(4096);
        let _other = buf.slice(0, 512);
        buf[0] = 1;
    }
}
