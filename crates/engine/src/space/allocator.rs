//! A shard's own groups: bitmaps of blocks (slots) and of chunks (homes).

mod checkpoint;
mod sparse;

pub use checkpoint::NO_PAGE;

use super::Batch;
use super::group_map::ByGroup;
use super::group_table::{Class, GroupTable, Spaces, VdriveSpace};
use format::{Bounds, GroupKey};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use units::mutation::{Mutation, is_on};
use units::{CHUNK_BLOCKS, Place, VdriveId};

pub(super) const WORDS: usize = 256;

/// Consecutive blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// First.
    pub place: Place,
    /// Number, at least one.
    pub count: usize,
}

/// Part of a run, within one group.
struct RunPiece {
    key: GroupKey,
    class: Class,
    bit: u32,
    count: u32,
}

pub(super) struct SlotGroup {
    pub bits: Box<[u64; WORDS]>,
    pub used: u32,
    dirty: bool,
    /// Checkpoint during which it was last changed.
    touched: u64,
}

impl SlotGroup {
    fn note_change(&mut self, key: GroupKey, dirty: &mut BTreeSet<GroupKey>) {
        if !std::mem::replace(&mut self.dirty, true) {
            dirty.insert(key);
        }
    }
}

pub(super) struct HomeGroup {
    pub bits: u64,
    touched: u64,
}

#[derive(Clone, Copy, Default)]
struct Cursor {
    group: Option<GroupKey>,
    bit: u32,
}

/// Slots, or a home, handed out whose record is not written yet.
#[derive(Clone, Copy)]
pub(super) struct Pending {
    /// Slots; none for a home.
    pub count: u32,
    /// Bitmaps of slots that had been encoded then.
    encoded: u64,
}

/// A shard's space.
pub struct Allocator {
    table: Arc<GroupTable>,
    spaces: Spaces,
    pub(super) group_blocks: u64,
    /// Shards of the pool.
    shards: u64,
    pub(super) slots: ByGroup<SlotGroup>,
    /// How many of them are of the metadata region: every write asks for it.
    pub(super) meta_groups: u64,
    pub(super) homes: BTreeMap<GroupKey, HomeGroup>,
    /// Groups of slots that changed since their bitmaps were last encoded.
    dirty_slots: BTreeSet<GroupKey>,
    dirty_homes: BTreeSet<u32>,
    cursors: [Cursor; 3],
    home_cursor: Option<GroupKey>,
    /// Slots handed out whose record is not written yet.
    pub(super) pending: BTreeMap<Place, Pending>,
    /// Bitmaps of slots that were encoded.
    encoded: u64,
    /// Number of the checkpoint to come.
    checkpoint: u64,
    pub(super) free: [u64; 3],
    /// Groups that are being emptied: they give nothing.
    closed: BTreeSet<GroupKey>,
}

impl Bounds for Allocator {
    fn space_of(&self, vdrive: VdriveId) -> Option<VdriveSpace> {
        self.spaces.get(vdrive)
    }

    fn blocks_of_group(&self) -> u64 {
        self.group_blocks
    }
}

impl Allocator {
    /// The allocator of one of a number of shards, without groups. `group_blocks`: blocks of a group.
    pub fn new(table: Arc<GroupTable>, group_blocks: u64, shards: u64) -> Self {
        Self {
            spaces: Spaces::new(table.clone()),
            table,
            group_blocks,
            shards,
            slots: ByGroup::default(),
            meta_groups: 0,
            homes: BTreeMap::new(),
            dirty_slots: BTreeSet::new(),
            dirty_homes: BTreeSet::new(),
            cursors: [Cursor::default(); 3],
            home_cursor: None,
            pending: BTreeMap::new(),
            encoded: 0,
            checkpoint: 0,
            free: [0; 3],
            closed: BTreeSet::new(),
        }
    }

    /// Forgets what is known of a vdrive that left the pool.
    pub fn forget_vdrive(&self, vdrive: VdriveId) {
        self.spaces.forget(vdrive);
    }

    pub(super) fn class(&self, vdrive: VdriveId) -> Option<Class> {
        self.spaces.get(vdrive).map(|space| space.class)
    }

    pub(super) fn key(&self, place: Place) -> Option<(GroupKey, u32)> {
        let space = self.spaces.get(place.vdrive())?;
        let block = place.block().checked_sub(space.base)?;
        let group = block / self.group_blocks;
        (group < u64::from(space.groups)).then(|| {
            (
                GroupKey::new(place.vdrive(), group as u32),
                (block % self.group_blocks) as u32,
            )
        })
    }

