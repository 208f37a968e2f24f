//! Places that peers share: so many in all, so many of one address, and a reserve that is left to others.
//!
//! The last places are only for addresses that have few, so that one which takes all that it gets keeps no newcomer
//! away. What a place stands for (a connection, a login, a stream) and for how long is the caller's matter. From any
//! thread.

use super::{Full, Origin, OriginCounts, ShareLimits};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

struct Taken {
    limits: ShareLimits,
    counts: OriginCounts,
}

struct Inner(Mutex<Taken>);

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The places.
#[derive(Clone)]
pub struct Shares(Arc<Inner>);

/// A place; given back when dropped.
pub struct Share {
    shares: Shares,
    origin: Origin,
}

impl Shares {
    /// Places with these limits.
    pub fn new(limits: ShareLimits) -> Self {
        let counts = OriginCounts::default();
        Self(Arc::new(Inner(Mutex::new(Taken { limits, counts }))))
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
        let origin = Origin::of(peer);
        let mut taken = self.0.lock();
        let Taken { limits, counts } = &mut *taken;
        let most = most(limits, counts.of(origin));
        match counts.full(origin, limits, most) {
            Some(full) => Err(full),
            None => {
                counts.add(origin);
                let shares = self.clone();
                Ok(Share { shares, origin })
            }
        }
    }

    /// Places that are taken.
    pub fn taken(&self) -> usize {
        self.0.lock().counts.all()
    }

    /// The origins that hold places, in order.
    pub fn origins(&self) -> Vec<Origin> {
        self.0.lock().counts.origins().collect()
    }

    /// The address with most places, of several the lowest.
    pub fn largest(&self) -> Option<Origin> {
        self.0.lock().counts.largest()
    }
}

impl Share {
    /// Whose place it is.
    pub fn address(&self) -> Origin {
        self.origin
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shares.0.lock().counts.remove(self.origin);
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
        assert!(shares.0.lock().counts.is_empty(), "nothing is kept");
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
            Origin::of(ip("::ffff:192.0.2.1")),
            Origin::of(ip("192.0.2.1"))
        );
        assert_ne!(Origin::of(ip("192.0.2.1")), Origin::of(ip("192.0.2.2")));
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
        assert_eq!(shares.largest(), Some(Origin::of(ip("192.0.2.9"))));
        let Ok(beyond) = shares.take_over(ip("192.0.2.1")) else {
            panic!("it is in place of another")
        };
        assert_eq!(beyond.address(), Origin::of(ip("192.0.2.1")));
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
