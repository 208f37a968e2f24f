//! A drive in memory: a base that is shared, and blocks that differ from it.

use block::{Drive, DriveError, DriveInfo, DriveIo, DriveIoKind, DriveQueue, Rotation};
use drives::OpenDrive;
use reactor::Handle;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const BLOCK: usize = 4096;

/// A drive; clones of an image share nothing that is written.
pub struct Image {
    spec: String,
    base: Arc<Vec<u8>>,
    own: Arc<Mutex<BTreeMap<u64, Vec<u8>>>>,
    /// Writes that are taken before all fail.
    left: Arc<AtomicU64>,
}

impl Image {
    pub fn new(spec: &str, bytes: Vec<u8>) -> Self {
        assert!(bytes.len().is_multiple_of(BLOCK));
        Self {
            spec: spec.to_owned(),
            base: Arc::new(bytes),
            own: Arc::default(),
            left: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    /// One of `size` bytes that has what is not zeroes of `bytes`, over zeroes that all of its size share.
    pub fn sparse(spec: &str, bytes: &[u8], zeroes: &Arc<Vec<u8>>) -> Self {
        assert_eq!(bytes.len(), zeroes.len());
        let blocks = bytes.chunks_exact(BLOCK).zip(0..);
        let used = blocks.filter(|(block, _)| block.iter().any(|byte| *byte != 0));
        let own = used
            .map(|(block, number)| (number, block.to_vec()))
            .collect();
        Self {
            spec: spec.to_owned(),
            base: zeroes.clone(),
            own: Arc::new(Mutex::new(own)),
            left: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    /// The same with another size, from here on apart: cut off, or with zeroes behind it.
    pub fn resized(&self, bytes: u64) -> Self {
        let mut own = self.own.lock().unwrap().clone();
        own.retain(|block, _| (block + 1) * BLOCK as u64 <= bytes);
        let mut base = self.base.to_vec();
        base.resize(bytes as usize / BLOCK * BLOCK, 0);
        Self {
            spec: self.spec.clone(),
            base: Arc::new(base),
            own: Arc::new(Mutex::new(own)),
            left: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    /// The same drive under another name.
    pub fn named(&self, spec: &str) -> Self {
        Self {
            spec: spec.to_owned(),
            ..self.handle()
        }
    }

    /// So many more writes are taken, then all fail.
    pub fn fail_after(&self, writes: u64) {
        self.left.store(writes, Ordering::Relaxed);
    }

    /// Writes are taken again.
    pub fn work_again(&self) {
        self.fail_after(u64::MAX);
    }

    /// The same drive.
    fn handle(&self) -> Self {
        Self {
            spec: self.spec.clone(),
            base: self.base.clone(),
            own: self.own.clone(),
            left: self.left.clone(),
        }
    }

    /// The same content, from here on apart.
    pub fn copy(&self) -> Self {
        let own = self.own.lock().unwrap().clone();
        Self {
            spec: self.spec.clone(),
            base: self.base.clone(),
            own: Arc::new(Mutex::new(own)),
            left: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    /// Whether another image that nothing was written to has the same content.
    pub fn is_same(&self, other: &Self) -> bool {
        self.base == other.base
    }

    /// Counts a write, which may be one too many.
    fn takes(&self) -> bool {
        let less = |left: u64| left.checked_sub(1);
        let left = &self.left;
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }

    pub fn blocks(&self) -> u64 {
        (self.base.len() / BLOCK) as u64
    }

    pub fn spec(&self) -> &str {
        &self.spec
    }

    pub fn block(&self, block: u64) -> Vec<u8> {
        let own = self.own.lock().unwrap();
        own.get(&block)
            .cloned()
            .unwrap_or_else(|| self.base[block as usize * BLOCK..][..BLOCK].to_vec())
    }

    pub fn set_block(&self, block: u64, bytes: Vec<u8>) {
        assert_eq!(bytes.len(), BLOCK);
        self.own.lock().unwrap().insert(block, bytes);
    }

    /// Blocks that were written to, with their content.
    pub fn written(&self) -> BTreeMap<u64, Vec<u8>> {
        self.own.lock().unwrap().clone()
    }

    /// Whether anything but zeroes is there.
    pub fn is_used(&self, block: u64) -> bool {
        self.block(block).iter().any(|byte| *byte != 0)
    }

    pub fn drive(&self) -> Arc<dyn OpenDrive> {
        Arc::new(Opened {
            image: self.handle(),
        })
    }
}

struct Opened {
    image: Image,
}

impl Drive for Opened {
    fn info(&self) -> DriveInfo {
        DriveInfo {
            spec: self.image.spec.clone(),
            size: self.image.base.len() as u64,
            logical_sector: 512,
            physical_sector: 4096,
            rotation: Rotation::Solid,
            write_cache: false,
            persistent: true,
        }
    }
}

impl OpenDrive for Opened {
    fn queue(&self, _handle: &Handle) -> std::io::Result<Rc<dyn DriveQueue>> {
        Ok(Rc::new(Queue {
            image: self.image.handle(),
        }))
    }
}

struct Queue {
    image: Image,
}

impl DriveQueue for Queue {
    fn submit(&self, mut io: DriveIo) {
        let end = io.offset.saturating_add(io.len);
        let aligned = io.offset.is_multiple_of(BLOCK as u64) && io.len.is_multiple_of(BLOCK as u64);
        let mut result = Ok(());
        if !aligned || end > self.image.base.len() as u64 {
            result = Err(DriveError::Bounds);
        } else if io.kind == DriveIoKind::Write && !self.image.takes() {
            result = Err(DriveError::Gone);
        } else if let Some(buf) = &mut io.buf {
            let blocks = io.offset / BLOCK as u64..end / BLOCK as u64;
            for (index, block) in blocks.enumerate() {
                let range = index * BLOCK..(index + 1) * BLOCK;
                if io.kind == DriveIoKind::Write {
                    self.image.set_block(block, buf[range].to_vec());
                } else {
                    buf[range].copy_from_slice(&self.image.block(block));
                }
            }
        }
        io.done.send((io.buf, result));
    }

    fn in_flight(&self) -> usize {
        0
    }
}

/// A repeatable sequence (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
