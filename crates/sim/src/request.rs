//! The outcome of a request: when it completes, its effect, and its faults.

use crate::content::owner_of;
use crate::drive::Moment;
use crate::image::{Block, blocks_of};
use crate::medium::Medium;
use crate::tempo::Tempo;
use block::{DriveError, DriveIo, DriveIoKind};
use reactor::Handle;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use units::BLOCK;

/// EIO.
const FAILED: i32 = 5;
/// How long a request hangs, in nanoseconds: longer than the engine waits.
pub const HANG_NS: u64 = 45_000_000_000;
/// Bytes of a drive's sector.
const SECTOR: usize = 512;

/// Faults of requests: each once in this many; 0 is never.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    /// A read fails.
    pub read_error: u64,
    /// A write fails, and may have happened.
    pub write_error: u64,
    /// A flush fails, and what it covered may be lost.
    pub flush_error: u64,
    /// Data that has to be written between two flushes for the second one to fail, if restricted.
    pub after: Option<Meta>,
    /// A read gives a block with a wrong bit, this once.
    pub wrong_read: u64,
    /// A read gives what a block held before its last write, this once.
    pub stale_read: u64,
    /// A write is acknowledged and never happens.
    pub lost_write: u64,
    /// A write is acknowledged and happens in some of its sectors.
    pub torn_write: u64,
    /// A write goes to another place.
    pub misdirected: u64,
    /// A block turns a bit over once it is written.
    pub rot: u64,
    /// A block cannot be read once it is written, until it is written again.
    pub latent: u64,
    /// A flush is acknowledged and does nothing.
    pub lying_flush: u64,
    /// A request takes longer than the engine waits.
    pub hang: u64,
    /// A request takes a hundred times as long.
    pub slow: u64,
    /// Only hosts' content is hit, and each block is reported: there is no other copy.
    pub told: bool,
}

impl Faults {
    /// Only those that damage nothing, or are reported by an error.
    pub fn announced(self) -> Self {
        Self {
            lost_write: 0,
            misdirected: 0,
            torn_write: 0,
            rot: 0,
            latent: 0,
            lying_flush: 0,
            ..self
        }
    }

    /// Whether it has none but those.
    pub fn is_announced(self) -> bool {
        let silent = [
            self.lost_write,
            self.misdirected,
            self.torn_write,
            self.rot,
            self.latent,
            self.lying_flush,
        ];
        silent == [0; 6]
    }
}

/// A drive's content, and how it behaves.
pub struct State {
    /// Its content.
    pub medium: Medium,
    /// How it goes wrong.
    pub faults: Faults,
    /// How long a request takes at least and at most, in microseconds.
    latency_us: (u64, u64),
    tempo: Tempo,
    unreadable: BTreeSet<u64>,
    /// Restricted writes since the last flush began, after which a flush may fail.
    since_flush: Vec<Meta>,
    /// When the last request that hangs ends.
    pub hangs_until_ns: u64,
    /// Content of blocks before their last write, for stale reads.
    before: BTreeMap<u64, Arc<Block>>,
}

/// The effect of a request at its completion.
pub enum End {
    /// Reads.
    Read,
    /// With this bit, counted around, the other way.
    WrongRead(u64),
    /// Reads what was there before.
    StaleRead,
    /// This write of the medium ends.
    Write(u64),
    /// A flush that covers this turn.
    Flush(u64),
    /// One that only reports an error.
    Lie(u64),
    /// Nothing.
    Nothing,
}

/// A request in progress.
pub struct Begun {
    /// Its effect.
    pub end: End,
    /// After how many nanoseconds.
    pub delay: u64,
    /// Its result.
    pub result: Result<(), DriveError>,
    /// The event for the simulation.
    pub moments: Vec<Moment>,
}

/// Metadata, as far as faults tell it apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meta {
    /// The beginning of a label.
    Label,
    /// A page of a map or of a tree.
    Page,
}

impl Meta {
    fn of(block: &Arc<Block>) -> Option<Self> {
        match &block[..4] {
            b"CONV" => Some(Self::Label),
            b"CVJL" | b"CVCP" => None,
            [b'C', b'V', ..] => Some(Self::Page),
            _ => None,
        }
    }
}

fn is_metadata(block: &[u8]) -> bool {
    block.starts_with(b"CV") || block.starts_with(b"CONVECT")
}

impl State {
    /// A drive that behaves.
    pub fn new(medium: Medium, latency_us: (u64, u64), tempo: Tempo) -> Self {
        Self {
            medium,
            faults: Faults::default(),
            latency_us,
            tempo,
            unreadable: BTreeSet::new(),
            since_flush: Vec::new(),
            hangs_until_ns: 0,
            before: BTreeMap::new(),
        }
    }

