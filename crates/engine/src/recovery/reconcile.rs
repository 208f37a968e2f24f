//! The books after recovery left a record out, as its data is not on the drives: the block keeps the
//! slot, or the chunk the home, that it had before. The bitmaps may be of a checkpoint that came
//! after that record, and after a flush that lied others may even have been given that space.
//!
//! Blocks that are kept are marked as used, and those that only the record named as free. Where two have a slot,
//! its content shows whose it is; the other block is lost, and gets a slot that does not hold it,
//! so that reads of it fail.

use crate::map::page::MapPage;
use crate::shard::state::{Shard, State};
use crate::space::Class;
use block::{ErrorKind, IoError};
use format::{BlockState, Record, crc32c};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use units::Place;
use units::mutation::{Mutation, is_on};

/// Bits of the filter that most places do not pass.
const FILTER: u64 = 1 << 16;

/// The owner of a slot: the index of a changed chunk, and a block of it.
type Owner = (usize, usize);

/// Owners of one slot: usually one.
type Owners = SmallVec<[Owner; 1]>;

/// Contents of records that were skipped, wholly or in part.
#[derive(Default)]
pub(crate) struct Disputed {
    /// Chunks by volume and number.
    chunks: BTreeSet<(u32, u32)>,
    /// Where the records say that blocks are.
    slots: BTreeSet<Place>,
    /// Where they say that chunks' homes are.
    homes: BTreeSet<Place>,
}

impl Disputed {
    /// Some of this record was left out.
    pub(crate) fn note(&mut self, record: &Record) {
        self.chunks.insert(record.subject());
        let mut slots = |slot: Place, count: usize| {
            let end = (1u64 << Place::BLOCK_BITS).saturating_sub(slot.block());
            let count = end.min(count as u64);
            self.slots.extend((0..count).map(|index| slot.plus(index)));
        };
        match record {
            Record::Write { slot, crcs, .. } => slots(*slot, crcs.len()),
            Record::Promote { slot, count, .. } => slots(*slot, usize::from(*count)),
            Record::Home { home, .. } | Record::MoveHome { new: home, .. } => {
                self.homes.extend(home.is_some().then_some(*home));
            }
            Record::Trim { .. } | Record::Evict { .. } | Record::Merge { .. } => {}
        }
    }

    /// A page's blocks went into the page of another layer.
    pub(crate) fn moved(&mut self, chunk: u32, upper: u32, lower: u32) {
        if self.chunks.contains(&(upper, chunk)) {
            self.chunks.insert((lower, chunk));
        }
    }

    fn has(&self, (volume, chunk, _): &Changed) -> bool {
        self.chunks.contains(&(*volume, *chunk))
    }
}

/// A chunk's page that recovery changed, with its volume and number.
type Changed = (u32, u32, Rc<MapPage>);

#[derive(Default)]
struct Claims {
    filter: Vec<u64>,
    slots: BTreeMap<Place, Owners>,
    homes: BTreeMap<Place, Vec<usize>>,
}

impl Claims {
    fn bit(place: Place) -> (usize, u64) {
        let hash = (place.block() ^ u64::from(place.vdrive().0) << 8) % FILTER;
        ((hash / 64) as usize, 1 << (hash % 64))
    }

    fn expect(&mut self, place: Place) {
        self.filter.resize(FILTER as usize / 64, 0);
        let (word, bit) = Self::bit(place);
        self.filter[word] |= bit;
        self.slots.entry(place).or_default();
    }

    fn slot(&mut self, place: Place, owner: Owner) {
        let (word, bit) = Self::bit(place);
        if self.filter.get(word).is_some_and(|word| word & bit != 0)
            && let Some(owners) = self.slots.get_mut(&place)
        {
            owners.push(owner);
        }
    }
}

impl Shard {
    /// Makes the books right about what these records name, and about what their chunks have. Every
    /// chunk that the journal names is among the changed ones, so no other chunk can have any of it.
    ///
    /// # Errors
    /// `NoSpace` when a block is lost and there is no slot to say so with.
    pub(crate) async fn keep(&self, disputed: &Disputed) -> Result<(), IoError> {
        if disputed.chunks.is_empty() || is_on(Mutation::KeptFree) {
            return Ok(());
        }
        let (map_pages, claims) = {
            let state = self.state.borrow();
            let map_pages = state.dirty_pages.waiting().to_vec();
            let claims = claims(&map_pages, disputed);
            (map_pages, claims)
        };
        for (place, owners) in &claims.homes {
            self.keep_home(&map_pages, disputed, *place, owners)?;
        }
        for (place, owners) in &claims.slots {
            let winner = match owners[..] {
                [] => None,
                [one] => Some(one),
                _ => self.right_owner(&map_pages, disputed, *place, owners).await,
            };
            let mut state = self.state.borrow_mut();
            let marked = state.alloc.replay_slots(*place, 1, winner.is_some());
            for owner in owners {
                if !marked || winner != Some(*owner) {
                    self.lose(&mut state, &map_pages[owner.0], owner.1)?;
                }
            }
        }
        Ok(())
    }

