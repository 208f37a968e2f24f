//! Places that peers share: so many in all, so many of one address, and a reserve that is left to others.
//!
//! Counts by what one owner has: an address of version 4, a /64 of version 6, and a /48 of version 6 above it. The last
//! places are only for addresses that have few, so that one which takes all that it gets keeps no newcomer away. What
//! a place stands for (a connection, a log-in, a stream) and for how long is the caller's matter. From any thread.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How places are shared.
#[derive(Clone, Copy, Debug)]
pub struct ShareLimits {
    /// Places in all.
    pub all: usize,
    /// Places of one /48 of version 6.
    pub network: usize,
    /// Places of one address of version 4, or one /64 of version 6.
    pub address: usize,
    /// So many of all of them are only for addresses that have fewer than `few`.
    pub reserve: usize,
    /// See `reserve`.
    pub few: usize,
}

/// An address as places are counted by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PeerAddress(IpAddr);

fn masked(address: IpAddr, prefix: u32) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let mask = u128::MAX << (128 - prefix);
            IpAddr::V6((address.to_bits() & mask).into())
        }
        address => address,
    }
}

impl PeerAddress {
    /// The address by which a peer is counted.
    pub fn of(address: IpAddr) -> Self {
        Self(masked(address, 64))
    }

    fn network(self) -> Option<IpAddr> {
        self.0.is_ipv6().then(|| masked(self.0, 48))
    }
}

/// Why there is no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Full {
    /// The address has as many as it may.
    Address,
    /// Its network has as many as it may.
    Network,
    /// There are none left, or only those that are reserved for addresses with few.
    All,
}

struct Counts {
    limits: ShareLimits,
    all: usize,
    addresses: BTreeMap<PeerAddress, usize>,
    networks: BTreeMap<IpAddr, usize>,
}

struct Inner {
    counts: Mutex<Counts>,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The places.
#[derive(Clone)]
pub struct Shares(Arc<Inner>);

/// A place; given back when dropped.
pub struct Share {
    shares: Shares,
    address: PeerAddress,
}

impl Shares {
    /// Places with these limits.
    pub fn new(limits: ShareLimits) -> Self {
        let counts = Mutex::new(Counts {
            limits,
            all: 0,
            addresses: BTreeMap::new(),
            networks: BTreeMap::new(),
        });
        Self(Arc::new(Inner { counts }))
    }

    /// Changes the limits, for places to come.
    pub fn limit(&self, limits: ShareLimits) {
        self.0.lock().limits = limits;
    }

    /// A place for a peer.
    ///
    /// # Errors
    /// Which limit keeps it away.
    pub fn take(&self, peer: IpAddr) -> Result<Share, Full> {
        self.take_of(peer, |limits, own| {
            let rest = if own < limits.few { 0 } else { limits.reserve };
            limits.all.saturating_sub(rest)
        })
    }

    /// A place beyond all of them, for a peer that has none, in place of one that the caller has begun to end: at most as
    /// many as are reserved.
    ///
    /// # Errors
    /// As [`Shares::take`].
    pub fn take_over(&self, peer: IpAddr) -> Result<Share, Full> {
        self.take_of(peer, |limits, own| match own {
            0 => limits.all + limits.reserve,
            _ => 0,
        })
    }

    fn take_of(
        &self,
        peer: IpAddr,
        most: impl Fn(&ShareLimits, usize) -> usize,
    ) -> Result<Share, Full> {
        let address = PeerAddress::of(peer);
        let mut counts = self.0.lock();
        let limits = counts.limits;
        let own = counts.addresses.get(&address).copied().unwrap_or(0);
        let network = address.network();
        let of_network = network.and_then(|network| counts.networks.get(&network));
        if own >= limits.address {
            return Err(Full::Address);
        }
        if of_network.is_some_and(|count| *count >= limits.network) {
            return Err(Full::Network);
        }
        if counts.all >= most(&limits, own) {
            return Err(Full::All);
        }
        counts.all += 1;
        counts.addresses.insert(address, own + 1);
        if let Some(network) = network {
            *counts.networks.entry(network).or_default() += 1;
        }
        let shares = self.clone();
        Ok(Share { shares, address })
    }

    /// Places that are taken.
    pub fn taken(&self) -> usize {
        self.0.lock().all
    }

