//! Drives in memory: their bytes can be examined and changed, requests can fail or wait, and the power can go.

use super::{BLOCK, MIB};
use block::{Drive, DriveError, DriveIo, DriveIoKind, DriveQueue, Lent, Rotation, Shown};
use drives::OpenDrive;
use reactor::Handle;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};

#[derive(Default)]
struct Medium {
    bytes: Vec<u8>,
    written: BTreeSet<u64>,
    /// Blocks of which the next read fails.
    fails_once: BTreeSet<u64>,
    /// Blocks that cannot be read.
    unreadable: BTreeSet<u64>,
    fails_flushes: bool,
    /// A write of a block with this content fails.
    fails_write_of: Option<Vec<u8>>,
    /// All of it, as it was when the next checkpoint's record came.
    before_record: Option<Vec<u8>>,
    /// Requests of this kind wait that have a block with this content, to be written or to be read.
    waits: Option<(DriveIoKind, Vec<u8>)>,
    /// Requests that wait now.
    waiting: usize,
    /// What the blocks would be that were written since the last flush, if the power went.
    unflushed: BTreeMap<u64, Vec<u8>>,
}

impl Medium {
    fn will_change(&mut self, blocks: Range<u64>) {
        for block in blocks.clone() {
            let was = &self.bytes[(block * BLOCK) as usize..][..BLOCK as usize];
            let was = || was.to_vec();
            self.unflushed.entry(block).or_insert_with(was);
        }
        self.written.extend(blocks);
    }

    fn has_to_wait(&self, io: &DriveIo) -> bool {
        let Some((kind, content)) = &self.waits else {
            return false;
        };
        let bytes = match (io.kind, &io.buf) {
            (DriveIoKind::Write, Some(buf)) => &buf[..],
            (DriveIoKind::Read, _) => &self.bytes[io.offset as usize..][..io.len as usize],
            _ => return false,
        };
        *kind == io.kind && bytes.chunks(content.len()).any(|block| block == content)
    }

    fn serve(&mut self, mut io: DriveIo) {
        let range = io.offset as usize..(io.offset + io.len) as usize;
        let blocks = io.offset / BLOCK..(io.offset + io.len).div_ceil(BLOCK);
        let mut failed = io.kind == DriveIoKind::Flush && self.fails_flushes;
        if io.kind == DriveIoKind::Read {
            for block in blocks.clone() {
                failed |= self.fails_once.remove(&block) || self.unreadable.contains(&block);
            }
        }
        match (io.kind, &mut io.buf) {
            (DriveIoKind::Read, Some(buf)) => buf.copy_from_slice(&self.bytes[range]),
            (DriveIoKind::Write, Some(buf)) => {
                let bad = self.fails_write_of.as_deref();
                failed |= bad.is_some_and(|bad| buf.chunks(bad.len()).any(|block| block == bad));
                if buf.starts_with(b"CVCP") && self.before_record.is_none() {
                    self.before_record = Some(self.bytes.clone());
                }
                self.will_change(blocks);
                self.bytes[range].copy_from_slice(buf);
            }
            (DriveIoKind::Flush, _) if !failed => self.unflushed.clear(),
            _ => {}
        }
        let result = match failed {
            true => Err(DriveError::Os(5)),
            false => Ok(()),
        };
        io.done.send((io.buf, result));
    }
}

/// A drive in memory whose bytes can be examined and changed.
#[derive(Clone)]
pub struct MemoryDrive {
    spec: String,
    size: u64,
    in_place: bool,
    medium: Arc<Mutex<Medium>>,
}

impl MemoryDrive {
    /// It is read and written in place from here on.
    pub fn in_place(self) -> Self {
        Self {
            in_place: true,
            ..self
        }
    }

    /// An empty one.
    pub fn new(spec: &str, mib: u64) -> Self {
        let medium = Medium {
            bytes: vec![0; (mib * MIB) as usize],
            ..Medium::default()
        };
        Self {
            spec: spec.to_owned(),
            size: mib * MIB,
            in_place: false,
            medium: Arc::new(Mutex::new(medium)),
        }
    }

