//! The client: valid operations at random, and the oracle's word on each answer.

use crate::content::{SECTOR, fill};
use crate::oracle::{Oracle, Wrong};
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
/// Operations that most go to the same chunk, at most: then another is in favour.
const FAVOUR: u64 = 60;
/// First block of those that chains are written to.
const CHAINED: u64 = 32;
/// First block of those of which sectors are written one by one, behind all that are used otherwise.
const HALVED: u64 = 220;
/// Time for which nothing is requested after a failure, in nanoseconds: a host that gets the error that there
/// is no space does not retry immediately and forever.
const REST_NS: u64 = 1_000_000;
/// Failures of a life in which everything may fail, after which nothing more is requested: what each of them
/// may have left has to be remembered until a flush, and there may be none any longer.
const HOPELESS: u64 = 512;

/// Completions that are not checked yet.
#[derive(Default)]
pub struct Answers(Mutex<Vec<Completion>>);

impl Answers {
    /// Takes all of it.
    pub fn take(&self) -> Vec<Completion> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

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
    /// Of a read: what writes that were in progress with it give its sectors, or took from them.
    also: BTreeMap<u64, Vec<u32>>,
}

/// The mix of operations: weights of the first five.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Writes, reads, flushes, discards and write-zeroes.
    pub often: [u64; 5],
    /// One write in this many is FUA; none at 0.
    pub fua: u64,
    /// Of a chunk one part is written and the rest is discarded or zeroed, mostly as a whole.
    pub parts: bool,
    /// One of two sectors, of blocks that have nothing else.
    pub halves: bool,
}

/// Everything, with many flushes.
pub const USUAL: Mix = Mix {
    often: [45, 25, 15, 8, 7],
    fua: 8,
    parts: false,
    halves: false,
};

/// Nothing is flushed but by time and the engine's own needs.
pub const UNFLUSHED: Mix = Mix {
    often: [65, 20, 0, 8, 7],
    fua: 0,
    parts: false,
    halves: false,
};

/// Every write is made durable: there are many checkpoints.
pub const SAFE: Mix = Mix {
    often: [60, 20, 20, 5, 5],
    fua: 1,
    parts: false,
    halves: false,
};

/// Demoted data is used again.
pub const HOT: Mix = Mix {
    often: [35, 60, 3, 1, 1],
    fua: 20,
    parts: false,
    halves: false,
};

/// Chunks lose what they had at home in few steps.
pub const PARTS: Mix = Mix {
    often: [50, 10, 1, 20, 20],
    fua: 0,
    parts: true,
    halves: false,
};

/// Blocks come to be zeroes part by part, while the other parts are written.
pub const HALVES: Mix = Mix {
    often: [45, 8, 1, 36, 10],
    fua: 0,
    parts: false,
    halves: true,
};

/// Kinds of loads.
pub const MIXES: [Mix; 8] = [
    PARTS,
    USUAL,
    USUAL,
    SAFE,
    UNFLUSHED,
    Mix {
        often: [80, 18, 1, 1, 0],
        fua: 0,
        parts: false,
        halves: false,
    },
    HOT,
    Mix {
        often: [30, 15, 5, 25, 25],
        fua: 20,
        parts: false,
        halves: false,
    },
];

/// A volume under load.
pub struct Target {
    /// Its number.
    pub volume: u32,
    /// The volume that its content names.
    pub fill: u32,
    /// The target of operations.
    pub device: Arc<dyn BlockDevice>,
    /// Chunks that are used.
    pub chunks: Vec<u64>,
    /// Blocks of the first chunk and of the others that are used: few, so that they are used
    /// again.
    pub blocks: [u64; 2],
    /// Smallest sectors of an operation: 1 or 8.
    pub least: u64,
    /// It is left alone.
    pub still: bool,
}

/// A write that waits for the one before, which went to another volume and was made durable.
struct Chain {
    /// Its block.
    block: u64,
    /// Index of the volume that it goes to, of those that are not left alone.
    at: u64,
    /// Its dependency.
    tag: Option<u64>,
    /// It was written, and a flush is next.
    flushes: bool,
}