    /// The outcome of a request to a drive of `size` bytes.
    pub fn begin(&mut self, io: &DriveIo, size: u64, handle: &Handle) -> Begun {
        let (least, most) = self.latency_us;
        let mut begun = Begun {
            end: End::Nothing,
            delay: (least + handle.random() % (most - least)) * 1000,
            result: Ok(()),
            moments: Vec::new(),
        };
        if chance(handle, self.faults.slow) {
            begun.delay *= 100;
        }
        begun.delay = self.tempo.delay(handle, begun.delay);
        let first = io.offset / BLOCK as u64;
        let blocks = first..first + io.len / BLOCK as u64;
        match (io.kind, &io.buf) {
            (DriveIoKind::Read, _) => self.begin_read(blocks, handle, &mut begun),
            (DriveIoKind::Write, Some(buf)) => {
                let content: Vec<Arc<Block>> = blocks_of(buf).collect();
                self.begin_write(first, content, size, handle, &mut begun);
            }
            (DriveIoKind::Write, None) => begun.result = Err(DriveError::Bounds),
            (DriveIoKind::Flush, _) => self.begin_flush(handle, &mut begun),
            (DriveIoKind::Discard, _) => {
                self.medium.discard(first, io.len / BLOCK as u64);
            }
        }
        if begun.delay >= HANG_NS {
            self.hangs_until_ns = self.hangs_until_ns.max(handle.now_ns() + begun.delay);
        }
        begun
    }

    fn begin_read(&self, blocks: std::ops::Range<u64>, handle: &Handle, begun: &mut Begun) {
        let faults = self.faults;
        begun.end = End::Read;
        let held = |block| self.medium.current.get(block);
        let metadata = |block| held(block).is_some_and(|content| is_metadata(&content[..]));
        if self.unreadable.range(blocks.clone()).next().is_some() {
            (begun.end, begun.result) = (End::Nothing, Err(DriveError::Os(FAILED)));
        } else if faults.told && blocks.clone().any(metadata) {
        } else if chance(handle, faults.read_error) {
            (begun.end, begun.result) = (End::Nothing, Err(DriveError::Os(FAILED)));
        } else if chance(handle, faults.wrong_read) {
            begun.end = End::WrongRead(handle.random());
        } else if chance(handle, faults.stale_read) {
            begun.end = End::StaleRead;
        } else if chance(handle, faults.hang) {
            begun.delay += HANG_NS;
            begun.moments.push(Moment::Stopped);
        }
    }

    fn begin_flush(&mut self, handle: &Handle, begun: &mut Begun) {
        let turn = self.medium.flush_begins();
        begun.end = End::Flush(turn);
        let since = std::mem::take(&mut self.since_flush);
        let may_fail = self.faults.after.is_none_or(|meta| since.contains(&meta));
        if may_fail && chance(handle, self.faults.flush_error) {
            self.medium.flush_fails(turn, || chance(handle, 2));
            (begun.end, begun.result) = (End::Nothing, Err(DriveError::Os(FAILED)));
            begun.moments.push(Moment::Stopped);
        } else if chance(handle, self.faults.lying_flush) && !self.is_untold(turn) {
            begun.end = End::Lie(turn);
        }
    }

    /// Whether what a flush that begins at `turn` covers has something that cannot be told of, as blocks of zeroes.
    fn is_untold(&self, turn: u64) -> bool {
        let mut covered = self.medium.covered(turn);
        self.faults.told && covered.any(|block| owner_of(&block[..]).is_none())
    }

