//! The client: valid operations at random, and the oracle's word on each answer.

use crate::oracle::{Oracle, SECTOR, Wrong, fill};
use crate::random::Random;
use block::{BlockDevice, Completion, CompletionSink, ErrorKind, IoBuf, Op, OpFlags, OpKind};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use units::CHUNK;

/// Sectors of a block and of a chunk.
const BLOCK: u64 = 8;
const CHUNK_SECTORS: u64 = CHUNK as u64 / SECTOR as u64;
/// Blocks of a volume's first chunk and of the others that are used: few, so that they are used
/// again; enough in the first for a home.
const BLOCKS: [u64; 2] = [72, 6];

#[derive(Default)]
struct Answers(Mutex<Vec<Completion>>);

impl CompletionSink for Answers {
    fn complete(&self, completion: Completion) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.push(completion);
    }
}

struct Asked {
    volume: u32,
    kind: OpKind,
    sectors: Range<u64>,
    fua: bool,
    /// The oracle's number, or the moment of a flush.
    id: u64,
}

/// A volume under load.
pub struct Target {
    /// Its number.
    pub volume: u32,
    /// What operations are given to.
    pub device: Arc<dyn BlockDevice>,
    /// Chunks that are used.
    pub chunks: Vec<u64>,
    /// Smallest sectors of an operation: 1 or 8.
    pub least: u64,
}

/// The client.
pub struct Client {
    /// What has to be so.
    pub oracle: Rc<RefCell<Oracle>>,
    targets: RefCell<Vec<Target>>,
    /// Chunks (of those of a target) that are used for now: the others are left alone for a while.
    phase: Cell<u64>,
    random: RefCell<Random>,
    /// Of this life: what comes late from the last one is nobody's.
    answers: RefCell<Arc<Answers>>,
    asked: RefCell<BTreeMap<u64, Asked>>,
    next: Cell<u64>,
    wrong: RefCell<Option<Wrong>>,
    /// Operations in flight at most; none are begun at 0.
    pub depth: Cell<usize>,
    /// Steps between operations that are begun.
    pub pace: Cell<u64>,
    ticks: Cell<u64>,
    /// Errors of drives are expected: an operation may fail.
    pub lenient: Cell<bool>,
    /// Operations that ended well, and that failed.
    pub counts: Cell<(u64, u64)>,
    /// Digest of all answers.
    pub trace: Cell<u64>,
}

impl Client {
    /// A client without volumes.
    pub fn new(seed: u64) -> Rc<Self> {
        Rc::new(Self {
            oracle: Rc::default(),
            targets: RefCell::default(),
            phase: Cell::new(u64::MAX),
            random: RefCell::new(Random::new(seed)),
            answers: RefCell::default(),
            asked: RefCell::default(),
            next: Cell::new(0),
            wrong: RefCell::default(),
            depth: Cell::new(0),
            pace: Cell::new(3),
            ticks: Cell::new(0),
            lenient: Cell::new(false),
            counts: Cell::default(),
            trace: Cell::new(seed),
        })
    }

    /// Puts a volume under load.
    pub fn add(&self, target: Target) {
        self.targets.borrow_mut().push(target);
    }

    /// Takes a volume off the load.
    pub fn remove(&self, volume: u32) {
        self.targets
            .borrow_mut()
            .retain(|target| target.volume != volume);
    }

