//! A drive that answers while it is asked: what a crash left, being opened again.
//!
//! It is used for one state after the other, and keeps its memory. What an opening writes is
//! logged, so that afterwards every moment of it can be looked at as if the power had been cut then.

use crate::content::{Facts, Sectors};
use crate::image::{Content, Crashed, Image, blocks_of};
use crate::medium::Loss;
use crate::random::Random;
use crate::shadow::{Known, Shadow};
use block::{DmaBuf, Drive, DriveError, DriveInfo, DriveIo, DriveIoKind, DriveQueue, Rotation};
use drives::OpenDrive;
use reactor::Handle;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::BLOCK;

/// Writes and flushes that all drives of a checker were asked for since an opening began.
pub type Turns = Arc<AtomicU64>;

/// Blocks of a long read, at least: longer than any but of journals.
const LONG: u64 = 65;

thread_local! {
    /// Memory for long reads, by the drives' states: a buffer belongs to one thread.
    static SHADOWS: RefCell<BTreeMap<usize, Shadow>> = const { RefCell::new(BTreeMap::new()) };
}

/// What a drive was asked for, and its turn.
enum Event {
    Write { first: u64, cells: (usize, usize) },
    Flush,
}

/// Where a block is, if not in the image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Base,
    /// Among what the crash changed.
    Changed(u32),
    /// In the memory of what was written since.
    Written(u32),
}

struct State {
    crashed: Crashed,
    at: Vec<At>,
    /// Blocks whose place is not the image.
    moved: Vec<u64>,
    /// What was written, block after block.
    cells: Vec<u8>,
    log: Vec<(u64, Event)>,
}

/// The drive.
pub struct Instant {
    state: Arc<Mutex<State>>,
    turns: Turns,
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
    /// A drive that holds zeroes.
    pub fn new(spec: &str, size: u64, turns: Turns) -> Arc<Self> {
        let state = State {
            crashed: Crashed::unchanged(Image::new(size)),
            at: vec![At::Base; size as usize / BLOCK],
            moved: Vec::new(),
            cells: Vec::new(),
            log: Vec::new(),
        };
        Arc::new(Self {
            state: Arc::new(Mutex::new(state)),
            turns,
            info: info(spec, size),
        })
    }

    /// It holds this from now on.
    pub fn load(&self, crashed: Crashed) {
        let mut state = lock(&self.state);
        let state = &mut *state;
        for block in state.moved.drain(..) {
            state.at[block as usize] = At::Base;
        }
        state.cells.clear();
        state.log.clear();
        for (index, (block, _)) in crashed.changed.iter().enumerate() {
            state.at[*block as usize] = At::Changed(index as u32);
            state.moved.push(*block);
        }
        state.crashed = crashed;
    }

    /// Whether a block's checksum is `crc`, and its content fits.
    pub fn has(&self, block: u64, crc: u32, fits: impl Fn(&Sectors) -> bool) -> bool {
        let right = |facts: &Facts| facts.crc == crc && facts.sectors.as_ref().is_some_and(&fits);
        let state = lock(&self.state);
        if let Known::Block(known) = state.known(block) {
            return right(known.facts());
        }
        let mut bytes = [0; BLOCK];
        state.read(block, &mut bytes);
        drop(state);
        right(&Facts::of(&bytes))
    }

    /// What it would hold if the power had been cut while the drives carried out `turn`.
    pub fn crash(&self, turn: u64, loss: Loss, random: &mut Random) -> Crashed {
        let state = lock(&self.state);
        let began = state.log.iter().take_while(|(at, _)| *at <= turn).count();
        let flushed = state.log.iter().take_while(|(at, _)| *at < turn);
        let durable = flushed
            .enumerate()
            .filter(|(_, (_, event))| matches!(event, Event::Flush));
        let durable = durable.last().map_or(0, |(index, _)| index);
        let mut crashed = state.crashed.clone();
        for (index, (_, event)) in state.log[..began].iter().enumerate() {
            let Event::Write { first, cells } = event else {
                continue;
            };
            let loss = if index < durable { Loss::None } else { loss };
            for (block, content) in (*first..).zip(blocks_of(&state.cells[cells.0..cells.1])) {
                loss.survives(&mut crashed, block, &content, random);
            }
        }
        crashed
    }
}

impl Drop for Instant {
    fn drop(&mut self) {
        let key = key(&self.state);
        // A thread that ends may have forgotten them all.
        let _ = SHADOWS.try_with(|shadows| shadows.borrow_mut().remove(&key));
    }
}