    /// The next read of each block that was written fails; returns how many those are.
    pub fn fail_once(&self) -> usize {
        let mut medium = self.medium();
        medium.fails_once = medium.written.clone();
        medium.fails_once.len()
    }

    /// Blocks that are `wanted` cannot be read from here on, and all others can; returns how many.
    pub fn fail_reads(&self, wanted: impl Fn(&[u8]) -> bool) -> usize {
        let mut medium = self.medium();
        let blocks = (0..).zip(medium.bytes.chunks_exact(BLOCK as usize));
        let found: BTreeSet<u64> = blocks
            .filter_map(|(at, block)| wanted(block).then_some(at))
            .collect();
        medium.unreadable = found;
        medium.unreadable.len()
    }

    /// Another drive with the same content.
    pub fn copy(&self, spec: &str) -> Self {
        let copy = Self::new(spec, self.size / MIB);
        copy.medium().bytes = self.image();
        copy
    }

    /// All bytes are these.
    pub fn put_back(&self, image: &[u8]) {
        self.medium().bytes.copy_from_slice(image);
    }

    /// No flush succeeds from here on.
    pub fn fail_flushes(&self) {
        self.medium().fails_flushes = true;
    }

    /// Writes that have a block with this content fail, until the next call.
    pub fn fail_write_of(&self, content: Option<Vec<u8>>) {
        self.medium().fails_write_of = content;
    }

    /// Empties the blocks that are `wanted`; returns how many.
    pub fn empty(&self, mut wanted: impl FnMut(&[u8]) -> bool) -> usize {
        let mut medium = self.medium();
        let blocks = medium.bytes.chunks_exact_mut(BLOCK as usize);
        blocks
            .filter_map(|block| wanted(block).then(|| block.fill(0)))
            .count()
    }

    /// Replaces the blocks with this content; returns how many.
    pub fn replace(&self, content: &[u8], by: &[u8]) -> usize {
        let mut medium = self.medium();
        let blocks = medium.bytes.chunks_exact_mut(BLOCK as usize);
        blocks
            .filter(|block| *block == content)
            .map(|block| block.copy_from_slice(by))
            .count()
    }

    /// Forgets what [`Self::before_record`] tells: the next checkpoint counts.
    pub fn await_record(&self) {
        self.medium().before_record = None;
    }

    /// All bytes, as they were when the first record of a checkpoint came since [`Self::await_record`].
    pub fn before_record(&self) -> Option<Vec<u8>> {
        self.medium().before_record.clone()
    }

    /// Requests of this kind that have a block with this content wait until the next call.
    pub fn hold(&self, what: Option<(DriveIoKind, Vec<u8>)>) {
        self.medium().waits = what;
    }

    /// Waits until a request waits.
    pub fn wait_held(&self) {
        for _ in 0..super::LOOKS {
            if self.medium().waiting > 0 {
                return;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(10));
        }
        panic!("no request came that has to wait");
    }

    /// What was not flushed is as it was before, and nothing waits any longer: its engine has ended.
    pub fn lose_power(&self) {
        let mut medium = self.medium();
        for (block, was) in std::mem::take(&mut medium.unflushed) {
            medium.bytes[(block * BLOCK) as usize..][..BLOCK as usize].copy_from_slice(&was);
        }
        (medium.waits, medium.waiting) = (None, 0);
    }

    /// How many blocks have this content.
    pub fn count(&self, content: &[u8]) -> usize {
        let medium = self.medium();
        let blocks = medium.bytes.chunks_exact(BLOCK as usize);
        blocks.filter(|block| *block == content).count()
    }

    /// A byte of it.
    pub fn byte(&self, at: u64) -> u8 {
        self.medium().bytes[at as usize]
    }

    /// What was written so far is not put back by [`Self::restore`].
    pub fn forget_written(&self) {
        self.medium().written.clear();
    }