    /// Whether nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.asked.borrow().is_empty()
    }

    /// Operations in flight.
    pub fn in_flight(&self) -> usize {
        self.asked.borrow().len()
    }

    /// What went wrong, the first of it.
    pub fn wrong(&self) -> Option<Wrong> {
        self.wrong.borrow().clone()
    }

    /// Forgets what was asked: nobody will answer.
    pub fn abandon(&self) {
        *self.answers.borrow_mut() = Arc::default();
        self.asked.borrow_mut().clear();
        self.targets.borrow_mut().clear();
    }

    /// Asks for everything that was ever written to a volume, as it may be after a power cut; what
    /// is found is what is there from then on.
    pub fn read_all(&self, volume: u32) {
        let ranges = self.oracle.borrow().ranges(volume, 64);
        let targets = self.targets.borrow();
        let Some(target) = targets.iter().find(|target| target.volume == volume) else {
            return;
        };
        for (first, count) in ranges {
            self.submit(
                target,
                OpKind::Read,
                first * BLOCK..(first + count) * BLOCK,
                false,
                0,
                0,
            );
        }
    }

    /// Other chunks are used from now on.
    pub fn turn(&self) {
        self.phase.set(self.random.borrow_mut().next() | 1);
    }

    fn complain(&self, wrong: Wrong) {
        self.wrong.borrow_mut().get_or_insert(wrong);
    }

    /// Takes what was answered and perhaps asks for something.
    pub fn tick(&self) {
        let answers = {
            let shared = self.answers.borrow();
            let mut waiting = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *waiting)
        };
        answers.into_iter().for_each(|answer| self.take(answer));
        self.ticks.set(self.ticks.get() + 1);
        let due = self.ticks.get().is_multiple_of(self.pace.get());
        if due && self.asked.borrow().len() < self.depth.get() {
            self.ask();
        }
    }

    fn ask(&self) {
        let targets = self.targets.borrow();
        if targets.is_empty() {
            return;
        }
        let mut random = self.random.borrow_mut();
        let target = random.pick(&targets);
        let kind = match random.below(100) {
            0..=44 => OpKind::Write,
            45..=69 => OpKind::Read,
            70..=84 => OpKind::Flush,
            85..=92 => OpKind::Discard,
            _ => OpKind::WriteZeroes,
        };
        if kind == OpKind::Flush {
            let id = self.oracle.borrow().flush_begins();
            drop(random);
            return self.submit(target, kind, 0..0, false, id, 0);
        }
        let sectors = range(&mut random, target, self.phase.get());
        let end = sectors.end * SECTOR as u64;
        let busy = self.asked.borrow().values().any(|asked| {
            asked.volume == target.volume
                && asked.sectors.start < sectors.end
                && sectors.start < asked.sectors.end
        });
        let known = self
            .oracle
            .borrow()
            .volumes
            .get(&target.volume)
            .map(|known| known.size);
        if busy || known.is_none_or(|size| end > size) {
            return;
        }
        let fua = kind == OpKind::Write && random.one_in(8);
        drop(random);
        let mut oracle = self.oracle.borrow_mut();
        let version = if kind == OpKind::Write {
            oracle.version()
        } else {
            0
        };
        let id = match kind {
            OpKind::Read => 0,
            _ => oracle.begin(target.volume, sectors.clone(), version, false),
        };
        drop(oracle);
        self.submit(target, kind, sectors, fua, id, version);
    }

    fn submit(
        &self,
        target: &Target,
        kind: OpKind,
        sectors: Range<u64>,
        fua: bool,
        id: u64,
        version: u32,
    ) {
        let len = (sectors.end - sectors.start) * SECTOR as u64;
        let offset = sectors.start * SECTOR as u64;
        let buf = match kind {
            OpKind::Read => IoBuf::zeroed(len as usize),
            OpKind::Write => {
                let mut bytes = vec![0; len as usize].into_boxed_slice();
                fill(target.volume, sectors.start, version, &mut bytes);
                IoBuf::from_bytes(bytes)
            }
            _ => IoBuf::empty(),
        };
        let tag = self.next.get();
        self.next.set(tag + 1);
        let asked = Asked {
            volume: target.volume,
            kind,
            sectors,
            fua,
            id,
        };
        self.asked.borrow_mut().insert(tag, asked);
        let op = Op {
            tag,
            kind,
            flags: OpFlags {
                fua,
                ..OpFlags::default()
            },
            offset,
            len,
            buf,
            done: self.answers.borrow().clone(),
        };
        if target.device.submit(op).is_err() {
            self.complain(Wrong(
                "a volume refuses operations when few are in flight".into(),
            ));
        }
    }

    fn take(&self, answer: Completion) {
        let Some(asked) = self.asked.borrow_mut().remove(&answer.tag) else {
            return self.complain(Wrong(format!("operation {} ended twice", answer.tag)));
        };
        let worked = answer.result.is_ok();
        let (good, bad) = self.counts.get();
        self.counts
            .set((good + u64::from(worked), bad + u64::from(!worked)));
        let digest = answer.tag << 1 | u64::from(worked);
        self.trace.set(reactor::mix(self.trace.get() ^ digest));
        if let Err(failed) = &answer.result {
            let expected =
                self.lenient.get() || matches!(failed.kind, ErrorKind::NoSpace | ErrorKind::Gone);
            if !expected {
                self.complain(Wrong(format!(
                    "{:?} of {:?}: {failed}",
                    asked.kind, asked.sectors
                )));
            }
        }
        let mut oracle = self.oracle.borrow_mut();
        match asked.kind {
            OpKind::Flush if worked => oracle.flush_ends(asked.volume, asked.id),
            OpKind::Flush => {}
            OpKind::Read if worked => {
                let bytes = answer.buf.as_bytes().unwrap_or(&[]);
                let offset = asked.sectors.start * SECTOR as u64;
                let checked = oracle.settle_live(asked.volume, offset, bytes);
                drop(oracle);
                if let Err(wrong) = checked {
                    self.complain(wrong);
                }
            }
            OpKind::Read => {}
            _ => oracle.end(
                asked.volume,
                asked.sectors,
                asked.id,
                worked,
                worked && asked.fua,
            ),
        }
    }
}

/// Sectors of some operation: mostly small, some large, some not whole blocks.
fn range(random: &mut Random, target: &Target, phase: u64) -> Range<u64> {
    let used = |index: usize| phase >> (index + 8 * target.volume as usize % 56) & 1 == 1;
    let used: Vec<u64> = (0..target.chunks.len())
        .filter(|index| used(*index))
        .map(|index| target.chunks[index])
        .collect();
    let chunk = *random.pick(if used.is_empty() {
        &target.chunks[..1]
    } else {
        &used
    });
    let blocks = BLOCKS[usize::from(chunk != 0)];
    let chunk = chunk * CHUNK_SECTORS;
    let block = random.below(blocks) * BLOCK;
    let count = match random.below(16) {
        0..=7 => BLOCK,
        8..=11 => BLOCK * random.within(1..=blocks.min(8)),
        12 => BLOCK * random.within(blocks / 2..=blocks),
        _ if target.least == 1 => {
            let start = chunk + block + random.below(BLOCK);
            return start..start + random.within(1..=20);
        }
        _ => BLOCK * 2,
    };
    chunk + block..chunk + block + count
}