impl State {
    fn known(&self, block: u64) -> Known<'_> {
        match self.at[block as usize] {
            At::Base => self
                .crashed
                .base
                .get(block)
                .map_or(Known::Zeroes, Known::Block),
            At::Changed(index) => match &self.crashed.changed[index as usize].1 {
                Content::Whole(content) => Known::Block(content),
                Content::Torn { .. } => Known::Else,
            },
            At::Written(_) => Known::Else,
        }
    }

    fn read(&self, first: u64, into: &mut [u8]) {
        for (block, into) in (first..).zip(into.chunks_exact_mut(BLOCK)) {
            match self.at[block as usize] {
                At::Base => self.crashed.base.read(block, into),
                At::Changed(index) => self.crashed.changed[index as usize].1.read(into),
                At::Written(cell) => {
                    into.copy_from_slice(&self.cells[cell as usize * BLOCK..][..BLOCK]);
                }
            }
        }
    }

    /// Nothing is written in place: a crash may need what was there.
    fn write(&mut self, turn: u64, first: u64, cells: (usize, usize)) {
        for (block, at) in (first..).zip((cells.0..cells.1).step_by(BLOCK)) {
            let place = &mut self.at[block as usize];
            if *place == At::Base {
                self.moved.push(block);
            }
            *place = At::Written((at / BLOCK) as u32);
        }
        self.log.push((turn, Event::Write { first, cells }));
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
            turns: self.turns.clone(),
            size: self.info.size,
        }))
    }
}

struct Queue {
    state: Arc<Mutex<State>>,
    turns: Turns,
    size: u64,
}

fn key(state: &Arc<Mutex<State>>) -> usize {
    Arc::as_ptr(state) as usize
}

impl Queue {
    /// What a long read finds, in memory that the drive keeps.
    fn read_long(&self, state: &State, first: u64, len: u64) -> Option<DmaBuf> {
        if len < LONG * BLOCK as u64 {
            return None;
        }
        SHADOWS.with_borrow_mut(|shadows| {
            let shadow = shadows.entry(key(&self.state));
            let shadow = shadow.or_insert_with(|| Shadow::new(self.size));
            let read = |block: u64, into: &mut [u8]| state.read(block, into);
            shadow.read((first, len), |block| state.known(block), read)
        })
    }
}

impl DriveQueue for Queue {
    fn submit(&self, mut io: DriveIo) {
        if !fits(&io, self.size) {
            return io.done.send((io.buf, Err(DriveError::Bounds)));
        }
        let mut state = lock(&self.state);
        let (first, from) = (io.offset / BLOCK as u64, state.cells.len());
        let turn = || self.turns.fetch_add(1, Ordering::Relaxed);
        match (io.kind, &mut io.buf) {
            (DriveIoKind::Read, Some(buf)) => match self.read_long(&state, first, io.len) {
                Some(kept) => *buf = kept,
                None => state.read(first, buf),
            },
            (DriveIoKind::Write, Some(buf)) => {
                state.cells.extend_from_slice(buf);
                let upto = state.cells.len();
                state.write(turn(), first, (from, upto));
            }
            (DriveIoKind::Discard, _) => {
                let upto = from + io.len as usize;
                state.cells.resize(upto, 0);
                state.write(turn(), first, (from, upto));
            }
            (DriveIoKind::Flush, _) => state.log.push((turn(), Event::Flush)),
            _ => {}
        }
        drop(state);
        io.done.send((io.buf, Ok(())));
    }

    fn in_flight(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(crashed: &Crashed) -> u8 {
        crashed.get(0).map_or(0, |block| block[0])
    }

    #[test]
    fn every_moment_of_an_opening_can_be_the_last() {
        let drive = Instant::new("given:0", 1 << 20, Turns::default());
        let mut random = Random::new(1);
        let write = |turn, value: u8| {
            let mut state = lock(&drive.state);
            let from = state.cells.len();
            state.cells.resize(from + BLOCK, value);
            state.write(turn, 0, (from, from + BLOCK));
        };
        write(0, 1);
        lock(&drive.state).log.push((1, Event::Flush));
        write(2, 2);
        let mut crash = |turn, loss| first(&drive.crash(turn, loss, &mut random));
        assert_eq!((crash(0, Loss::All), crash(0, Loss::None)), (0, 1));
        assert_eq!(crash(1, Loss::All), 0, "the flush has not ended");
        assert_eq!((crash(2, Loss::All), crash(2, Loss::None)), (1, 2));
        let mut now = vec![0; BLOCK];
        lock(&drive.state).read(0, &mut now);
        assert_eq!(now[0], 2);
        drive.load(Crashed::unchanged(Image::new(1 << 20)));
        lock(&drive.state).read(0, &mut now);
        assert_eq!(now[0], 0);
    }
}
