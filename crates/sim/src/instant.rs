//! A drive that completes requests synchronously, for opening the state after a crash.
//!
//! It is used for one state after the other, and keeps its memory. What an opening writes is
//! logged, so that afterwards every moment of it can be examined as if the power had been cut then.

use crate::content::{Facts, Sectors};
use crate::image::{Block, Content, Crashed, Image};
use crate::lent;
use crate::medium::Loss;
use crate::random::Random;
use crate::shadow::{Known, Shadow};
use block::{DmaBuf, Drive, DriveError, DriveInfo, DriveIo, DriveIoKind, DriveQueue, Rotation};
use drives::OpenDrive;
use reactor::Handle;
use std::cell::{OnceCell, RefCell};
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::BLOCK;

/// Writes and flushes that all drives of a checker were requested since an opening began.
pub type Turns = Arc<AtomicU64>;

/// Memory that reads of a drive are answered from, whichever state it holds.
pub type SharedShadow = Rc<RefCell<Shadow>>;

/// Numbers drives.
static NEXT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Content of this thread's drives, by number: buffers of memory belong to one thread.
    static STATES: RefCell<Vec<(u64, Rc<RefCell<State>>)>> = const { RefCell::new(Vec::new()) };
}

/// A request to a drive, and its turn.
enum Event {
    /// From this block on; what was written, among the cells.
    Write(u64, Range<usize>),
    Flush,
}

/// Where a block is, if not in the image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Base,
    /// Among what the crash changed.
    Changed(u32),
    /// Among the cells.
    Written(u32),
}

/// Reads of blocks that a drive remembers at most.
const REMEMBERED: usize = 8192;

/// Which of the changes that a crash left counts for each block.
pub struct Places {
    of: Vec<u32>,
    moved: Vec<u64>,
}

impl Places {
    /// None counts, on a drive of `size` bytes.
    pub fn new(size: u64) -> Self {
        Self {
            of: vec![0; size as usize / BLOCK],
            moved: Vec::new(),
        }
    }

    /// They are those of this from now on.
    pub fn load(&mut self, crashed: &Crashed) {
        for block in self.moved.drain(..) {
            self.of[block as usize] = 0;
        }
        for (index, (block, _)) in (1..).zip(&crashed.changed) {
            self.of[*block as usize] = index;
            self.moved.push(*block);
        }
    }

    /// Whether a block is as it was `seen`.
    fn has(&self, crashed: &Crashed, block: u64, seen: &Option<Content>) -> bool {
        let index = self.of[block as usize];
        if index > 0 {
            let (_, content) = &crashed.changed[index as usize - 1];
            return seen.as_ref().is_some_and(|seen| seen.is_same(content));
        }
        match (crashed.base.get(block), seen) {
            (None, None) => true,
            (Some(now), Some(Content::Whole(seen))) => now.is_same(seen),
            _ => false,
        }
    }
}

/// The state after a crash, and later writes.
struct Held {
    crashed: Crashed,
    at: Vec<At>,
    /// Written blocks, in the memory in which they were passed.
    cells: Vec<DmaBuf>,
    /// The same as blocks, where a crash has left it: all states that have it share it.
    blocks: Vec<OnceCell<Arc<Block>>>,
}

struct State {
    held: Held,
    /// Blocks whose place is not the image.
    moved: Vec<u64>,
    log: Vec<(u64, Event)>,
    shadow: SharedShadow,
    /// Blocks of what the crash left that were read, and what they held; zeroes are nothing.
    read: Vec<(u64, Option<Content>)>,
    /// Of those, where it was last seen that another state differs.
    differs: usize,
}

/// The drive. It is of the thread that made it.
pub struct Instant {
    number: u64,
    turns: Turns,
    info: DriveInfo,
}

