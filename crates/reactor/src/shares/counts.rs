//! How many places each origin holds, and how many it may.

use super::Origin;
use std::collections::BTreeMap;

/// How places are shared.
#[derive(Clone, Copy, Debug)]
pub struct ShareLimits {
    /// Places in all.
    pub all: usize,
    /// Places of one /48 of version 6.
    pub network: usize,
    /// Places of one address of version 4, one /64 of version 6, or one user.
    pub address: usize,
    /// So many of all of them are only for a better claim: for addresses that have fewer than `few`, or, where peers
    /// can prove who they are, for those that did.
    pub reserve: usize,
    /// See `reserve`.
    pub few: usize,
}

/// Why there is no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Full {
    /// The address has as many as it may.
    Address,
    /// Its network has as many as it may.
    Network,
    /// There are none left, or only those that are reserved.
    All,
}

/// Places that are held, by origin and by network.
#[derive(Default, Debug)]
pub struct OriginCounts {
    all: usize,
    origins: BTreeMap<Origin, usize>,
    networks: BTreeMap<u64, usize>,
}

fn decrement<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

impl OriginCounts {
    /// Places that are held.
    pub fn all(&self) -> usize {
        self.all
    }

    /// Places that an origin holds.
    pub fn of(&self, origin: Origin) -> usize {
        self.origins.get(&origin).copied().unwrap_or(0)
    }

    fn of_network(&self, origin: Origin) -> usize {
        let network = origin.network();
        let count = network.and_then(|network| self.networks.get(&network));
        count.copied().unwrap_or(0)
    }

    /// Which limit keeps one more of an origin away, where there may be `all` in all; none: it has a place.
    pub fn full(&self, origin: Origin, limits: &ShareLimits, all: usize) -> Option<Full> {
        if self.of(origin) >= limits.address {
            return Some(Full::Address);
        }
        if self.of_network(origin) >= limits.network {
            return Some(Full::Network);
        }
        (self.all >= all).then_some(Full::All)
    }

    /// One more of an origin.
    pub fn add(&mut self, origin: Origin) {
        self.all += 1;
        *self.origins.entry(origin).or_default() += 1;
        if let Some(network) = origin.network() {
            *self.networks.entry(network).or_default() += 1;
        }
    }

    /// One less of an origin, which holds one.
    pub fn remove(&mut self, origin: Origin) {
        self.all -= 1;
        decrement(&mut self.origins, origin);
        if let Some(network) = origin.network() {
            decrement(&mut self.networks, network);
        }
    }

    /// The origin that holds most places, of several the lowest.
    pub fn largest(&self) -> Option<Origin> {
        let mut origins = self.origins.iter().rev();
        let first = origins.next()?;
        let largest = origins.fold(
            first,
            |most, next| if next.1 >= most.1 { next } else { most },
        );
        Some(*largest.0)
    }

    /// The origins that hold places, in order.
    pub fn origins(&self) -> impl Iterator<Item = Origin> {
        self.origins.keys().copied()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.all == 0 && self.origins.is_empty() && self.networks.is_empty()
    }
}
