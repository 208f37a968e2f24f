//! Reading and writing a vdrive from one shard's thread.

use super::flush::Flushing;
use super::in_flight::Flights;
use super::latency::ReadCost;
use super::mirror::copy::Gate;
use super::mirror::dirty_region_log::Written;
use super::stats::{Counter, Tally};
use super::{Fragment, Layout, Member, MemberState, Members, Purpose, Watch, Wear};
use crate::control::types::DriveLimits;
use block::{DmaBuf, DmaPool, DriveError, DriveIoKind, DriveOutcome, DriveQueue};
use format::WearConfig;
use futures_util::future::join_all;
use reactor::{Handle, Limit};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use units::invariant::check;
use units::mutation::{Mutation, is_on};
use units::{BLOCK, VdriveId};

/// State and counters of one part of a drive, shared by all shards.
#[derive(Default, Debug)]
pub struct DriveShared {
    /// Reads and writes since the pool was opened, without labels.
    pub tally: Tally,
    /// Other writes.
    pub wear: Wear,
    /// Requests that failed.
    pub errors: AtomicU64,
    /// Blocks repaired from another member.
    pub repaired: AtomicU64,
    /// Its flushes.
    pub flushing: Flushing,
    /// Requests that timed out.
    pub timeouts: AtomicU64,
    /// It has not answered since the last such request.
    pub silent: AtomicBool,
    /// Number of threads' channels that find it far slower than usual.
    pub slow: AtomicU32,
    /// Expectations of its response time.
    pub limits: DriveLimits,
}

impl DriveShared {
    /// For a drive with these expectations, and the bytes that the pool wrote to it before.
    pub fn new(limits: DriveLimits, wear: WearConfig) -> Arc<Self> {
        Arc::new(Self {
            limits,
            wear: Wear::since(wear),
            ..Self::default()
        })
    }

    /// Flushes the drive, concurrently with others ([`Flushing::run`]).
    ///
    /// # Errors
    /// The drive's error, or `Gone` if an overlapping one failed.
    pub async fn flush(
        &self,
        handle: &Handle,
        flush: impl Future<Output = Result<(), DriveError>>,
    ) -> Result<(), DriveError> {
        let written = self.tally.written();
        let run = self.flushing.run(written, || handle.now_ns(), flush);
        run.await
    }

    /// All that was written to it ([`Wear::total`]).
    pub fn worn(&self, since_s: u64) -> WearConfig {
        self.wear.total(&self.tally.sums(), since_s)
    }

    /// Whether it does not respond, or takes far longer than usual.
    pub fn is_slow(&self) -> bool {
        self.silent.load(Ordering::Relaxed) || self.slow.load(Ordering::Relaxed) > 0
    }
}

/// Reads that a drive has at a time where they take turns: about as many as a disk sorts by itself.
pub(super) const TURNS: usize = 12;

/// One thread's channel to a drive.
pub(super) struct Channel {
    /// The drive's name.
    spec: String,
    pub(super) queue: Rc<dyn DriveQueue>,
    /// Shared state of the drive.
    pub(super) shared: Arc<DriveShared>,
    /// Requests of this channel.
    pub(super) counter: Counter,
    /// The deadline of its requests.
    pub(super) watch: Rc<Watch>,
}

/// One thread's channel to one part of a vdrive.
pub struct PartIo {
    /// The drive; another one after a replacement.
    pub(super) channel: RefCell<Rc<Channel>>,
    /// First byte of the part on the drive.
    offset: u64,
    /// Whether it is a valid member of a mirror.
    pub(super) member: Arc<Member>,
}

impl PartIo {
    /// A part that begins at `offset` (bytes) of a drive; `spec` is its name.
    pub fn new(
        handle: &Handle,
        queue: Rc<dyn DriveQueue>,
        spec: &str,
        offset: u64,
        member: Arc<Member>,
        shared: Arc<DriveShared>,
    ) -> Self {
        Self {
            channel: RefCell::new(Channel::new(handle, queue, spec, shared)),
            offset,
            member,
        }
    }

    fn channel(&self) -> Rc<Channel> {
        self.channel.borrow().clone()
    }

    pub(super) fn byte(&self, block: u64) -> u64 {
        self.offset + block * BLOCK as u64
    }

    pub(super) async fn read(&self, block: u64, buf: DmaBuf) -> Result<DmaBuf, DriveError> {
        let (bytes, channel) = (buf.len() as u64, self.channel());
        let ((buf, result), took) = channel
            .send(DriveIoKind::Read, self.byte(block), Some(buf))
            .await;
        channel.counter.read(bytes, took);
        channel.counted(result.and_then(|()| buf.ok_or(DriveError::Gone)))
    }