    fn place(&self, key: GroupKey, bit: u32) -> Place {
        let base = self.spaces.get(key.vdrive()).map_or(0, |space| space.base);
        Place::new(
            key.vdrive(),
            base + u64::from(key.group()) * self.group_blocks + u64::from(bit),
        )
    }

    /// Free slots of a class in the shard's own groups and in groups that it could take.
    pub fn free_slots(&self, class: Class) -> u64 {
        self.free[class as usize] + u64::from(self.table.free_groups(class)) * self.group_blocks
    }

    /// As [`Allocator::free_slots`], or those of the shard's own groups if they are `enough`: the table, which all shards
    /// share, is asked only when it matters.
    pub fn free_slots_or(&self, class: Class, enough: u64) -> u64 {
        match self.free[class as usize] {
            own if own >= enough => own,
            _ => self.free_slots(class),
        }
    }

    /// Whether a group's worth of slots remains for the volumes' data after taking a number.
    pub fn leaves_a_group(&self, count: u64) -> bool {
        let own = self.free[Class::Fast as usize] + self.free[Class::Slow as usize];
        let needed = count + self.group_blocks;
        // The table is asked only when it matters.
        own >= needed || {
            let groups = [Class::Fast, Class::Slow].map(|class| self.table.free_groups(class));
            own + u64::from(groups[0] + groups[1]) * self.group_blocks >= needed
        }
    }

    /// Whether at least `wanted` pages are free in the metadata region: in the shard's own groups, and
    /// in free ones up to the shard's share of all.
    pub fn has_pages(&self, wanted: u64) -> bool {
        let own = self.free[Class::Meta as usize];
        own >= wanted || own + self.pages_to_take() >= wanted
    }

    fn pages_to_take(&self) -> u64 {
        let share = (self.page_groups() / self.shards).saturating_sub(self.meta_groups);
        share.min(u64::from(self.table.free_groups(Class::Meta))) * self.group_blocks
    }

    fn page_groups(&self) -> u64 {
        let space = self.spaces.get(VdriveId(0));
        space.map_or(0, |space| u64::from(space.groups))
    }

    /// A shard's share of the metadata region in pages.
    pub fn page_share(&self) -> u64 {
        self.page_groups() / self.shards * self.group_blocks
    }

    /// Pages of bitmaps that the next checkpoint writes again.
    pub fn dirty_pages(&self) -> usize {
        self.dirty_slots.len() + self.dirty_homes.len()
    }

    /// Slots in use (or kept back) on a vdrive, in blocks.
    pub fn used_slots(&self, vdrive: VdriveId) -> u64 {
        let groups = self.slots.of(vdrive);
        groups.map(|(_, group)| u64::from(group.used)).sum()
    }

    /// Homes in use on a vdrive, in chunks.
    pub fn used_homes(&self, vdrive: VdriveId) -> u64 {
        let range = GroupKey::new(vdrive, 0)..=GroupKey::new(vdrive, 0x00ff_ffff);
        self.homes
            .range(range)
            .map(|(_, group)| u64::from(group.bits.count_ones()))
            .sum()
    }

    /// Takes up to `want` slots of `class`, in few runs. Returns how many were found.
    pub fn take_slots(&mut self, class: Class, want: usize, runs: &mut Vec<Run>) -> usize {
        let before = runs.len();
        let found = self.take_slots_at_once(class, want, runs);
        if class != Class::Meta {
            for run in &runs[before..] {
                let pending = self.pending_now(run.count as u32);
                self.pending.insert(run.place, pending);
            }
        }
        found
    }

    /// As [`Allocator::take_slots`], for who writes their record, or gives them back, before anything else happens in the
    /// shard: no checkpoint comes in between that would have to know of them.
    pub fn take_slots_at_once(&mut self, class: Class, want: usize, runs: &mut Vec<Run>) -> usize {
        let mut found = 0;
        while found < want {
            let cursor = self.cursors[class as usize];
            let Some(key) = cursor.group else {
                if !self.next_group(class) {
                    break;
                }
                continue;
            };
            let group = self.slots.get_mut(key).expect("the cursor's group");
            let run = free_run(
                &group.bits,
                cursor.bit,
                self.group_blocks as u32,
                want - found,
            );
            let Some((bit, count)) = run else {
                self.cursors[class as usize].group = None;
                continue;
            };
            set_bits(&mut group.bits, bit, count, true);
            group.used += count;
            group.note_change(key, &mut self.dirty_slots);
            group.touched = self.checkpoint;
            self.free[class as usize] -= u64::from(count);
            self.cursors[class as usize].bit = bit + count;
            runs.push(Run {
                place: self.place(key, bit),
                count: count as usize,
            });
            found += count as usize;
        }
        found
    }