    /// Of several blocks in one slot, the one whose data is there; else one with a valid newest record.
    async fn right_owner(
        &self,
        map_pages: &[Changed],
        disputed: &Disputed,
        place: Place,
        owners: &[Owner],
    ) -> Option<Owner> {
        let crc = |owner: &Owner| map_pages[owner.0].2.page.borrow().crc(owner.1);
        let certain = |owner: &Owner| !disputed.has(&map_pages[owner.0]);
        let mut sorted = owners.to_vec();
        sorted.sort_by_key(|owner| !certain(owner));
        for owner in &sorted {
            let crc = crc(owner);
            let right = |_: usize, bytes: &[u8]| crc32c(bytes) == crc;
            if self.read_place(place, 1, &right).await.is_ok() {
                return Some(*owner);
            }
        }
        sorted.first().copied()
    }

    fn keep_home(
        &self,
        map_pages: &[Changed],
        disputed: &Disputed,
        home: Place,
        owners: &[usize],
    ) -> Result<(), IoError> {
        let mut state = self.state.borrow_mut();
        let certain = |owner: &&usize| !disputed.has(&map_pages[**owner]);
        let winner = owners.iter().find(certain).or(owners.first()).copied();
        let marked = state.alloc.replay_home(home, winner.is_some());
        for owner in owners
            .iter()
            .filter(|owner| !marked || winner != Some(**owner))
        {
            let map_page = &map_pages[*owner];
            let valid = map_page.2.page.borrow().home_mask();
            for block in valid.blocks() {
                if map_page.2.page.borrow().state(block) == BlockState::Home {
                    self.lose(&mut state, map_page, block)?;
                } else {
                    self.change(&mut state, map_page.0, &map_page.2, block, |page| {
                        page.set_home_valid(block, false);
                    });
                }
            }
            map_page.2.page.borrow_mut().set_home(Place::NONE);
        }
        Ok(())
    }

    /// The block's data is lost: it keeps its checksum, and gets a slot that holds something
    /// else.
    fn lose(
        &self,
        state: &mut State,
        (volume, chunk, map_page): &Changed,
        block: usize,
    ) -> Result<(), IoError> {
        let classes = [Class::Fast, Class::Slow];
        let mut found = classes
            .iter()
            .filter_map(|class| state.alloc.take_own_slot(*class));
        let Some(place) = found.next() else {
            let text = format!(
                "shard {}: a flushed write of volume {volume} is lost and the shard has no free \
                 block to record it in: copy the volumes out with `convect restore`",
                self.config.shard
            );
            return Err(IoError::new(ErrorKind::NoSpace, text));
        };
        self.note_opening_lost(1);
        tracing::error!(
            volume,
            chunk,
            block,
            "a block is lost: a drive lost a write that it had reported as durable, and the data \
             before it has been overwritten; rewrite or restore it"
        );
        self.change(state, *volume, map_page, block, |page| {
            page.set_slot(block, place);
            page.set_home_valid(block, false);
        });
        Ok(())
    }
}

/// Owners of the slots and homes of the kept chunks.
fn claims(map_pages: &[Changed], disputed: &Disputed) -> Claims {
    let mut claims = Claims::default();
    disputed.slots.iter().for_each(|slot| claims.expect(*slot));
    let homes = disputed.homes.iter().map(|home| (*home, Vec::new()));
    claims.homes.extend(homes);
    for map_page in map_pages.iter().filter(|map_page| disputed.has(map_page)) {
        let page = map_page.2.page.borrow();
        page.slot_mask()
            .blocks()
            .for_each(|block| claims.expect(page.slot(block)));
        if page.home().is_some() {
            claims.homes.entry(page.home()).or_default();
        }
    }
    for (index, (_, _, map_page)) in map_pages.iter().enumerate() {
        let page = map_page.page.borrow();
        for block in page.slot_mask().blocks() {
            claims.slot(page.slot(block), (index, block));
        }
        if let Some(owners) = claims.homes.get_mut(&page.home()) {
            owners.push(index);
        }
    }
    claims
}

#[cfg(test)]
mod tests;