/// The client.
pub struct Client {
    /// The condition.
    pub oracle: Rc<RefCell<Oracle>>,
    targets: RefCell<Vec<Target>>,
    /// Chunks (of those of a target) that are used for now: the others are left alone for a while.
    phase: Cell<u64>,
    /// Target and chunk, by index, that most operations go to, and for how many more.
    favour: Cell<(usize, usize, u64)>,
    /// Writes that wait for one another.
    chains: RefCell<Vec<Chain>>,
    /// The request.
    pub mix: Cell<Mix>,
    random: RefCell<Random>,
    /// Of this life: late completions of the last one are ignored.
    answers: RefCell<Arc<Answers>>,
    asked: RefCell<BTreeMap<u64, Asked>>,
    next: Cell<u64>,
    wrong: RefCell<Option<Wrong>>,
    /// Operations in flight at most; none are begun at 0.
    pub depth: Cell<usize>,
    /// Steps between operations that are begun.
    pub pace: Cell<u64>,
    /// Operations that are begun before the client rests.
    pub budget: Cell<u64>,
    now_ns: Cell<u64>,
    /// When it requests something again after a failure.
    rests_until_ns: Cell<u64>,
    ticks: Cell<u64>,
    /// Errors of drives are expected: an operation may fail.
    pub lenient: Cell<bool>,
    /// Operations of this life that failed as everything may.
    failing: Cell<u64>,
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
            favour: Cell::new((0, 0, 0)),
            chains: RefCell::default(),
            mix: Cell::new(USUAL),
            random: RefCell::new(Random::new(seed)),
            answers: RefCell::default(),
            asked: RefCell::default(),
            next: Cell::new(0),
            wrong: RefCell::default(),
            depth: Cell::new(0),
            pace: Cell::new(3),
            budget: Cell::new(u64::MAX),
            now_ns: Cell::new(0),
            rests_until_ns: Cell::new(0),
            ticks: Cell::new(0),
            lenient: Cell::new(false),
            failing: Cell::new(0),
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

    /// Operations in flight, for messages.
    pub fn under_way(&self) -> String {
        let asked = self.asked.borrow();
        let first = asked.values().take(8);
        let texts: Vec<String> = first
            .map(|asked| {
                format!(
                    "{:?} of volume {} {:?}",
                    asked.kind, asked.volume, asked.sectors
                )
            })
            .collect();
        texts.join(", ")
    }

