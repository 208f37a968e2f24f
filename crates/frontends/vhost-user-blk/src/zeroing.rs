//! Write-zeroes without `unmap` (virtio 1.2, section 5.2.6.2): the range must stay allocated, or be
//! allocated, so that later writes cannot fail for lack of space. The engine frees zeroed ranges,
//! so zeroes are written: each request becomes a sequence of writes.

use block::{IoBuf, OpFlags, Segment};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

/// Bytes per write.
const STEP: u64 = 1 << 20;
/// Size of the zero buffer, which a write references several times.
const ZEROES: usize = 64 << 10;

/// Requests of a queue that are executed this way.
#[derive(Default)]
pub(crate) struct Zeroing {
    open: BTreeMap<u16, Part>,
    /// Requests whose next write is due.
    due: VecDeque<u16>,
}

/// The rest of a request.
struct Part {
    offset: u64,
    end: u64,
    flags: OpFlags,
}

/// A write of zeroes.
pub(crate) struct Step {
    pub(crate) head: u16,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) flags: OpFlags,
    pub(crate) buf: IoBuf,
}

impl Zeroing {
    /// Begins a request; its first write is due.
    pub(crate) fn begin(&mut self, head: u16, offset: u64, len: u64, flags: OpFlags) {
        let end = offset + len;
        self.open.insert(head, Part { offset, end, flags });
        self.due.push_back(head);
    }

    /// The next due write.
    pub(crate) fn next(&mut self) -> Option<Step> {
        let head = self.due.pop_front()?;
        let part = self.open.get_mut(&head)?;
        let (offset, flags) = (part.offset, part.flags);
        let len = STEP.min(part.end - offset);
        part.offset += len;
        let buf = zeroes(len as usize);
        Some(Step {
            head,
            offset,
            len,
            flags,
            buf,
        })
    }

    /// A write of the request, or another operation, has completed; true if another write is due.
    pub(crate) fn goes_on(&mut self, head: u16, succeeded: bool) -> bool {
        let Some(part) = self.open.get(&head) else {
            return false;
        };
        let goes_on = succeeded && part.offset < part.end;
        match goes_on {
            true => self.due.push_back(head),
            false => drop(self.open.remove(&head)),
        }
        goes_on
    }

    /// Drops all requests.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

fn zeroes(len: usize) -> IoBuf {
    struct Memory(*mut u8);
    // SAFETY: it is never freed, and never written.
    unsafe impl Send for Memory {}
    // SAFETY: as above.
    unsafe impl Sync for Memory {}
    static MEMORY: OnceLock<Memory> = OnceLock::new();
    let memory = MEMORY.get_or_init(|| Memory(vec![0u8; ZEROES].leak().as_mut_ptr()));
    let (whole, rest) = (len / ZEROES, len % ZEROES);
    let lens = std::iter::repeat_n(ZEROES, whole).chain((rest > 0).then_some(rest));
    let segments = lens.map(|len| Segment { ptr: memory.0, len }).collect();
    // SAFETY: the memory is never freed.
    unsafe { IoBuf::foreign(segments, Arc::new(())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_is_zeroed_in_sequential_steps() {
        let mut zeroing = Zeroing::default();
        let (offset, len) = (4096, 2 * STEP + 512);
        zeroing.begin(3, offset, len, OpFlags::default());
        zeroing.begin(5, 0, 512, OpFlags::default());
        let mut written = Vec::new();
        while let Some(step) = zeroing.next() {
            assert_eq!(step.buf.len() as u64, step.len);
            let mut bytes = vec![1; step.buf.len()];
            step.buf.read(0, &mut bytes);
            assert!(bytes.iter().all(|byte| *byte == 0));
            written.push((step.head, step.offset, step.len));
            zeroing.goes_on(step.head, true);
        }
        let right = [
            (3, offset, STEP),
            (5, 0, 512),
            (3, offset + STEP, STEP),
            (3, offset + 2 * STEP, 512),
        ];
        assert_eq!(written, right);
        assert!(!zeroing.goes_on(3, true), "the request has ended");
    }

    #[test]
    fn failed_write_ends_its_request() {
        let mut zeroing = Zeroing::default();
        zeroing.begin(3, 0, 2 * STEP, OpFlags::default());
        assert!(zeroing.next().is_some());
        assert!(!zeroing.goes_on(3, false));
        assert!(zeroing.next().is_none());
    }
}