/// Properties of drives.
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
    /// A drive that holds zeroes, and answers reads from that memory.
    pub fn new(spec: &str, size: u64, turns: Turns, shadow: SharedShadow) -> Arc<Self> {
        let state = State {
            held: Held {
                crashed: Crashed::unchanged(Image::new(size)),
                at: vec![At::Base; size as usize / BLOCK],
                cells: Vec::new(),
                blocks: Vec::new(),
            },
            moved: Vec::new(),
            log: Vec::new(),
            shadow,
            read: Vec::new(),
            differs: 0,
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        STATES.with_borrow_mut(|states| states.push((number, Rc::new(RefCell::new(state)))));
        Arc::new(Self {
            number,
            turns,
            info: info(spec, size),
        })
    }

    fn state(&self) -> Rc<RefCell<State>> {
        STATES.with_borrow(|states| {
            let state = states.iter().find(|(number, _)| *number == self.number);
            state.expect("the thread that made it").1.clone()
        })
    }

    /// It holds this from now on.
    pub fn load(&self, crashed: Crashed) {
        let state = self.state();
        let state = &mut *state.borrow_mut();
        let held = &mut state.held;
        for block in state.moved.drain(..) {
            held.at[block as usize] = At::Base;
        }
        held.cells.clear();
        held.blocks.clear();
        state.log.clear();
        state.read.clear();
        state.differs = 0;
        for (index, (block, _)) in crashed.changed.iter().enumerate() {
            held.at[*block as usize] = At::Changed(index as u32);
            state.moved.push(*block);
        }
        held.crashed = crashed;
    }

    /// Whether all that was read of what the crash left is the same in this, so that who opened it cannot know which of both
    /// it is.
    pub fn looks_like(&self, crashed: &Crashed, places: &Places) -> bool {
        let state = self.state();
        let state = &mut *state.borrow_mut();
        let has = |(block, seen): &(u64, Option<Content>)| places.has(crashed, *block, seen);
        if state.read.len() > REMEMBERED || state.read.get(state.differs).is_some_and(|at| !has(at))
        {
            return false;
        }
        match state.read.iter().position(|at| !has(at)) {
            Some(at) => state.differs = at,
            None => return true,
        }
        false
    }

    /// The crash left this instead, and what was written since is the same.
    pub fn replace(&self, crashed: Crashed) {
        let state = self.state();
        let state = &mut *state.borrow_mut();
        let held = &mut state.held;
        let is_written = |at: &At| matches!(at, At::Written(_));
        state.moved.retain(|block| {
            let at = &mut held.at[*block as usize];
            if !is_written(at) {
                *at = At::Base;
            }
            is_written(at)
        });
        for (index, (block, _)) in crashed.changed.iter().enumerate() {
            let at = &mut held.at[*block as usize];
            if !is_written(at) {
                *at = At::Changed(index as u32);
                state.moved.push(*block);
            }
        }
        held.crashed = crashed;
    }

    /// Its content, for frequent access.
    pub fn sight(&self) -> Sight {
        Sight(self.state())
    }

    /// Its content after a power cut while the drives execute `turn`.
    pub fn crash(&self, turn: u64, loss: Loss, random: &mut Random) -> Crashed {
        let state = self.state();
        let State { held, log, .. } = &*state.borrow();
        let began = log.iter().take_while(|(at, _)| *at <= turn).count();
        let flushed = log.iter().take_while(|(at, _)| *at < turn);
        let durable = flushed
            .enumerate()
            .filter(|(_, (_, event))| matches!(event, Event::Flush));
        let durable = durable.last().map_or(0, |(index, _)| index);
        let mut crashed = held.crashed.clone();
        for (index, (_, event)) in log[..began].iter().enumerate() {
            let Event::Write(first, cells) = event else {
                continue;
            };
            let loss = if index < durable { Loss::None } else { loss };
            for (block, cell) in (*first..).zip(cells.clone()) {
                let content = || held.written(cell);
                loss.survives(&mut crashed, block, content, random);
            }
        }
        crashed
    }
}

/// Content of a drive, determined on demand.
pub struct Sight(Rc<RefCell<State>>);

impl Sight {
    /// Whether a block's checksum is `crc`, and its content fits.
    pub fn has(&self, block: u64, crc: u32, fits: impl Fn(&Sectors) -> bool) -> bool {
        let right = |facts: &Facts| facts.crc == crc && facts.sectors.as_ref().is_some_and(&fits);
        let held = &self.0.borrow().held;
        match held.known(block) {
            Known::Block(known) => right(known.facts()),
            Known::Zeroes => right(Facts::of_zeroes()),
            Known::Else => {
                let mut bytes = [0; BLOCK];
                held.read(block, &mut bytes);
                right(&Facts::of(&bytes))
            }
        }
    }

    /// Content of a block, if the crash left it intact; `None` is zeroes.
    pub fn left(&self, block: u64) -> Option<Option<Arc<Block>>> {
        match self.0.borrow().held.known(block) {
            Known::Block(known) => Some(Some(known.clone())),
            Known::Zeroes => Some(None),
            Known::Else => None,
        }
    }

    /// Whether a block holds just this.
    pub fn holds(&self, block: u64, content: &Option<Arc<Block>>) -> bool {
        match (self.0.borrow().held.known(block), content) {
            (Known::Block(known), Some(content)) => Arc::ptr_eq(known, content),
            (Known::Zeroes, None) => true,
            _ => false,
        }
    }

    /// Whether a block was written since the crash.
    pub fn is_written(&self, block: u64) -> bool {
        matches!(self.0.borrow().held.at[block as usize], At::Written(_))
    }
}