    fn pending_now(&self, count: u32) -> Pending {
        let encoded = self.encoded;
        Pending { count, encoded }
    }

    /// Where [`Allocator::take_slots`] continues, if it has a group.
    pub fn next_slots_on(&self, class: Class) -> Option<VdriveId> {
        let group = self.cursors[class as usize].group;
        group.map(|key| key.vdrive())
    }

    /// Takes a free slot of `class` in a group that is the shard's already: other shards' journals,
    /// not replayed yet, may name groups that look free.
    pub fn take_own_slot(&mut self, class: Class) -> Option<Place> {
        let own = |(key, group): (GroupKey, &SlotGroup)| {
            let usable =
                self.class(key.vdrive()) == Some(class) && self.table.is_open(key.vdrive());
            let run = free_run(&group.bits, 0, self.group_blocks as u32, 1);
            usable.then_some((key, run?.0))
        };
        let (key, bit) = self.slots.iter().find_map(own)?;
        let place = self.place(key, bit);
        self.replay_slots(place, 1, true).then_some(place)
    }

    /// Moves the cursor of a class to a group with space: one of the shard's that is mostly free,
    /// else a new one, else any.
    fn next_group(&mut self, class: Class) -> bool {
        let all = self.group_blocks as u32;
        let best = self
            .slots
            .iter()
            .filter(|(key, group)| {
                group.used < all
                    && !self.closed.contains(key)
                    && self.class(key.vdrive()) == Some(class)
                    && self.table.is_open(key.vdrive())
            })
            .min_by_key(|(key, group)| (group.used, *key))
            .map(|(key, group)| (key, group.used));
        let mostly_free = best.filter(|(_, used)| *used <= all / 2);
        // Beyond its share of the metadata region it takes none as long as it has a page, nor to empty others.
        let has_share =
            class == Class::Meta && self.meta_groups >= self.page_groups() / self.shards;
        let stays = has_share || !self.closed.is_empty();
        let key = match (mostly_free, best) {
            (Some((key, _)), _) => key,
            (None, Some((key, _))) if stays => key,
            _ => match (self.table.take(class), best) {
                (Some((vdrive, group)), _) => self.add_slots(GroupKey::new(vdrive, group), class),
                (None, Some((key, _))) => key,
                (None, None) => return false,
            },
        };
        self.cursors[class as usize] = Cursor {
            group: Some(key),
            bit: 0,
        };
        true
    }

    fn add_slots(&mut self, key: GroupKey, class: Class) -> GroupKey {
        let group = SlotGroup {
            bits: Box::new([0; WORDS]),
            used: 0,
            dirty: true,
            touched: self.checkpoint,
        };
        self.insert_slots(key, group);
        self.dirty_slots.insert(key);
        self.free[class as usize] += self.group_blocks;
        key
    }

    fn insert_slots(&mut self, key: GroupKey, group: SlotGroup) {
        let replaced = self.slots.insert(key, group);
        self.meta_groups += u64::from(replaced.is_none() && key.vdrive() == VdriveId(0));
    }

    fn remove_slots(&mut self, key: GroupKey) {
        let removed = self.slots.remove(key);
        self.meta_groups -= u64::from(removed.is_some() && key.vdrive() == VdriveId(0));
    }

    /// The record of slots that were taken is written (or they were given back).
    ///
    /// A checkpoint in between wrote the bitmap without them: the next one has to write it again.
    #[inline]
    pub fn recorded(&mut self, place: Place) {
        // Contiguous writes, the usual case, leave nothing pending.
        if self.pending.is_empty() {
            return;
        }
        let Some(pending) = self.pending.remove(&place) else {
            return;
        };
        if is_on(Mutation::PendingForgotten) {
            return;
        }
        match pending.count {
            0 => self.touch_home(place),
            _ if pending.encoded == self.encoded => {}
            _ => self.touch(place),
        }
    }

    /// Frees slots immediately: they were taken and never used.
    pub fn give_back(&mut self, run: Run) {
        self.recorded(run.place);
        self.free_slots_now(run.place, run.count as u32);
    }

