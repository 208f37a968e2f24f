//! A drive that completes immediately, from an image that its handles share.

use crate::image::{Image, blocks_of};
use crate::instant::{fits, info};
use block::{Drive, DriveError, DriveInfo, DriveIo, DriveIoKind, DriveQueue};
use drives::OpenDrive;
use reactor::Handle;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::BLOCK;

/// The drive; clones are handles on the same one.
#[derive(Clone)]
pub struct Disk {
    info: DriveInfo,
    image: Arc<Mutex<Image>>,
}

impl Disk {
    /// A drive of `size` bytes that holds this.
    pub fn new(spec: &str, size: u64, image: Image) -> Self {
        Self {
            info: info(spec, size),
            image: Arc::new(Mutex::new(image)),
        }
    }

    /// How it is opened.
    pub fn spec(&self) -> &str {
        &self.info.spec
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.info.size
    }

    /// The same content, from here on apart.
    pub fn copy(&self) -> Self {
        Self::new(self.spec(), self.size(), self.image().clone())
    }

    /// Copies whole blocks from `first` on into `into`.
    pub fn read(&self, first: u64, into: &mut [u8]) {
        self.image().read(first, into);
    }

    /// Replaces whole blocks from `first` on.
    pub fn write(&self, first: u64, bytes: &[u8]) {
        let mut image = self.image();
        for (block, content) in (first..).zip(blocks_of(bytes)) {
            image.set(block, Some(content));
        }
    }

    fn image(&self) -> MutexGuard<'_, Image> {
        self.image.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drive for Disk {
    fn info(&self) -> DriveInfo {
        self.info.clone()
    }
}

impl OpenDrive for Disk {
    fn queue(&self, _handle: &Handle) -> io::Result<Rc<dyn DriveQueue>> {
        Ok(Rc::new(self.clone()))
    }
}

impl DriveQueue for Disk {
    fn submit(&self, mut io: DriveIo) {
        let first = io.offset / BLOCK as u64;
        let fits = fits(&io, self.info.size);
        let result = match (io.kind, &mut io.buf) {
            _ if !fits => Err(DriveError::Bounds),
            (DriveIoKind::Write, Some(buf)) => {
                self.write(first, buf);
                Ok(())
            }
            (DriveIoKind::Read, Some(buf)) => {
                self.read(first, buf);
                Ok(())
            }
            _ => Ok(()),
        };
        io.done.send((io.buf, result));
    }

    fn in_flight(&self) -> usize {
        0
    }
}