impl Drop for Instant {
    fn drop(&mut self) {
        // A thread that ends may have forgotten them all.
        let _ = STATES.try_with(|states| {
            let mut states = states.borrow_mut();
            states.retain(|(number, _)| *number != self.number);
        });
    }
}

impl Held {
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

    /// A written block.
    fn written(&self, cell: usize) -> Arc<Block> {
        let made = || Arc::new(Block::of(&self.cells[cell]));
        self.blocks[cell].get_or_init(made).clone()
    }

    fn read(&self, first: u64, into: &mut [u8]) {
        for (block, into) in (first..).zip(into.chunks_exact_mut(BLOCK)) {
            match self.at[block as usize] {
                At::Base => self.crashed.base.read(block, into),
                At::Changed(index) => self.crashed.changed[index as usize].1.read(into),
                At::Written(cell) => into.copy_from_slice(&self.cells[cell as usize]),
            }
        }
    }
}

impl State {
    /// Reads are recorded if they return the state after the crash.
    fn remember(&mut self, first: u64, count: u64) {
        if self.read.len() > REMEMBERED {
            return;
        }
        let crashed = &self.held.crashed;
        for block in first..first + count {
            let seen = match self.held.at[block as usize] {
                At::Base => crashed.base.get(block).cloned().map(Content::Whole),
                At::Changed(index) => Some(crashed.changed[index as usize].1.clone()),
                At::Written(_) => continue,
            };
            self.read.push((block, seen));
        }
    }

    /// The result of a read, in existing memory.
    fn lend(&mut self, first: u64, len: usize) -> Option<DmaBuf> {
        let held = &self.held;
        if len == BLOCK {
            if let At::Written(cell) = held.at[first as usize] {
                return Some(held.cells[cell as usize].clone());
            }
            match held.known(first) {
                Known::Block(block) => return Some(lent::lend(block)),
                Known::Zeroes => return Some(lent::lend(&lent::zeroes())),
                Known::Else => {}
            }
        }
        let read = |block: u64, into: &mut [u8]| held.read(block, into);
        let mut shadow = self.shadow.borrow_mut();
        shadow.read((first, len), |block| held.known(block), read)
    }

    /// Nothing is written in place: a crash may need what was there.
    fn write(&mut self, turn: u64, first: u64, cells: impl Iterator<Item = DmaBuf>) {
        let held = &mut self.held;
        let from = held.cells.len();
        held.cells.extend(cells);
        held.blocks.resize_with(held.cells.len(), OnceCell::new);
        let cells = from..held.cells.len();
        for (block, cell) in (first..).zip(cells.clone()) {
            let place = &mut held.at[block as usize];
            if *place == At::Base {
                self.moved.push(block);
            }
            *place = At::Written(cell as u32);
        }
        self.log.push((turn, Event::Write(first, cells)));
    }
}

impl Drive for Instant {
    fn info(&self) -> DriveInfo {
        self.info.clone()
    }
}

impl OpenDrive for Instant {
    fn queue(&self, handle: &Handle) -> io::Result<Rc<dyn DriveQueue>> {
        Ok(Rc::new(Queue {
            state: self.state(),
            turns: self.turns.clone(),
            size: self.info.size,
            handle: handle.clone(),
        }))
    }
}

struct Queue {
    state: Rc<RefCell<State>>,
    turns: Turns,
    size: u64,
    handle: Handle,
}

/// A buffer, block by block.
fn cells_of(buf: &DmaBuf) -> impl Iterator<Item = DmaBuf> {
    let starts = (0..buf.len()).step_by(BLOCK);
    starts.map(|at| buf.slice(at, BLOCK))
}

