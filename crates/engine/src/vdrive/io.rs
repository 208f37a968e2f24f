//! Reading and writing a vdrive from one shard's thread.

use super::{Fragment, Layout, Watch};
use crate::control::types::DriveLimits;
use block::{DmaBuf, DmaPool, DriveError, DriveIoKind, DriveOutcome, DriveQueue};
use futures_util::future::join_all;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use units::{BLOCK, VdriveId};

/// What all shards know and count of one part of a drive.
#[derive(Default, Debug)]
pub struct DriveShared {
    /// Reads ended.
    pub reads: AtomicU64,
    /// Writes ended.
    pub writes: AtomicU64,
    /// Bytes read.
    pub read_bytes: AtomicU64,
    /// Bytes written.
    pub write_bytes: AtomicU64,
    /// Requests that failed.
    pub errors: AtomicU64,
    /// Blocks mended from another leg.
    pub repaired: AtomicU64,
    /// Requests that were given up: the drive did not answer within the deadline.
    pub timeouts: AtomicU64,
    /// It has not answered since the last such request.
    pub silent: AtomicBool,
    /// Threads' ways to parts of it that find it far slower than usual.
    pub slow: AtomicU32,
    /// What is asked of its time.
    pub limits: DriveLimits,
}

impl DriveShared {
    /// For a drive of which this is asked.
    pub fn new(limits: DriveLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            ..Self::default()
        })
    }

    /// Whether it does not answer, or takes far longer than usual.
    pub fn is_slow(&self) -> bool {
        self.silent.load(Ordering::Relaxed) || self.slow.load(Ordering::Relaxed) > 0
    }
}

/// One part of a vdrive, as one thread reaches it.
#[derive(Clone)]
pub struct PartIo {
    /// The drive.
    pub queue: Rc<dyn DriveQueue>,
    /// First byte of the part on the drive.
    pub offset: u64,
    /// The part failed as a mirror's leg: it is neither read nor written any more.
    pub out: Arc<AtomicBool>,
    /// Counters of the drive.
    pub shared: Arc<DriveShared>,
    /// The deadline of its requests.
    pub watch: Rc<Watch>,
}

impl PartIo {
    fn byte(&self, block: u64) -> u64 {
        self.offset + block * BLOCK as u64
    }

    fn is_in(&self) -> bool {
        !self.out.load(Ordering::Acquire)
    }

    async fn read(&self, block: u64, buf: DmaBuf) -> Result<DmaBuf, DriveError> {
        let bytes = buf.len() as u64;
        let (buf, result) = self.send(DriveIoKind::Read, block, Some(buf)).await;
        self.shared.reads.fetch_add(1, Ordering::Relaxed);
        self.shared.read_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.counted(result.and_then(|()| buf.ok_or(DriveError::Gone)))
    }

    async fn write(&self, block: u64, buf: DmaBuf) -> Result<(), DriveError> {
        let bytes = buf.len() as u64;
        let (_, result) = self.send(DriveIoKind::Write, block, Some(buf)).await;
        self.shared.writes.fetch_add(1, Ordering::Relaxed);
        self.shared.write_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.counted(result)
    }

    async fn flush(&self) -> Result<(), DriveError> {
        let (_, result) = self.send(DriveIoKind::Flush, 0, None).await;
        self.counted(result)
    }

    async fn send(&self, kind: DriveIoKind, block: u64, buf: Option<DmaBuf>) -> DriveOutcome {
        let offset = if kind == DriveIoKind::Flush {
            0
        } else {
            self.byte(block)
        };
        self.watch.send(&self.queue, kind, offset, buf).await
    }

    fn counted<T>(&self, result: Result<T, DriveError>) -> Result<T, DriveError> {
        if result.is_err() {
            self.shared.errors.fetch_add(1, Ordering::Relaxed);
        }
        result
    }
}

/// Tells whether the block `index` (counted from the first that was asked for) is as it must be.
pub type Check<'a> = &'a dyn Fn(usize, &[u8]) -> bool;

/// A vdrive, as one shard reaches it.
pub struct VdriveIo {
    /// Its number.
    pub id: VdriveId,
    layout: Layout,
    parts: Vec<PartIo>,
    dma: DmaPool,
    turn: Cell<usize>,
}

