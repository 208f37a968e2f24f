//! A disk that hosts wait for, RAM and a fast tier above it: what comes of fetching by regions in the long run.

use super::super::*;
use crate::hash::Random;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Requests outstanding, each for a random extent of the hot set.
const DEPTH: usize = 256;
/// What a hit takes a host, a seek a disk that sorts, and an extent.
const HIT: f64 = 8e-6;
const SEEK: f64 = 4e-3;
const TRANSFER: f64 = EXTENT as f64 / 150e6;
/// Pieces that wait to be fetched ahead, at most.
const WAITING_MOST: usize = 1024;
/// Extents of a GiB.
pub(super) const GIB: usize = 16_384;

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Disk,
    /// On its way, ahead of being requested.
    Coming,
    Ram,
    /// On the fast tier; not requested yet.
    Unasked,
    Fast,
}

/// An extent in RAM.
struct Cached {
    touched: bool,
    dense: bool,
    ahead: bool,
    fresh: bool,
    second_chance: bool,
}

pub(super) struct Disk {
    pub regions: Regions,
    at: Vec<At>,
    ram: BTreeMap<usize, Cached>,
    /// Extents in RAM in the order of eviction.
    order: VecDeque<usize>,
    ram_most: usize,
    fast: VecDeque<usize>,
    fast_most: usize,
    fresh: Fresh,
    /// Requests that wait, by extent.
    waiting: BTreeMap<usize, usize>,
    /// Extents of them that are read for themselves.
    alone: BTreeSet<usize>,
    /// Pieces that are fetched ahead: first extent and number.
    pieces: VecDeque<(usize, usize)>,
    idle: usize,
    head: usize,
    turns: usize,
    now: f64,
    random: Random,
    /// Extents that were fetched ahead.
    pub ahead: usize,
}

impl Disk {
    /// With so many extents on the disk, in RAM and on the fast tier at most.
    pub fn new(all: usize, ram_most: usize, fast_most: usize) -> Self {
        Self {
            regions: Regions::new((fast_most * EXTENT_BLOCKS) as u64),
            at: vec![At::Disk; all],
            ram: BTreeMap::new(),
            order: VecDeque::new(),
            ram_most,
            fast: VecDeque::new(),
            fast_most,
            fresh: Fresh::default(),
            waiting: BTreeMap::new(),
            alone: BTreeSet::new(),
            pieces: VecDeque::new(),
            idle: DEPTH,
            head: 0,
            turns: 0,
            now: 0.0,
            random: Random::new(5),
            ahead: 0,
        }
    }

    /// Hosts read these extents at random until two thousand requests in a row wait for nothing, or so many seconds have
    /// passed; how many did.
    pub fn read(&mut self, hot: &[usize], limit: f64) -> f64 {
        let began = self.now;
        let mut hits = 0;
        while self.now - began < limit && hits < 2_000 {
            // The disk ends something at least so often.
            for _ in 0..DEPTH {
                if self.idle == 0 {
                    break;
                }
                let extent = hot[self.random.below(hot.len())];
                hits = if self.ask(extent) { hits + 1 } else { 0 };
            }
            self.serve();
        }
        self.now - began
    }

    /// A host requests an extent; true when it is there.
    fn ask(&mut self, extent: usize) -> bool {
        self.regions.seen();
        match self.at[extent] {
            At::Fast => {}
            At::Unasked => {
                self.at[extent] = At::Fast;
                self.regions.saved();
            }
            At::Ram => self.use_cached(extent),
            at => {
                (self.regions).missed(1, (extent / 16) as u32, extent % 16);
                *self.waiting.entry(extent).or_default() += 1;
                if at == At::Disk {
                    self.alone.insert(extent);
                }
                self.idle -= 1;
                return false;
            }
        }
        self.now += HIT;
        true
    }

    fn use_cached(&mut self, extent: usize) {
        let cached = self.ram.get_mut(&extent).expect("in RAM");
        (cached.touched, cached.second_chance) = (true, true);
        if std::mem::take(&mut cached.fresh) {
            let (ahead, before) = (cached.ahead, self.fresh);
            self.less_fresh(ahead);
            self.regions.used(ahead, before);
        }
    }

    fn less_fresh(&mut self, ahead: bool) {
        match ahead {
            true => self.fresh.ahead -= 1,
            false => self.fresh.asked -= 1,
        }
    }