    pub(super) async fn write(
        &self,
        block: u64,
        buf: DmaBuf,
        purpose: Purpose,
    ) -> Result<(), DriveError> {
        let (bytes, channel) = (buf.len() as u64, self.channel());
        let ((_, result), took) = channel
            .send(DriveIoKind::Write, self.byte(block), Some(buf))
            .await;
        channel.counter.wrote(purpose, bytes, took);
        channel.counted(result)
    }

    pub(super) async fn flush(&self) -> Result<(), DriveError> {
        let channel = self.channel();
        if channel.shared.flushing.has_failed() {
            return Err(DriveError::Gone);
        }
        let flush = async {
            let ((_, result), _) = channel.send(DriveIoKind::Flush, 0, None).await;
            match is_on(Mutation::FlushError) {
                true => Ok(()),
                false => result,
            }
        };
        let run = channel.shared.flush(channel.watch.handle(), flush);
        channel.counted(run.await)
    }

    /// Whether enough was written that an early flush pays, `since_ns` after the caller's last.
    fn flush_is_due(&self, since_ns: u64) -> bool {
        let channel = self.channel.borrow();
        let shared = &channel.shared;
        let written = || shared.tally.written();
        shared.flushing.is_due(written, since_ns)
    }

    pub(super) fn mended(&self) {
        let channel = self.channel.borrow();
        channel.shared.repaired.fetch_add(1, Ordering::Relaxed);
    }
}

impl Channel {
    fn new(
        handle: &Handle,
        queue: Rc<dyn DriveQueue>,
        spec: &str,
        shared: Arc<DriveShared>,
    ) -> Rc<Self> {
        Rc::new(Self {
            spec: spec.to_owned(),
            queue,
            watch: Watch::new(handle, spec, shared.clone()),
            counter: shared.tally.join(),
            shared,
        })
    }

    async fn send(
        &self,
        kind: DriveIoKind,
        offset: u64,
        buf: Option<DmaBuf>,
    ) -> (DriveOutcome, u64) {
        self.watch.send(&self.queue, kind, offset, buf).await
    }

    fn counted<T>(&self, result: Result<T, DriveError>) -> Result<T, DriveError> {
        if result.is_err() {
            self.shared.errors.fetch_add(1, Ordering::Relaxed);
        }
        result
    }
}

/// Verifies the block `index` (counted from the first requested one).
pub type Check<'a> = &'a dyn Fn(usize, &[u8]) -> bool;

/// One shard's channel to a vdrive.
pub struct VdriveIo {
    /// Its number.
    pub id: VdriveId,
    pub(super) layout: Layout,
    pub(super) parts: Vec<PartIo>,
    pub(super) members: Arc<Members>,
    pub(super) dma: DmaPool,
    turn: Cell<usize>,
    /// Blocks that were found bad on a member, and not read again yet.
    pub(super) suspects: RefCell<VecDeque<(u64, usize)>>,
    /// For reads of a tier of disks: turns in the order of addresses.
    pub(super) turns: Limit,
    /// Unflushed writes of this thread to a mirror: a member that goes out may have
    /// lost them.
    pub(super) written: RefCell<Written>,
    pub(super) gate: Gate,
    /// Requests of this thread in flight.
    pub(super) flights: Flights,
    /// Latency of this thread's reads.
    pub(super) cost: RefCell<ReadCost>,
    /// All drives have their data in this process's memory.
    pub(super) in_memory: Cell<bool>,
}

impl VdriveIo {
    /// A vdrive over `parts`, which `layout` was made for.
    pub fn new(
        id: VdriveId,
        layout: Layout,
        parts: Vec<PartIo>,
        members: Arc<Members>,
        dma: DmaPool,
    ) -> Self {
        let count = TURNS * parts.len().max(1);
        let turns = match parts.first() {
            Some(part) => Limit::timed(count, TURNS, part.channel().watch.handle()),
            None => Limit::new(count),
        };
        let vdrive = Self {
            id,
            layout,
            parts,
            members,
            dma,
            turn: Cell::new(0),
            suspects: RefCell::default(),
            turns,
            written: RefCell::default(),
            gate: Gate::default(),
            flights: Flights::default(),
            cost: RefCell::default(),
            in_memory: Cell::new(false),
        };
        vdrive.look_for_memory();
        vdrive
    }