    /// Whether nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.asked.borrow().is_empty()
    }

    /// Operations in flight.
    pub fn in_flight(&self) -> usize {
        self.asked.borrow().len()
    }

    /// The first fault.
    pub fn wrong(&self) -> Option<Wrong> {
        self.wrong.borrow().clone()
    }

    /// Drops requests in flight: they will not complete.
    pub fn abandon(&self) {
        *self.answers.borrow_mut() = Arc::default();
        self.asked.borrow_mut().clear();
        self.targets.borrow_mut().clear();
        self.rests_until_ns.set(0);
        self.failing.set(0);
    }

    /// Whether too much failed to continue, as when shards have stopped.
    pub fn is_hopeless(&self) -> bool {
        self.failing.get() > HOPELESS
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
    pub fn tick(&self, now_ns: u64) {
        let answers = self.answers.borrow().take();
        answers.into_iter().for_each(|answer| self.take(answer));
        self.ticks.set(self.ticks.get() + 1);
        self.now_ns.set(now_ns);
        if self.rests_until_ns.get() > now_ns || self.is_hopeless() {
            return;
        }
        self.pull_chains();
        let due = self.ticks.get().is_multiple_of(self.pace.get());
        if due && self.budget.get() > 0 && self.asked.borrow().len() < self.depth.get() {
            self.budget.set(self.budget.get() - 1);
            self.ask();
        }
    }

    /// Makes a number of writes wait for one another from now on, each in a block of its own behind those that are
    /// used.
    pub fn set_chains(&self, count: u64) {
        let chain = |number| Chain {
            block: CHAINED + number,
            at: number,
            tag: None,
            flushes: false,
        };
        *self.chains.borrow_mut() = (0..count).map(chain).collect();
    }

    /// Each chain whose last operation has ended continues: a write that is FUA, or one and a flush, then
    /// the same on another volume.
    fn pull_chains(&self) {
        let targets = self.targets.borrow();
        let busy: Vec<&Target> = targets.iter().filter(|target| !target.still).collect();
        if self.depth.get() == 0 || busy.len() < 2 {
            return;
        }
        for chain in self.chains.borrow_mut().iter_mut() {
            let waits = |tag| self.asked.borrow().contains_key(&tag);
            if chain.tag.is_some_and(waits) {
                continue;
            }
            if !chain.flushes {
                chain.at += 1 + self.random.borrow_mut().below(busy.len() as u64 - 1).min(6);
            }
            let target = busy[(chain.at % busy.len() as u64) as usize];
            chain.tag = Some(self.next.get());
            if std::mem::take(&mut chain.flushes) {
                let id = self.oracle.borrow().flush_begins();
                self.submit(target, OpKind::Flush, 0..0, false, id, 0);
                continue;
            }
            let fua = self.random.borrow_mut().one_in(2);
            chain.flushes = !fua;
            let sectors = chain.block * BLOCK..(chain.block + 1) * BLOCK;
            self.change(target, OpKind::Write, sectors, fua);
        }
    }

    /// Writes every block of a volume that is used.
    pub fn fill(&self, volume: u32) {
        let targets = self.targets.borrow();
        let Some(target) = targets.iter().find(|target| target.volume == volume) else {
            return;
        };
        let size = self.size(volume);
        for chunk in &target.chunks {
            let from = chunk * CHUNK_SECTORS;
            let end = from + target.blocks[usize::from(*chunk != 0)] * BLOCK;
            if end * SECTOR as u64 > size {
                continue;
            }
            for first in (from..end).step_by(64 * BLOCK as usize) {
                let sectors = first..end.min(first + 64 * BLOCK);
                if self.is_busy(target, OpKind::Write, &sectors) {
                    continue;
                }
                self.change(target, OpKind::Write, sectors, false);
            }
        }
    }

    /// Another chunk is in favour, for longer than usual.
    pub fn favour(&self) {
        let targets = self.targets.borrow();
        let mut random = self.random.borrow_mut();
        if !targets.is_empty() {
            let target = random.below(targets.len() as u64) as usize;
            let chunk = random.below(targets[target].chunks.len() as u64) as usize;
            self.favour.set((target, chunk, 20 * FAVOUR));
        }
    }

    /// Asks a volume for a flush.
    pub fn flush(&self, volume: u32) {
        let targets = self.targets.borrow();
        if let Some(target) = targets.iter().find(|target| target.volume == volume) {
            let id = self.oracle.borrow().flush_begins();
            self.submit(target, OpKind::Flush, 0..0, false, id, 0);
        }
    }

    fn size(&self, volume: u32) -> u64 {
        let oracle = self.oracle.borrow();
        oracle.volumes.get(&volume).map_or(0, |known| known.size)
    }

    /// Whether what is in progress forbids an operation: two that change the same sectors. What a
    /// read may see then is known.
    fn is_busy(&self, target: &Target, kind: OpKind, sectors: &Range<u64>) -> bool {
        let asked = self.asked.borrow();
        asked.values().any(|asked| {
            asked.volume == target.volume
                && asked.kind != OpKind::Read
                && kind != OpKind::Read
                && asked.sectors.start < sectors.end
                && sectors.start < asked.sectors.end
        })
    }

    fn ask(&self) {
        let targets = self.targets.borrow();
        if targets.iter().all(|target| target.still) {
            return;
        }
        let mut random = self.random.borrow_mut();
        let mix = self.mix.get();
        let kind = mix.pick(&mut random);
        let (target, chunk) = self.choose(&targets, &mut random);
        if kind == OpKind::Flush {
            let id = self.oracle.borrow().flush_begins();
            drop(random);
            return self.submit(target, kind, 0..0, false, id, 0);
        }
        let halves = mix.halves && target.least == 1;
        let sectors = match mix.parts && kind != OpKind::Read && random.one_in(2) {
            true => part(target, chunk, kind),
            false if halves => half(&mut random, chunk),
            false => range(&mut random, target, chunk),
        };
        let end = sectors.end * SECTOR as u64;
        let busy = self.is_busy(target, kind, &sectors);
        if busy || end > self.size(target.volume) {
            return;
        }
        let fua = kind == OpKind::Write && mix.fua != 0 && random.one_in(mix.fua);
        drop(random);
        match kind {
            OpKind::Read => self.submit(target, kind, sectors, false, 0, 0),
            _ => self.change(target, kind, sectors, fua),
        }
    }

    /// A volume, and a chunk of those that are used: half of the operations go to the one in
    /// favour, so that others are left alone once they were used.
    fn choose<'a>(&self, targets: &'a [Target], random: &mut Random) -> (&'a Target, u64) {
        let busy: Vec<usize> = (0..targets.len())
            .filter(|index| !targets[*index].still)
            .collect();
        let any = |random: &mut Random| *random.pick(&busy);
        let (target, chunk, left) = self.favour.get();
        let gone = !busy.contains(&target) || chunk >= targets[target].chunks.len();
        if left == 0 || gone {
            let target = any(random);
            let chunk = random.below(targets[target].chunks.len() as u64) as usize;
            self.favour.set((target, chunk, random.within(1..=FAVOUR)));
        } else {
            self.favour.set((target, chunk, left - 1));
        }
        let (target, chunk, _) = self.favour.get();
        if random.one_in(2) {
            return (&targets[target], targets[target].chunks[chunk]);
        }
        let target = &targets[any(random)];
        let phase = self.phase.get() >> (8 * target.volume as usize % 48);
        let used = |index: &usize| phase >> index & 1 == 1;
        let used: Vec<usize> = (0..target.chunks.len()).filter(used).collect();
        let chunk = if used.is_empty() {
            0
        } else {
            *random.pick(&used)
        };
        (target, target.chunks[chunk])
    }

    /// Submits a change, and reports it to the oracle and to every overlapping read in flight.
    fn change(&self, target: &Target, kind: OpKind, sectors: Range<u64>, fua: bool) {
        let mut oracle = self.oracle.borrow_mut();
        let version = if kind == OpKind::Write {
            oracle.version()
        } else {
            0
        };
        for read in self.asked.borrow_mut().values_mut() {
            if read.kind == OpKind::Read && read.volume == target.volume {
                let from = read.sectors.start.max(sectors.start);
                for at in from..read.sectors.end.min(sectors.end) {
                    let also = read.also.entry(at).or_default();
                    also.extend(oracle.current(target.volume, at));
                    also.push(version);
                }
            }
        }
        let id = oracle.begin(target.volume, sectors.clone(), version, false);
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
                fill(target.fill, sectors.start, version, &mut bytes);
                IoBuf::from_bytes(bytes)
            }
            _ => IoBuf::empty(),
        };
        let tag = self.next.get();
        self.next.set(tag + 1);
        let also = match kind {
            OpKind::Read => {
                let oracle = self.oracle.borrow();
                oracle.under_way(target.volume, sectors.clone())
            }
            _ => BTreeMap::new(),
        };
        let asked = Asked {
            volume: target.volume,
            kind,
            sectors,
            fua,
            id,
            also,
        };
        self.asked.borrow_mut().insert(tag, asked);
        let op = Op {
            tag,
            kind,
            flags: OpFlags {
                fua,
                // Every second write of zeroes stores them.
                no_unmap: kind == OpKind::WriteZeroes && tag.is_multiple_of(2),
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
            self.rests_until_ns.set(self.now_ns.get() + REST_NS);
            let changes = asked.kind != OpKind::Read;
            let failing = self.failing.get() + u64::from(self.lenient.get());
            self.failing.set(failing);
            let oracle = self.oracle.borrow();
            let takes_space = changes && asked.kind != OpKind::Flush;
            let expected = self.lenient.get()
                || takes_space && failed.kind == ErrorKind::NoSpace
                || oracle.may_fail(asked.volume, &asked.sectors, changes);
            drop(oracle);
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
                let checked = oracle.settle_live(asked.volume, offset, bytes, &asked.also);
                drop(oracle);
                if let Err(wrong) = checked {
                    self.complain(wrong);
                }
            }
            OpKind::Read => {}
            kind => {
                // A discard leaves parts of blocks as they are where there is no space to zero them.
                let is_whole = |sector: u64| sector.is_multiple_of(BLOCK);
                let is_sure = kind != OpKind::Discard
                    || is_whole(asked.sectors.start) && is_whole(asked.sectors.end);
                let sure = worked && is_sure;
                oracle.end(
                    asked.volume,
                    asked.sectors,
                    asked.id,
                    sure,
                    sure && asked.fua,
                );
            }
        }
    }
}