impl VdriveIo {
    /// A vdrive over `parts`, which `layout` was made for.
    pub fn new(id: VdriveId, layout: Layout, parts: Vec<PartIo>, dma: DmaPool) -> Self {
        Self {
            id,
            layout,
            parts,
            dma,
            turn: Cell::new(0),
        }
    }

    /// Size in blocks.
    pub fn blocks(&self) -> u64 {
        self.layout.blocks()
    }

    /// Reads `count` blocks from `block` on and checks each.
    ///
    /// A mirror's leg that fails or gives a wrong block is mended from one that gives the right
    /// one; [`DriveError::Checksum`] when none does.
    ///
    /// # Errors
    /// When a block cannot be had from any drive that holds it.
    pub async fn read(
        &self,
        block: u64,
        count: usize,
        check: Check<'_>,
    ) -> Result<DmaBuf, DriveError> {
        let first = self.layout.fragment(block, count);
        if first.count == count {
            return self.read_fragment(first, 0, check).await;
        }
        let mut at = 0;
        let reads: Vec<_> = self
            .layout
            .fragments(block, count)
            .map(|fragment| {
                let base = at;
                at += fragment.count;
                async move { (base, self.read_fragment(fragment, base, check).await) }
            })
            .collect();
        let mut whole = self.dma.get(count * BLOCK);
        for (base, part) in join_all(reads).await {
            let part = part?;
            whole[base * BLOCK..base * BLOCK + part.len()].copy_from_slice(&part);
        }
        Ok(whole)
    }

    async fn read_fragment(
        &self,
        fragment: Fragment,
        base: usize,
        check: Check<'_>,
    ) -> Result<DmaBuf, DriveError> {
        let leg = if self.layout.is_mirror() {
            self.choose_leg()
        } else {
            fragment.part
        };
        let buf = self.dma.get(fragment.count * BLOCK);
        let error = match self.parts[leg].read(fragment.block, buf).await {
            Ok(buf) if first_wrong(&buf, base, check).is_none() => return Ok(buf),
            Ok(_) => DriveError::Checksum,
            Err(error) => error,
        };
        if !self.layout.is_mirror() {
            return Err(error);
        }
        self.set_aside_silent(leg, error);
        self.read_mending(fragment, base, check).await
    }

    /// The leg with the least to do; legs that are out come last.
    fn choose_leg(&self) -> usize {
        let count = self.parts.len();
        let turn = self.turn.get() % count;
        self.turn.set(turn + 1);
        (0..count)
            .map(|step| (turn + step) % count)
            .min_by_key(|leg| {
                (
                    !self.parts[*leg].is_in(),
                    self.parts[*leg].queue.in_flight(),
                )
            })
            .expect("a mirror has legs")
    }

    /// Block by block from whichever leg has it right; the others are written anew.
    async fn read_mending(
        &self,
        fragment: Fragment,
        base: usize,
        check: Check<'_>,
    ) -> Result<DmaBuf, DriveError> {
        let mut whole = self.dma.get(fragment.count * BLOCK);
        for index in 0..fragment.count {
            let block = fragment.block + index as u64;
            let good = self.read_block_mending(block, base + index, check).await?;
            whole[index * BLOCK..][..BLOCK].copy_from_slice(&good);
        }
        Ok(whole)
    }

    async fn read_block_mending(
        &self,
        block: u64,
        index: usize,
        check: Check<'_>,
    ) -> Result<DmaBuf, DriveError> {
        let mut good = None;
        let mut wrong = Vec::new();
        let mut error = DriveError::Gone;
        for (leg, part) in self
            .parts
            .iter()
            .enumerate()
            .filter(|(_, part)| part.is_in())
        {
            match part.read(block, self.dma.get(BLOCK)).await {
                Ok(buf) if check(index, &buf) => good = Some(buf),
                Ok(_) => {
                    wrong.push(leg);
                    error = DriveError::Checksum;
                }
                Err(failed) => {
                    self.set_aside_silent(leg, failed);
                    wrong.push(leg);
                    error = failed;
                }
            }
        }
        let good = good.ok_or(error)?;
        for leg in wrong {
            let part = &self.parts[leg];
            if !part.is_in() {
                continue;
            }
            match part.write(block, good.clone()).await {
                Ok(()) => drop(part.shared.repaired.fetch_add(1, Ordering::Relaxed)),
                Err(error) => self.take_out(leg, error),
            }
        }
        Ok(good)
    }