    /// Attaches a part to another drive.
    pub fn attach(
        &self,
        handle: &Handle,
        part: usize,
        queue: Rc<dyn DriveQueue>,
        spec: &str,
        shared: &Arc<DriveShared>,
    ) {
        let channel = Channel::new(handle, queue, spec, shared.clone());
        self.parts[part].channel.replace(channel);
        self.look_for_memory();
        self.forget_cost();
    }

    /// Bytes written to the drive of each part.
    #[cfg(test)]
    pub fn wear(&self) -> Vec<WearConfig> {
        let parts = self.parts.iter();
        let total = |part: &PartIo| part.channel().shared.worn(0);
        parts.map(total).collect()
    }

    /// The time of this thread's loop.
    pub(super) fn now_ns(&self) -> u64 {
        self.parts[0].channel.borrow().watch.handle().now_ns()
    }

    /// Size in blocks.
    pub fn blocks(&self) -> u64 {
        self.layout.blocks()
    }

    /// Refuses blocks that the vdrive does not have: a map from a drive may name any.
    pub(super) fn check_bounds(&self, block: u64, count: usize) -> Result<(), DriveError> {
        let end = block.checked_add(count as u64);
        match end.is_some_and(|end| end <= self.blocks()) {
            true => Ok(()),
            false => Err(DriveError::Bounds),
        }
    }

    /// Reads blocks, which the vdrive has, from the parts that hold them.
    pub(super) async fn read_fragments(
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
        let member = if self.layout.is_mirror() {
            self.member_for(fragment.block)
        } else {
            fragment.part
        };
        let buf = self.dma.get(fragment.count * BLOCK);
        let error = match self.parts[member].read(fragment.block, buf).await {
            Ok(buf) if first_wrong(&buf, base, check).is_none() => return Ok(buf),
            Ok(_) => DriveError::Checksum,
            Err(error) => error,
        };
        if !self.layout.is_mirror() {
            return Err(error);
        }
        self.set_aside_silent(member, error);
        self.read_mending(fragment, base, check).await
    }

    /// The member with the least to do; members that are out come last.
    pub(super) fn choose_member(&self) -> usize {
        let count = self.parts.len();
        let turn = self.turn.get() % count;
        self.turn.set(turn + 1);
        (0..count)
            .map(|step| (turn + step) % count)
            .min_by_key(|member| {
                (
                    !self.parts[*member].member.is_in(),
                    self.parts[*member].channel.borrow().queue.in_flight(),
                )
            })
            .expect("a mirror has members")
    }