impl DriveQueue for Queue {
    fn submit(&self, mut io: DriveIo) {
        if !fits(&io, self.size) {
            return io.done.send((io.buf, Err(DriveError::Bounds)));
        }
        let mut state = self.state.borrow_mut();
        let first = io.offset / BLOCK as u64;
        let turn = || self.turns.fetch_add(1, Ordering::Relaxed);
        match (io.kind, &mut io.buf) {
            (DriveIoKind::Read, Some(buf)) => {
                state.remember(first, (buf.len() / BLOCK) as u64);
                match state.lend(first, buf.len()) {
                    Some(lent) => *buf = lent,
                    None => state.held.read(first, buf),
                }
            }
            (DriveIoKind::Write, Some(buf)) => state.write(turn(), first, cells_of(buf)),
            (DriveIoKind::Discard, _) => {
                let zeroes = self.handle.dma().zeroed(BLOCK);
                let cells = std::iter::repeat_n(zeroes, io.len as usize / BLOCK);
                state.write(turn(), first, cells);
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
    use block::DmaPool;

    fn first(crashed: &Crashed) -> u8 {
        crashed.get(0).map_or(0, |block| block[0])
    }

    #[test]
    fn every_moment_of_an_opening_can_be_the_last() {
        let drive = Instant::new(
            "given:0",
            1 << 20,
            Turns::default(),
            SharedShadow::default(),
        );
        let mut random = Random::new(1);
        let pool = DmaPool::new();
        let state = drive.state();
        let write = |turn, value: u8| {
            let mut cell = pool.get(BLOCK);
            cell.fill(value);
            state.borrow_mut().write(turn, 0, std::iter::once(cell));
        };
        write(0, 1);
        state.borrow_mut().log.push((1, Event::Flush));
        write(2, 2);
        let mut crash = |turn, loss| first(&drive.crash(turn, loss, &mut random));
        assert_eq!((crash(0, Loss::All), crash(0, Loss::None)), (0, 1));
        assert_eq!(crash(1, Loss::All), 0, "the flush has not ended");
        assert_eq!((crash(2, Loss::All), crash(2, Loss::None)), (1, 2));
        let mut now = vec![0; BLOCK];
        state.borrow().held.read(0, &mut now);
        assert_eq!(now[0], 2);
        drive.load(Crashed::unchanged(Image::new(1 << 20)));
        state.borrow().held.read(0, &mut now);
        assert_eq!(now[0], 0);
    }

    #[test]
    fn another_state_is_told_by_what_was_read_alone() {
        let size = 1 << 20;
        let drive = Instant::new("given:0", size, Turns::default(), SharedShadow::default());
        let block = |value| Arc::new(Block::of(&[value; BLOCK]));
        let blocks = [block(1), block(2), block(3)];
        let mut base = Image::new(size);
        base.set(5, Some(blocks[0].clone()));
        let state_of = |changed: &[(u64, &Content)]| Crashed {
            base: base.clone(),
            changed: changed
                .iter()
                .map(|(at, of)| (*at, (*of).clone()))
                .collect(),
        };
        let [one, two, three] = blocks.each_ref().map(|of| Content::Whole(of.clone()));
        let torn = |mask| Content::Torn {
            old: Some(blocks[0].clone()),
            new: blocks[1].clone(),
            mask,
        };
        drive.load(state_of(&[(6, &two), (9, &three), (7, &torn(3))]));
        let state = drive.state();
        state.borrow_mut().remember(5, 4);
        let mut places = Places::new(size);
        let mut same = |changed: &[(u64, &Content)]| {
            let crashed = state_of(changed);
            places.load(&crashed);
            drive.looks_like(&crashed, &places)
        };
        assert!(same(&[(6, &two), (7, &torn(3))]), "9 was not read");
        assert!(same(&[
            (6, &one),
            (6, &two),
            (5, &one),
            (7, &torn(3)),
            (9, &two)
        ]));
        assert!(
            same(&[(6, &two), (7, &torn(2))]),
            "no checksum fits either of them"
        );
        for other in [
            vec![(6, &two)],
            vec![(6, &two), (7, &torn(0))],
            vec![(6, &two), (7, &torn(255))],
            vec![(6, &three), (7, &torn(3))],
            vec![(6, &two), (7, &torn(3)), (5, &two)],
            vec![(6, &two), (7, &torn(3)), (8, &two)],
        ] {
            assert!(!same(&other));
        }

        let cell = || std::iter::once(DmaPool::new().zeroed(BLOCK));
        state.borrow_mut().write(0, 9, cell());
        drive.replace(state_of(&[(9, &two), (10, &three)]));
        let holds = |at: u64| {
            let mut now = vec![0; BLOCK];
            state.borrow().held.read(at, &mut now);
            now[0]
        };
        assert_eq!(
            [5, 6, 7, 9, 10].map(holds),
            [1, 0, 0, 0, 3],
            "9 was written since"
        );
        let sight = drive.sight();
        let left = |at: u64| sight.left(at).map(|held| held.map(|block| block[0]));
        assert_eq!(
            [5, 6, 10].map(left),
            [Some(Some(1)), Some(None), Some(Some(3))]
        );
        assert!(left(9).is_none() && sight.is_written(9) && !sight.is_written(10));
        let held = Some(blocks[2].clone());
        assert!(sight.holds(10, &held) && !sight.holds(10, &None) && !sight.holds(5, &held));
        assert!(sight.holds(6, &None) && !sight.holds(9, &None));
        drive.replace(state_of(&[]));
        assert_eq!([5, 9, 10].map(holds), [1, 0, 0]);
        assert!(sight.holds(10, &None) && !sight.holds(10, &held));
        drive.load(state_of(&[(9, &two)]));
        assert_eq!([5, 9, 10].map(holds), [1, 2, 0]);
    }
}