impl Mix {
    fn pick(&self, random: &mut Random) -> OpKind {
        let kinds = [
            OpKind::Write,
            OpKind::Read,
            OpKind::Flush,
            OpKind::Discard,
            OpKind::WriteZeroes,
        ];
        let mut at = random.below(self.often.iter().sum());
        for (kind, often) in kinds.into_iter().zip(self.often) {
            if at < often {
                return kind;
            }
            at -= often;
        }
        OpKind::Read
    }
}

/// The part of a chunk that is written, or the rest of it.
fn part(target: &Target, chunk: u64, kind: OpKind) -> Range<u64> {
    let blocks = target.blocks[usize::from(chunk != 0)];
    let (first, at) = (chunk * CHUNK_SECTORS, (blocks * 3 / 4).max(1));
    match kind {
        OpKind::Write => first..first + at * BLOCK,
        _ => first + at * BLOCK..first + blocks * BLOCK,
    }
}

/// One of two sectors of a block that nothing else is written to.
fn half(random: &mut Random, chunk: u64) -> Range<u64> {
    let block = HALVED + random.below(2);
    let sector = chunk * CHUNK_SECTORS + block * BLOCK + random.below(2);
    sector..sector + 1
}

/// Sectors of some operation: mostly small, some large, some not whole blocks.
fn range(random: &mut Random, target: &Target, chunk: u64) -> Range<u64> {
    let blocks = target.blocks[usize::from(chunk != 0)];
    let chunk = chunk * CHUNK_SECTORS;
    let block = random.below(blocks) * BLOCK;
    let count = match random.below(16) {
        0..=7 => BLOCK,
        8..=11 => BLOCK * random.within(1..=blocks.min(8)),
        12 if random.one_in(2) => return chunk..chunk + BLOCK * blocks,
        12 => BLOCK * random.within(blocks / 2..=blocks),
        _ if target.least == 1 => {
            let start = chunk + block + random.below(BLOCK);
            return start..start + random.within(1..=20);
        }
        _ => BLOCK * 2,
    };
    chunk + block..chunk + block + count
}