    /// Takes a free 1 MiB home on the slow tier.
    pub fn take_home(&mut self) -> Option<Place> {
        let full = u64::MAX >> (64 - self.group_homes());
        let usable = |(key, group): (&GroupKey, &HomeGroup)| {
            (group.bits != full && !self.closed.contains(key) && self.table.is_open(key.vdrive()))
                .then_some(*key)
        };
        let current = self
            .home_cursor
            .and_then(|key| self.homes.get_key_value(&key))
            .and_then(usable);
        let key = match current.or_else(|| self.homes.iter().find_map(usable)) {
            Some(key) => key,
            None => {
                let (vdrive, group) = self.table.take(Class::Slow)?;
                let key = GroupKey::new(vdrive, group);
                self.homes.insert(
                    key,
                    HomeGroup {
                        bits: 0,
                        touched: self.checkpoint,
                    },
                );
                key
            }
        };
        self.home_cursor = Some(key);
        let group = self.homes.get_mut(&key).expect("chosen above");
        let bit = (!group.bits).trailing_zeros();
        group.bits |= 1 << bit;
        group.touched = self.checkpoint;
        self.dirty_homes.insert(key.homes_page());
        let place = self.place(key, bit * CHUNK_BLOCKS as u32);
        self.pending.insert(place, self.pending_now(0));
        Some(place)
    }

    /// Frees a home immediately.
    pub fn give_home(&mut self, place: Place) {
        self.recorded(place);
        self.set_home(place, false);
    }

    fn set_home(&mut self, place: Place, used: bool) -> bool {
        let Some((key, block)) = self.key(place) else {
            return false;
        };
        if !self.homes.contains_key(&key) {
            if !used || !self.table.claim(key.vdrive(), key.group()) {
                return !used;
            }
            self.homes.insert(
                key,
                HomeGroup {
                    bits: 0,
                    touched: self.checkpoint,
                },
            );
        }
        let group = self.homes.get_mut(&key).expect("there by now");
        let bit = 1u64 << (block / CHUNK_BLOCKS as u32);
        if used {
            group.bits |= bit;
        } else {
            group.bits &= !bit;
        }
        group.touched = self.checkpoint;
        self.dirty_homes.insert(key.homes_page());
        true
    }

    fn free_slots_now(&mut self, place: Place, count: u32) {
        for piece in self.pieces(place, count) {
            let Some(group) = self.slots.get_mut(piece.key) else {
                continue;
            };
            let freed = set_bits(&mut group.bits, piece.bit, piece.count, false);
            group.used -= freed;
            group.note_change(piece.key, &mut self.dirty_slots);
            group.touched = self.checkpoint;
            self.free[piece.class as usize] += u64::from(freed);
        }
    }

    /// A run cut where groups end.
    fn pieces(&self, place: Place, count: u32) -> impl Iterator<Item = RunPiece> + use<> {
        let (group_blocks, mut left) = (self.group_blocks, u64::from(count));
        let space = self.spaces.get(place.vdrive());
        let from = space.and_then(|space| place.block().checked_sub(space.base));
        let mut from = from.unwrap_or(u64::MAX);
        std::iter::from_fn(move || {
            let space = space?;
            let (group, bit) = (from / group_blocks, from % group_blocks);
            if left == 0 || group >= u64::from(space.groups) {
                return None;
            }
            let count = left.min(group_blocks - bit);
            left -= count;
            from += count;
            Some(RunPiece {
                key: GroupKey::new(place.vdrive(), group as u32),
                class: space.class,
                bit: bit as u32,
                count: count as u32,
            })
        })
    }

    /// Completes deferred frees that are no longer needed.
    pub fn release(&mut self, batch: &Batch) {
        batch
            .slots
            .iter()
            .for_each(|(place, count)| self.free_slots_now(*place, *count));
        for home in &batch.homes {
            self.set_home(*home, false);
        }
    }

    /// Sets slots as a journal says, at recovery. False when they are nowhere or in a group of
    /// another shard.
    pub fn replay_slots(&mut self, place: Place, count: u32, used: bool) -> bool {
        if !used {
            self.free_slots_now(place, count);
            return true;
        }
        let mut left = count;
        for piece in self.pieces(place, count) {
            let key = piece.key;
            if self.slots.get(key).is_none() {
                if !self.table.claim(key.vdrive(), key.group()) {
                    return false;
                }
                self.add_slots(key, piece.class);
            }
            let group = self.slots.get_mut(key).expect("there by now");
            let taken = set_bits(&mut group.bits, piece.bit, piece.count, true);
            group.used += taken;
            group.note_change(key, &mut self.dirty_slots);
            group.touched = self.checkpoint;
            self.free[piece.class as usize] -= u64::from(taken);
            left -= piece.count;
        }
        left == 0
    }

