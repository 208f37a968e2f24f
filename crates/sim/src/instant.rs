//! A drive that answers while it is asked: what a crash left, being opened again.

use crate::image::{Image, blocks_of};
use crate::medium::{Loss, Medium};
use crate::random::Random;
use block::{Drive, DriveError, DriveInfo, DriveIo, DriveIoKind, DriveQueue, Rotation};
use drives::OpenDrive;
use reactor::Handle;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::BLOCK;

struct State {
    medium: Medium,
    /// Nothing has been flushed that a crash could not take: no second crash is meant.
    careless: bool,
}

/// Requests that all drives of one opening still answer; then the power is gone.
pub type Fuse = Arc<Mutex<u64>>;

/// The drive.
pub struct Instant {
    state: Arc<Mutex<State>>,
    fuse: Option<Fuse>,
    info: DriveInfo,
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What drives tell of themselves.
pub fn info(spec: &str, size: u64) -> DriveInfo {
    DriveInfo {
        spec: spec.to_owned(),
        size,
        logical_sector: 512,
        physical_sector: 4096,
        rotation: Rotation::Solid,
        write_cache: true,
        persistent: true,
    }
}

/// Whether a request is of whole blocks within a drive of `size` bytes.
pub fn fits(io: &DriveIo, size: u64) -> bool {
    let block = BLOCK as u64;
    let inside = io.offset.checked_add(io.len).is_some_and(|end| end <= size);
    inside && io.offset.is_multiple_of(block) && io.len.is_multiple_of(block)
}

impl Instant {
    /// A drive with this content. With a `fuse` it can crash again.
    pub fn new(spec: &str, size: u64, image: Image, fuse: Option<Fuse>) -> Arc<Self> {
        let state = State {
            medium: Medium::new(image),
            careless: fuse.is_none(),
        };
        Arc::new(Self {
            state: Arc::new(Mutex::new(state)),
            fuse,
            info: info(spec, size),
        })
    }

    /// What it holds after a power cut now.
    pub fn crash(&self, loss: Loss, random: &mut Random) -> Image {
        lock(&self.state).medium.crash(loss, random)
    }

    /// What it holds.
    pub fn image(&self) -> Image {
        lock(&self.state).medium.current.clone()
    }
}

impl Drive for Instant {
    fn info(&self) -> DriveInfo {
        self.info.clone()
    }
}

impl OpenDrive for Instant {
    fn queue(&self, _: &Handle) -> io::Result<Rc<dyn DriveQueue>> {
        Ok(Rc::new(Queue {
            state: self.state.clone(),
            fuse: self.fuse.clone(),
            size: self.info.size,
        }))
    }
}

struct Queue {
    state: Arc<Mutex<State>>,
    fuse: Option<Fuse>,
    size: u64,
}

impl Queue {
    fn burns(&self) -> bool {
        let Some(fuse) = &self.fuse else { return false };
        let mut left = lock(fuse);
        let out = *left == 0;
        *left = left.saturating_sub(1);
        out
    }
}

impl DriveQueue for Queue {
    fn submit(&self, mut io: DriveIo) {
        if !fits(&io, self.size) {
            return io.done.send((io.buf, Err(DriveError::Bounds)));
        }
        let mut state = lock(&self.state);
        let first = io.offset / BLOCK as u64;
        match (io.kind, &mut io.buf) {
            (DriveIoKind::Read, Some(buf)) => state.medium.current.read(first, buf),
            (DriveIoKind::Write, Some(buf)) if state.careless => {
                for (block, content) in (first..).zip(blocks_of(buf)) {
                    state.medium.current.set(block, Some(content));
                }
            }
            (DriveIoKind::Write, Some(buf)) => {
                let id = state.medium.begin(first, blocks_of(buf).collect());
                if self.burns() {
                    return;
                }
                state.medium.end(id);
            }
            (DriveIoKind::Flush, _) if !state.careless => {
                if self.burns() {
                    return;
                }
                let turn = state.medium.flush_begins();
                state.medium.flush_ends(turn);
            }
            (DriveIoKind::Discard, _) => state.medium.discard(first, io.len / BLOCK as u64),
            _ => {}
        }
        drop(state);
        io.done.send((io.buf, Ok(())));
    }

    fn in_flight(&self) -> usize {
        0
    }
}