    /// A leg that does not answer is out, if there is another: each request would wait for it.
    fn set_aside_silent(&self, leg: usize, error: DriveError) {
        let others = (0..self.parts.len()).filter(|other| *other != leg);
        if error == DriveError::Timeout && others.clone().any(|other| self.parts[other].is_in()) {
            self.take_out(leg, error);
        }
    }

    fn take_out(&self, leg: usize, error: DriveError) {
        if !self.parts[leg].out.swap(true, Ordering::AcqRel) {
            tracing::warn!(vdrive = self.id.0, leg, %error, "a mirror's leg failed and is out");
        }
    }

    /// Writes whole blocks from `block` on, on every leg that is in. A mirror's leg that fails is
    /// out from then on, if another one took the write.
    ///
    /// # Errors
    /// When no leg took the write.
    pub async fn write(&self, block: u64, buf: DmaBuf) -> Result<(), DriveError> {
        let count = buf.len() / BLOCK;
        let first = self.layout.fragment(block, count);
        if first.count == count {
            return self.write_fragment(first, buf).await;
        }
        let mut at = 0;
        let writes: Vec<_> = self
            .layout
            .fragments(block, count)
            .map(|fragment| {
                let piece = buf.slice(at * BLOCK, fragment.count * BLOCK);
                at += fragment.count;
                self.write_fragment(fragment, piece)
            })
            .collect();
        all_ended(join_all(writes).await)
    }

    async fn write_fragment(&self, fragment: Fragment, buf: DmaBuf) -> Result<(), DriveError> {
        if !self.layout.is_mirror() {
            return self.parts[fragment.part].write(fragment.block, buf).await;
        }
        let legs: Vec<_> = (0..self.parts.len())
            .filter(|leg| self.parts[*leg].is_in())
            .collect();
        let writes = legs
            .iter()
            .map(|leg| self.parts[*leg].write(fragment.block, buf.clone()));
        let results = join_all(writes).await;
        self.settle(&legs, results)
    }

    /// Takes failed legs out when another leg did well.
    fn settle(
        &self,
        legs: &[usize],
        results: Vec<Result<(), DriveError>>,
    ) -> Result<(), DriveError> {
        let mut failed = Vec::new();
        for (leg, result) in legs.iter().zip(&results) {
            if let Err(reason) = result {
                failed.push((*leg, *reason));
            }
        }
        if failed.len() == legs.len() {
            return all_ended(results).and(Err(DriveError::Gone));
        }
        failed
            .into_iter()
            .for_each(|(leg, reason)| self.take_out(leg, reason));
        Ok(())
    }

    /// Makes completed writes durable on every leg that is in.
    ///
    /// # Errors
    /// When a drive that is no mirror's leg, or every leg, failed.
    pub async fn flush(&self) -> Result<(), DriveError> {
        let legs: Vec<_> = (0..self.parts.len())
            .filter(|leg| !self.layout.is_mirror() || self.parts[*leg].is_in())
            .collect();
        let flushes = legs.iter().map(|leg| self.parts[*leg].flush());
        let results = join_all(flushes).await;
        if self.layout.is_mirror() {
            return self.settle(&legs, results);
        }
        results.into_iter().collect()
    }

    /// Writes a good copy over every leg of a mirror that is in and differs from it.
    ///
    /// # Errors
    /// As [`VdriveIo::read`].
    pub async fn read_every_leg(&self, block: u64, check: Check<'_>) -> Result<DmaBuf, DriveError> {
        if self.layout.is_mirror() {
            self.read_block_mending(block, 0, check).await
        } else {
            self.read(block, 1, check).await
        }
    }
}

/// Whether all of several requests went well. A timeout counts more than other errors: such a
/// write may still land.
pub(crate) fn all_ended(results: Vec<Result<(), DriveError>>) -> Result<(), DriveError> {
    let late = |result: &&Result<(), DriveError>| **result == Err(DriveError::Timeout);
    match results.iter().find(late) {
        Some(late) => *late,
        None => results.into_iter().collect(),
    }
}

fn first_wrong(buf: &[u8], base: usize, check: Check<'_>) -> Option<usize> {
    buf.chunks_exact(BLOCK)
        .enumerate()
        .map(|(at, block)| (base + at, block))
        .find_map(|(index, block)| (!check(index, block)).then_some(index))
}