    /// As it is opened.
    pub fn spec(&self) -> &str {
        &self.spec
    }

    fn medium(&self) -> MutexGuard<'_, Medium> {
        self.medium.lock().unwrap()
    }

    /// All bytes.
    pub fn image(&self) -> Vec<u8> {
        self.medium().bytes.clone()
    }

    /// Everything that was written since the last time is as in `image` again.
    pub fn restore(&self, image: &[u8]) {
        let mut medium = self.medium();
        for block in std::mem::take(&mut medium.written) {
            let at = (block * BLOCK) as usize;
            medium.bytes[at..at + BLOCK as usize].copy_from_slice(&image[at..at + BLOCK as usize]);
        }
    }

    /// Turns a bit over.
    pub fn flip(&self, byte: u64, bit: u8) {
        let mut medium = self.medium();
        medium.bytes[byte as usize] ^= 1 << bit;
        medium.written.insert(byte / BLOCK);
    }
}

impl Drive for MemoryDrive {
    fn info(&self) -> block::DriveInfo {
        block::DriveInfo {
            spec: self.spec.clone(),
            size: self.size,
            logical_sector: 512,
            physical_sector: 4096,
            rotation: Rotation::Solid,
            write_cache: true,
            persistent: true,
        }
    }
}

impl OpenDrive for MemoryDrive {
    fn queue(&self, handle: &Handle) -> std::io::Result<Rc<dyn DriveQueue>> {
        Ok(Rc::new(Queue {
            handle: handle.clone(),
            medium: self.medium.clone(),
            in_place: self.in_place,
        }))
    }
}

struct Queue {
    handle: Handle,
    medium: Arc<Mutex<Medium>>,
    in_place: bool,
}

impl DriveQueue for Queue {
    fn submit(&self, io: DriveIo) {
        let mut medium = self.medium.lock().unwrap();
        if !medium.has_to_wait(&io) {
            medium.serve(io);
            return;
        }
        medium.waiting += 1;
        drop(medium);
        let (handle, medium) = (self.handle.clone(), self.medium.clone());
        self.handle.spawn(async move {
            while medium.lock().unwrap().waits.is_some() {
                handle.sleep(1_000_000).await;
            }
            let mut medium = medium.lock().unwrap();
            medium.waiting -= 1;
            medium.serve(io);
        });
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn is_in_memory(&self) -> bool {
        self.in_place
    }

    fn read_in_place(&self, offset: u64, len: usize, see: &mut dyn FnMut(Shown<'_>)) -> bool {
        if self.in_place {
            let medium = self.medium.lock().unwrap();
            see((&medium.bytes[offset as usize..][..len]).into());
        }
        self.in_place
    }

    fn write_in_place(&self, offset: u64, len: usize, fill: &mut dyn FnMut(Lent<'_>)) -> bool {
        if self.in_place {
            let mut medium = self.medium.lock().unwrap();
            medium.will_change(offset / BLOCK..(offset + len as u64).div_ceil(BLOCK));
            fill((&mut medium.bytes[offset as usize..][..len]).into());
        }
        self.in_place
    }
}

/// Empty drives of so many MiB that the calling thread can open, and how.
pub fn attached<const N: usize>(names: [&str; N], mib: u64) -> ([MemoryDrive; N], [String; N]) {
    let drives = names.map(|name| MemoryDrive::new(name, mib));
    attach(&drives);
    (drives, names.map(str::to_owned))
}

/// Lets the calling thread open the drives.
pub fn attach(drives: &[MemoryDrive]) {
    for drive in drives {
        let opened = drive.clone();
        drives::give(
            &drive.spec,
            Some(std::rc::Rc::new(move || Arc::new(opened.clone()))),
        );
    }
}

/// Only the pool holds them from here on, so that closing it need not wait for anybody.
pub fn detach(drives: &[MemoryDrive]) {
    drives
        .iter()
        .for_each(|drive| drives::give(&drive.spec, None));
}