    /// The disk reads something that waits: by turns what is requested, upwards, and what is fetched ahead.
    fn serve(&mut self) {
        self.turns += 1;
        let asked = self.alone.range(self.head..).next();
        let asked = asked.or(self.alone.first()).copied();
        match (asked, self.pieces.front().copied()) {
            (asked, Some((first, count))) if asked.is_none() || self.turns.is_multiple_of(2) => {
                self.pieces.pop_front();
                self.read_piece(first, count);
            }
            (Some(extent), _) => self.read_asked(extent),
            _ => {}
        }
    }

    fn read_piece(&mut self, first: usize, count: usize) {
        let goes_on = self.regions.goes_on();
        if goes_on {
            self.transfer(first, count);
        }
        for extent in first..first + count {
            if goes_on {
                self.came(extent, true, true);
            } else {
                self.at[extent] = At::Disk;
                if self.waiting.contains_key(&extent) {
                    self.alone.insert(extent);
                }
            }
        }
    }

    fn read_asked(&mut self, extent: usize) {
        let fetches = (self.regions).fetch(1, (extent / 16) as u32, extent % 16);
        let dense = fetches
            .iter()
            .map(|it| it.extents.count_ones())
            .sum::<u32>()
            > 1;
        let mut own = vec![extent];
        for fetch in fetches {
            let chunk = fetch.chunk as usize * 16;
            let wanted = (chunk..chunk + 16).filter(|it| fetch.extents >> (it % 16) & 1 == 1);
            let absent = wanted.filter(|it| *it != extent && self.at.get(*it) == Some(&At::Disk));
            let absent: Vec<usize> = absent.collect();
            if chunk == extent / 16 * 16 {
                own.extend(absent);
            } else if self.pieces.len() < WAITING_MOST {
                for part in absent.chunk_by(|one, next| one + 1 == *next) {
                    self.pieces.push_back((part[0], part.len()));
                    part.iter().for_each(|it| self.at[*it] = At::Coming);
                    self.alone.retain(|it| !part.contains(it));
                }
            }
        }
        own.sort_unstable();
        self.transfer(own[0], own.len());
        for it in own {
            self.alone.remove(&it);
            self.came(it, it != extent, dense);
        }
    }

    fn transfer(&mut self, first: usize, count: usize) {
        if first != self.head {
            self.now += SEEK;
        }
        self.now += count as f64 * TRANSFER;
        self.head = first + count;
    }

    /// An extent has come to RAM, and who waits for it is answered.
    fn came(&mut self, extent: usize, ahead: bool, dense: bool) {
        if ahead {
            self.ahead += 1;
            self.regions.fetched(1);
        }
        let waited = self.waiting.remove(&extent);
        self.idle += waited.unwrap_or(0);
        if ahead && waited.is_some() {
            self.regions.saved();
        }
        if self.order.len() == self.ram_most {
            self.make_room();
        }
        let asked = !ahead || waited.is_some();
        match asked {
            true => self.fresh.asked += 1,
            false => self.fresh.ahead += 1,
        }
        self.at[extent] = At::Ram;
        let cached = Cached {
            touched: asked,
            dense,
            ahead: !asked,
            fresh: true,
            second_chance: asked,
        };
        self.ram.insert(extent, cached);
        self.order.push_back(extent);
    }

    /// An extent leaves RAM, for the fast tier or for nothing.
    fn make_room(&mut self) {
        while let Some(extent) = self.order.pop_front() {
            let left = self.ram.get_mut(&extent).expect("in RAM");
            if std::mem::take(&mut left.second_chance) {
                self.order.push_back(extent);
                continue;
            }
            let Some(left) = self.ram.remove(&extent) else {
                return;
            };
            if left.fresh {
                self.less_fresh(left.ahead);
            }
            let is_full = self.fast.len() == self.fast_most;
            self.regions.tier_is_full(is_full);
            self.at[extent] = match left.touched {
                true => At::Fast,
                false if left.dense && self.regions.is_sound() => At::Unasked,
                false => At::Disk,
            };
            if self.at[extent] == At::Disk {
                return;
            }
            if is_full && let Some(victim) = self.fast.pop_front() {
                self.at[victim] = At::Disk;
            }
            self.fast.push_back(extent);
            return;
        }
    }
}