    /// Sets a home as a journal says, at recovery. False as in [`Allocator::replay_slots`].
    pub fn replay_home(&mut self, place: Place, used: bool) -> bool {
        self.set_home(place, used)
    }

    /// The shard's groups on a vdrive, with their first blocks.
    pub fn groups_of(&self, vdrive: VdriveId) -> Vec<(GroupKey, u64)> {
        let range = GroupKey::new(vdrive, 0)..=GroupKey::new(vdrive, 0x00ff_ffff);
        let slots = self.slots.of(vdrive).map(|(key, _)| key);
        let homes = self.homes.range(range).map(|(key, _)| *key);
        let mut keys: Vec<_> = slots
            .chain(homes)
            .map(|key| (key, self.place(key, 0).block()))
            .collect();
        keys.sort();
        keys
    }

    /// The space in use in a group: in each chunk's length, from the first such block to the last.
    pub fn used_runs(&self, key: GroupKey) -> Vec<Run> {
        let chunk = CHUNK_BLOCKS as u32;
        let homes = self.homes.get(&key).map_or(0, |group| group.bits);
        let run = |index: u32| {
            let all = (homes >> index & 1 == 1).then_some((0, chunk));
            let part = || {
                let words = &self.slots.get(key)?.bits;
                used_part(words.chunks(CHUNK_BLOCKS / 64).nth(index as usize)?)
            };
            let (first, count) = all.or_else(part)?;
            Some(Run {
                place: self.place(key, index * chunk + first),
                count: count as usize,
            })
        };
        let chunks = self.group_blocks as u32 / chunk;
        (0..chunks).filter_map(run).collect()
    }

    /// Marks the bitmap page of this home as changed: the home is being freed.
    pub fn touch_home(&mut self, place: Place) {
        if let Some((key, _)) = self.key(place) {
            self.dirty_homes.insert(key.homes_page());
        }
    }

    /// Marks the group of a slot as changed: it is being freed.
    pub fn touch(&mut self, place: Place) {
        if let Some((key, _)) = self.key(place) {
            self.renew_slots(key);
        }
    }

    /// Has a group's bitmap of slots written again.
    pub fn renew_slots(&mut self, key: GroupKey) {
        if let Some(group) = self.slots.get_mut(key) {
            group.note_change(key, &mut self.dirty_slots);
        }
    }

    /// Has a page of bitmaps of homes written again.
    pub fn renew_homes(&mut self, page: u32) {
        self.dirty_homes.insert(page);
    }

    /// Memory of the bitmaps in bytes.
    pub fn bytes(&self) -> usize {
        self.slots.len() * (WORDS * 8 + 64) + self.homes.len() * 64
    }
}

/// Sets or clears bits; returns how many of them were otherwise.
fn set_bits(bits: &mut [u64; WORDS], first: u32, count: u32, used: bool) -> u32 {
    let mut changed = 0;
    let short = u32::from(used && count > 1 && is_on(Mutation::BitmapEnd));
    let (mut bit, end) = (first as usize, (first + count - short) as usize);
    while bit < end {
        let (word, shift) = (bit / 64, bit % 64);
        let take = (64 - shift).min(end - bit);
        let mask = if take == 64 {
            u64::MAX
        } else {
            ((1 << take) - 1) << shift
        };
        let before = bits[word];
        if used {
            bits[word] |= mask;
        } else {
            bits[word] &= !mask;
        }
        changed += (before ^ bits[word]).count_ones();
        bit += take;
    }
    changed
}

/// First set bit, and the number up to the last.
fn used_part(words: &[u64]) -> Option<(u32, u32)> {
    let first = words.iter().position(|word| *word != 0)?;
    let last = words.iter().rposition(|word| *word != 0)?;
    let low = first as u32 * 64 + words[first].trailing_zeros();
    let high = last as u32 * 64 + 64 - words[last].leading_zeros();
    Some((low, high - low))
}

/// The first run of clear bits from `from` on, at most `want` of them.
fn free_run(bits: &[u64; WORDS], from: u32, end: u32, want: usize) -> Option<(u32, u32)> {
    let mut bit = from;
    while bit < end {
        let word = bits[bit as usize / 64] >> (bit % 64);
        if word == u64::MAX >> (bit % 64) {
            bit = (bit / 64 + 1) * 64;
            continue;
        }
        bit += word.trailing_ones();
        let mut count = 0;
        while count < want as u32
            && bit + count < end
            && bits[(bit + count) as usize / 64] >> ((bit + count) % 64) & 1 == 0
        {
            count += 1;
        }
        return (count > 0).then_some((bit, count));
    }
    None
}

#[cfg(test)]
mod tests;