    /// The address with most places, of several the lowest.
    pub fn largest(&self) -> Option<PeerAddress> {
        let counts = self.0.lock();
        let mut addresses = counts.addresses.iter().rev();
        let first = addresses.next()?;
        let largest = addresses.fold(
            first,
            |most, next| if next.1 >= most.1 { next } else { most },
        );
        Some(*largest.0)
    }
}

impl Share {
    /// Whose place it is.
    pub fn address(&self) -> PeerAddress {
        self.address
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut counts = self.shares.0.lock();
        counts.all -= 1;
        if let Some(count) = counts.addresses.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.addresses.remove(&self.address);
            }
        }
        let Some(network) = self.address.network() else {
            return;
        };
        if let Some(count) = counts.networks.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                counts.networks.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ShareLimits = ShareLimits {
        all: 20,
        network: 12,
        address: 10,
        reserve: 5,
        few: 2,
    };

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn take(shares: &Shares, address: &str, times: usize) -> (Vec<Share>, Option<Full>) {
        let mut taken = Vec::new();
        for _ in 0..times {
            match shares.take(ip(address)) {
                Ok(share) => taken.push(share),
                Err(full) => return (taken, Some(full)),
            }
        }
        (taken, None)
    }

    #[test]
    fn an_address_has_so_many_and_leaves_the_rest_to_others() {
        let shares = Shares::new(LIMITS);
        let (first, full) = take(&shares, "192.0.2.1", 99);
        assert_eq!((first.len(), full), (10, Some(Full::Address)));
        let (second, full) = take(&shares, "192.0.2.2", 99);
        assert_eq!(
            (second.len(), full),
            (5, Some(Full::All)),
            "the reserve is left"
        );
        let (third, full) = take(&shares, "192.0.2.3", 99);
        assert_eq!((third.len(), full), (2, Some(Full::All)));
        drop(first);
        assert_eq!(
            take(&shares, "192.0.2.1", 1).0.len(),
            1,
            "what was given back"
        );
        drop((second, third));
        assert_eq!(shares.taken(), 0);
        let counts = shares.0.lock();
        assert!(
            counts.addresses.is_empty() && counts.networks.is_empty(),
            "nothing is kept"
        );
    }

    #[test]
    fn addresses_of_version_six_count_by_what_one_owner_has() {
        let shares = Shares::new(LIMITS);
        let mut all = Vec::new();
        for host in 0..10 {
            all.extend(take(&shares, &format!("2001:db8:1:1::{host}"), 1).0);
        }
        assert_eq!(
            take(&shares, "2001:db8:1:1::ffff", 1).1,
            Some(Full::Address)
        );
        let (more, full) = take(&shares, "2001:db8:1:2::1", 9);
        assert_eq!((more.len(), full), (2, Some(Full::Network)), "the same /48");
        assert_eq!(
            take(&shares, "2001:db8:2:1::1", 1).0.len(),
            1,
            "another one"
        );
        assert_eq!(
            PeerAddress::of(ip("::ffff:192.0.2.1")),
            PeerAddress::of(ip("192.0.2.1"))
        );
        assert_ne!(
            PeerAddress::of(ip("192.0.2.1")),
            PeerAddress::of(ip("192.0.2.2"))
        );
    }

    #[test]
    fn who_has_none_takes_the_place_of_who_has_most() {
        let shares = Shares::new(LIMITS);
        let mut all = take(&shares, "192.0.2.9", 10).0;
        for host in 0..9 {
            all.extend(take(&shares, &format!("198.51.100.{host}"), 2).0);
        }
        assert_eq!(shares.taken(), 20);
        assert_eq!(take(&shares, "192.0.2.1", 1).1, Some(Full::All));
        assert_eq!(shares.largest(), Some(PeerAddress::of(ip("192.0.2.9"))));
        let Ok(beyond) = shares.take_over(ip("192.0.2.1")) else {
            panic!("it is in place of another")
        };
        assert_eq!(beyond.address(), PeerAddress::of(ip("192.0.2.1")));
        assert_eq!(
            shares.take_over(ip("192.0.2.1")).err(),
            Some(Full::All),
            "it has one"
        );
        let others: Vec<_> = (0..9)
            .filter_map(|host| shares.take_over(ip(&format!("203.0.113.{host}"))).ok())
            .collect();
        assert_eq!(others.len(), 4, "no more than are reserved");
    }
}