    /// Reads block by block from a member with an intact copy; the others are rewritten.
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
        for member in self.members_where(Member::is_in) {
            match self.parts[member].read(block, self.dma.get(BLOCK)).await {
                Ok(buf) if check(index, &buf) => good = Some(buf),
                Ok(_) => {
                    wrong.push(member);
                    error = DriveError::Checksum;
                }
                Err(failed) => {
                    self.set_aside_silent(member, failed);
                    wrong.push(member);
                    // Another member's copy is more informative.
                    if error != DriveError::Checksum {
                        error = failed;
                    }
                }
            }
        }
        let good = good.ok_or(error)?;
        if !wrong.is_empty() {
            self.check_mended(block, &good);
        }
        for member in wrong {
            let part = &self.parts[member];
            if !part.member.is_in() {
                continue;
            }
            match part.write(block, good.clone(), Purpose::Upkeep).await {
                Ok(()) => part.mended(),
                Err(error) => drop(self.take_out(member, error)),
            }
        }
        Ok(good)
    }

    /// Location of a block, for messages: its drives, and the byte on each.
    pub fn places_of(&self, block: u64) -> Vec<String> {
        if self.check_bounds(block, 1).is_err() {
            return vec![format!("block {block}, which is on no drive")];
        }
        let copies = self.named_places_of(block).into_iter();
        let copies = copies.map(|(drive, byte)| format!("{drive} at byte {byte}"));
        copies.collect()
    }

    /// The specifications of a block's drives, and the byte on each.
    ///
    /// # Panics
    /// When the vdrive has no such block.
    pub fn named_places_of(&self, block: u64) -> Vec<(String, u64)> {
        let copies = self.copies_of(block);
        let copies = copies.map(|(part, byte)| (self.parts[part].channel().spec.clone(), byte));
        copies.collect()
    }

    /// The valid parts that have a block, by number, and the byte of each one's drive.
    ///
    /// # Panics
    /// When the vdrive has no such block.
    pub fn copies_of(&self, block: u64) -> impl Iterator<Item = (usize, u64)> {
        let fragment = self.layout.fragment(block, 1);
        let mirror = self.layout.is_mirror();
        let parts = match mirror {
            true => 0..self.parts.len(),
            false => fragment.part..fragment.part + 1,
        };
        let counts = parts.filter(move |part| !mirror || self.parts[*part].member.is_in());
        counts.map(move |part| (part, self.parts[part].byte(fragment.block)))
    }

    pub(super) fn members_where(&self, so: impl Fn(&Member) -> bool) -> SmallVec<[usize; 4]> {
        let members = 0..self.parts.len();
        members
            .filter(|member| so(&self.parts[*member].member))
            .collect()
    }

    /// A member that does not respond is out, if there is another: each request would wait for it.
    pub(super) fn set_aside_silent(&self, member: usize, error: DriveError) {
        if error == DriveError::Timeout {
            let why = "it did not answer in time";
            self.members.take_out((self.id.0, member), why, false);
        }
    }

    pub(super) fn take_out(&self, member: usize, error: DriveError) -> bool {
        self.members.take_out(
            (self.id.0, member),
            &format!("a write failed: {error}"),
            false,
        )
    }

    /// Writes whole blocks from `block` on, for some purpose, on every member that is in. A mirror's member that fails is
    /// out from then on, if another one took the write.
    ///
    /// # Errors
    /// When no member took the write.
    pub async fn write(&self, block: u64, buf: DmaBuf, purpose: Purpose) -> Result<(), DriveError> {
        let count = buf.len() / BLOCK;
        self.check_bounds(block, count)?;
        let _under_way = match self.layout.is_mirror() {
            // Which members it goes to is not known yet.
            true => None,
            false => Some(self.flights.begin(block, &buf, &[])),
        };
        let first = self.layout.fragment(block, count);
        if first.count == count {
            return self.write_fragment(first, buf, purpose).await;
        }
        let mut at = 0;
        let writes: Vec<_> = self
            .layout
            .fragments(block, count)
            .map(|fragment| {
                let piece = buf.slice(at * BLOCK, fragment.count * BLOCK);
                at += fragment.count;
                self.write_fragment(fragment, piece, purpose)
            })
            .collect();
        all_ended(join_all(writes).await)
    }

    async fn write_fragment(
        &self,
        fragment: Fragment,
        buf: DmaBuf,
        purpose: Purpose,
    ) -> Result<(), DriveError> {
        if !self.layout.is_mirror() {
            let part = &self.parts[fragment.part];
            return part.write(fragment.block, buf, purpose).await;
        }
        let count = fragment.count as u64;
        let _passage = self.gate.enter(fragment.block, count).await;
        let members = self.members_where(Member::takes_writes);
        let _under_way = self.flights.begin(fragment.block, &buf, &members);
        let writes = members
            .iter()
            .map(|member| self.parts[*member].write(fragment.block, buf.clone(), purpose));
        let results = join_all(writes).await;
        let result = self.settle(&members, &results, |member, error| {
            self.take_out(member, error);
        });
        self.note_written(fragment.block, count, &members);
        result
    }

    /// Records writes for the members that lack them, or may lose them.
    pub(super) fn note_written(&self, block: u64, count: u64, took: &[usize]) {
        let map = &self.parts[0].member.stale;
        self.written.borrow_mut().add(map, block, count);
        for (index, part) in self.parts.iter().enumerate() {
            let lacks = !took.contains(&index) || part.member.state() == MemberState::Out;
            if lacks && part.member.stale.note(block, count) {
                self.members.want();
            }
        }
    }

    /// Blocks from before the opening of the pool that may have been written while a
    /// member was out: the member lacks them.
    pub fn note_found(&self, block: u64, count: u64) {
        if self.layout.is_mirror() {
            let members = self.members_where(|member| member.state() != MemberState::Out);
            self.note_written(block, count, &members);
        }
    }

    /// Reports failed members to `out` if others succeeded; the write succeeds if a member that is still in did.
    fn settle(
        &self,
        members: &[usize],
        results: &[Result<(), DriveError>],
        out: impl Fn(usize, DriveError),
    ) -> Result<(), DriveError> {
        if results.iter().all(Result::is_err) {
            return all_ended(results).and(Err(DriveError::Gone));
        }
        for (member, result) in members.iter().zip(results) {
            if let Err(reason) = result {
                out(*member, *reason);
            }
        }
        let mut done = members.iter().zip(results);
        if done.any(|(member, result)| result.is_ok() && self.parts[*member].member.is_in()) {
            return Ok(());
        }
        all_ended(results).and(Err(DriveError::Gone))
    }

    /// Makes completed writes durable on every member that takes writes. If a member fails, it is
    /// unknown what it lost: it goes out, and is resynced completely.
    ///
    /// # Errors
    /// When a drive that is no mirror's member, or every member, failed.
    pub async fn flush(&self) -> Result<(), DriveError> {
        if !self.layout.is_mirror() {
            if let [part] = &self.parts[..] {
                return part.flush().await;
            }
            let flushes = self.parts.iter().map(PartIo::flush);
            return join_all(flushes).await.into_iter().collect();
        }
        let written = self.written.take();
        let mut members = self.members_where(Member::takes_writes);
        if is_on(Mutation::FlushLeg) {
            members.truncate(members.len().saturating_sub(1).max(1));
        }
        let flushes = members.iter().map(|member| self.parts[*member].flush());
        let results = join_all(flushes).await;
        let result = self.settle(&members, &results, |member, error| {
            let why = format!("a flush failed: {error}");
            self.members.flush_failed((self.id.0, member), &why);
        });
        self.lost_by_absent(&written);
        self.check_noted(&written);
        if result.is_err() {
            self.written.borrow_mut().add_all(&written);
        }
        result
    }

    /// Whether some drive has so much to flush that the next flush would take long, and an early one is due,
    /// `since_ns` after the caller's last.
    pub fn flush_is_due(&self, since_ns: u64) -> bool {
        // A member that is out is not flushed, and would be due forever.
        let mut flushed = self.parts.iter().filter(|part| part.member.takes_writes());
        flushed.any(|part| part.flush_is_due(since_ns))
    }

    /// Members that are out may lack unflushed writes.
    fn lost_by_absent(&self, written: &Written) {
        if is_on(Mutation::AbsentUnnoted) {
            return;
        }
        for member in self.members_where(|member| member.state() == MemberState::Out) {
            if self.parts[member].member.stale.note_all(written) {
                self.members.want();
            }
        }
    }

    /// Invariant: writes since before the last flush that a member may lack are in the dirty-region log.
    fn check_noted(&self, written: &Written) {
        check(|| {
            let unnoted = |member: &Member| {
                member.state() == MemberState::Out && !member.stale.has_all(written)
            };
            let member = *self.members_where(unnoted).first()?;
            Some(format!(
                "member {member} of vdrive {} is out, and the dirty-region log lacks a region",
                self.id
            ))
        });
    }

    /// The copies of `count` blocks from `block` on, on each member that is in; `None` for a block that
    /// it cannot read.
    ///
    /// # Errors
    /// When no member can read any of it.
    pub async fn read_members(
        &self,
        block: u64,
        count: usize,
    ) -> Result<Vec<Vec<Option<DmaBuf>>>, DriveError> {
        self.check_bounds(block, count)?;
        let mut copies = Vec::new();
        let mut error = DriveError::Gone;
        for member in self.members_where(Member::is_in) {
            let part = &self.parts[member];
            let copy: Vec<_> = match part.read(block, self.dma.get(count * BLOCK)).await {
                Ok(whole) => (0..count)
                    .map(|index| Some(whole.slice(index * BLOCK, BLOCK)))
                    .collect(),
                Err(failed) => {
                    error = failed;
                    let reads = (block..block + count as u64)
                        .map(|block| part.read(block, self.dma.get(BLOCK)));
                    join_all(reads).await.into_iter().map(Result::ok).collect()
                }
            };
            copies.push(copy);
        }
        let any = copies.iter().flatten().any(Option::is_some);
        any.then_some(copies).ok_or(error)
    }

    /// Writes a good copy over every member of a mirror that is in and differs from it.
    ///
    /// # Errors
    /// As [`VdriveIo::read`].
    pub async fn read_every_member(
        &self,
        block: u64,
        check: Check<'_>,
    ) -> Result<DmaBuf, DriveError> {
        self.check_bounds(block, 1)?;
        if self.layout.is_mirror() {
            self.read_block_mending(block, 0, check).await
        } else {
            self.read(block, 1, check).await
        }
    }
}

/// Combines the results of several requests. A timeout counts more than other errors: such a
/// write may still reach the drive.
pub(crate) fn all_ended(results: impl AsRef<[Result<(), DriveError>]>) -> Result<(), DriveError> {
    let results = results.as_ref();
    let late = |result: &&Result<(), DriveError>| **result == Err(DriveError::Timeout);
    match results.iter().find(late) {
        Some(late) => *late,
        None => results.iter().copied().collect(),
    }
}

fn first_wrong(buf: &[u8], base: usize, check: Check<'_>) -> Option<usize> {
    buf.chunks_exact(BLOCK)
        .enumerate()
        .map(|(at, block)| (base + at, block))
        .find_map(|(index, block)| (!check(index, block)).then_some(index))
}

#[cfg(test)]
mod tests;