    fn begin_write(
        &mut self,
        first: u64,
        mut content: Vec<Arc<Block>>,
        size: u64,
        handle: &Handle,
        begun: &mut Begun,
    ) {
        let faults = self.faults;
        if self.medium.is_contested(first, &content) {
            begun.moments.push(Moment::Twice(first));
        }
        let meant = (faults.rot + faults.torn_write > 0).then(|| content.clone());
        let owners: Vec<_> = content.iter().map(|block| owner_of(&block[..])).collect();
        // Blocks that cannot be reported are spared.
        let sound = faults.told && owners.iter().any(Option::is_none);
        let all: Vec<_> = owners.iter().flatten().copied().collect();
        if self.faults.after.is_some() {
            self.since_flush.extend(content.iter().filter_map(Meta::of));
        }
        let (mut at, mut strays) = (first, false);
        if !sound {
            if chance(handle, faults.lost_write) {
                return begun.hit(&all);
            }
            if chance(handle, faults.torn_write) {
                for (block, new) in (first..).zip(&mut content) {
                    self.tear(block, new, handle.random());
                }
                begun.hit(&all);
            }
            if chance(handle, faults.rot) {
                let one = handle.random() as usize % content.len();
                let bit = handle.random() as usize % (BLOCK * 8);
                begun.hit(owner_of(&content[one][..]).as_slice());
                content[one] = Arc::new(content[one].with_bit_turned(bit));
            }
            if chance(handle, faults.misdirected) {
                let span = size / BLOCK as u64 - content.len() as u64;
                let other = handle.random() % span;
                if let Some(victims) = self.victims(other..other + content.len() as u64) {
                    (at, strays) = (other, true);
                    begun.hit(&all);
                    begun.hit(&victims);
                }
            }
        }
        for (block, new) in (at..).zip(&content) {
            self.unreadable.remove(&block);
            if faults.stale_read != 0
                && let Some(old) = self.medium.current.get(block)
            {
                self.before.insert(block, old.clone());
            }
            debug_assert_eq!(new.len(), BLOCK);
        }
        let count = content.len() as u64;
        let id = self.medium.begin(at, content);
        if let Some(meant) = meant {
            self.medium.alter(id, meant);
        }
        if !sound && chance(handle, faults.write_error) {
            let kept = chance(handle, 2);
            self.medium.fail(id, kept);
            begun.result = Err(DriveError::Os(FAILED));
            let refused = all
                .iter()
                .map(|(volume, block)| Moment::Refused(*volume, *block));
            begun.moments.extend(refused);
            return;
        }
        begun.end = End::Write(id);
        if strays {
            // Immediately, so that no later write there is hit without being reported.
            self.medium.end(id);
            begun.end = End::Nothing;
        }
        if !sound && chance(handle, faults.latent) {
            let one = handle.random() % count;
            self.unreadable.insert(at + one);
            begun.hit(owners[one as usize].as_slice());
        }
        if !sound && chance(handle, faults.hang) {
            begun.delay += HANG_NS;
            begun.moments.push(Moment::Stopped);
        }
    }

    /// Whose content a write to the wrong place spoils; none when some of it cannot be told of, or is
    /// being written.
    fn victims(&self, blocks: std::ops::Range<u64>) -> Option<Vec<(u32, u64)>> {
        if !self.faults.told {
            return Some(Vec::new());
        }
        if self.medium.is_being_written(&blocks) {
            return None;
        }
        let held = blocks.filter_map(|block| self.medium.current.get(block));
        held.map(|content| owner_of(&content[..])).collect()
    }

    fn tear(&self, block: u64, new: &mut Arc<Block>, fate: u64) {
        let mut torn = self
            .medium
            .current
            .get(block)
            .map_or([0; BLOCK], |old| ***old);
        for (at, sector) in new.chunks_exact(SECTOR).enumerate() {
            if fate >> at & 1 == 1 {
                torn[at * SECTOR..][..SECTOR].copy_from_slice(sector);
            }
        }
        *new = Arc::new(Block::of(&torn));
    }

    /// Carries a request out; true when it was a flush that worked.
    pub fn finish(&mut self, io: &mut DriveIo, end: End) -> bool {
        let first = io.offset / BLOCK as u64;
        match (&end, &mut io.buf) {
            (End::Read, Some(buf)) => self.medium.current.read(first, buf),
            (End::WrongRead(bit), Some(buf)) => {
                self.medium.current.read(first, buf);
                let at = *bit as usize / 8 % buf.len();
                buf[at] ^= 1 << (bit % 8);
            }
            (End::StaleRead, Some(buf)) => {
                self.medium.current.read(first, buf);
                for (block, into) in (first..).zip(buf.chunks_exact_mut(BLOCK)) {
                    if let Some(old) = self.before.get(&block) {
                        into.copy_from_slice(&old[..]);
                    }
                }
            }
            (End::Write(id), _) => self.medium.end(*id),
            (End::Flush(turn), _) => self.medium.flush_ends(*turn),
            (End::Lie(turn), _) => self.medium.flush_lies(*turn),
            _ => {}
        }
        matches!(end, End::Flush(_))
    }
}

impl Begun {
    fn hit(&mut self, owners: &[(u32, u64)]) {
        let hits = owners
            .iter()
            .map(|(volume, block)| Moment::Hit(*volume, *block));
        self.moments.extend(hits);
    }
}

fn chance(handle: &Handle, once_in: u64) -> bool {
    once_in != 0 && handle.random().is_multiple_of(once_in)
}
