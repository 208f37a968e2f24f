//! Shares of connections: what is limited is divided by who holds it, so that nobody can hold all of it.
//!
//! Each connection has an origin: a user of this host, or an address (of IPv6 the first 64 bits, as a host has all that
//! follow, and together with others those of its first 48). It is *proven* once it showed a good credential, and *busy*
//! while a request of it is answered. Where there is no room for one more, another one ends: the one that was used least
//! recently of the origin that holds most, of those that are not proven first, then of those that are idle. So whoever
//! opens very many connections ends their own.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::Notify;

/// How many connections there may be at a time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of all.
    pub all: usize,
    /// Of all that are not proven: the rest is a reserve for those that are.
    pub unproven: usize,
    /// Of one origin.
    pub origin: usize,
    /// Of one IPv6 network of 48 bits.
    pub network: usize,
}

/// Where a connection comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// A user of this host.
    User(u32),
    /// An IPv4 address.
    V4(u32),
    /// The first 64 bits of an IPv6 address.
    V6(u64),
}

impl Origin {
    /// That of an address.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }

    /// The first 48 bits of an IPv6 address.
    pub fn network(self) -> Option<u64> {
        match self {
            Self::V6(prefix) => Some(prefix >> 16),
            Self::User(_) | Self::V4(_) => None,
        }
    }
}

struct Held {
    origin: Origin,
    proven: bool,
    busy: usize,
    /// The turn at which it was used last.
    used: u64,
    end: Arc<Notify>,
}

#[derive(Default)]
struct Table {
    turn: u64,
    held: BTreeMap<u64, Held>,
}

impl Table {
    fn count(&self, of: impl Fn(&Held) -> bool) -> usize {
        self.held.values().filter(|held| of(held)).count()
    }

    fn of_origin(&self, origin: Origin) -> usize {
        self.count(|held| held.origin == origin)
    }

    /// Ends one of some connections, of the origin that holds most of all; whether there was one.
    fn end_one(&mut self, of: impl Fn(&Held) -> bool) -> bool {
        let mut by_origin: BTreeMap<Origin, usize> = BTreeMap::new();
        for held in self.held.values() {
            *by_origin.entry(held.origin).or_default() += 1;
        }
        let candidates = self.held.iter().filter(|(_, held)| of(held));
        let victim = candidates.min_by_key(|(_, held)| {
            let most = std::cmp::Reverse(by_origin[&held.origin]);
            (most, held.proven, held.busy > 0, held.used)
        });
        let Some(victim) = victim.map(|(number, _)| *number) else {
            return false;
        };
        if let Some(held) = self.held.remove(&victim) {
            held.end.notify_one();
        }
        true
    }

    /// Makes room for one more of an origin; whether there is.
    fn make_room(&mut self, origin: Origin, limits: &Limits) -> bool {
        let may_end = |held: &Held| !held.proven || held.busy == 0;
        let own = |held: &Held| held.origin == origin;
        let near =
            |held: &Held| origin.network().is_some() && held.origin.network() == origin.network();
        if self.count(own) >= limits.origin && !self.end_one(|held| own(held) && may_end(held)) {
            return false;
        }
        if self.count(near) >= limits.network && !self.end_one(|held| near(held) && may_end(held)) {
            return false;
        }
        if self.count(|held| !held.proven) >= limits.unproven {
            self.end_one(|held| !held.proven);
        }
        if self.held.len() < limits.all || self.end_one(may_end) {
            return true;
        }
        // All are proven and busy: an origin that holds more than this one gives one up.
        let mine = self.of_origin(origin);
        let greedy: Vec<Origin> = self.held.values().map(|held| held.origin).collect();
        let greedy = |held: &Held| {
            let holds = greedy.iter().filter(|known| **known == held.origin).count();
            holds > mine + 1
        };
        self.end_one(greedy)
    }
}

/// Connections of one door.
#[derive(Clone)]
pub struct Shares {
    limits: Limits,
    table: Arc<Mutex<Table>>,
}

/// A connection, until it is dropped. Clones are the same one.
#[derive(Clone)]
pub struct Share(Arc<One>);

struct One {
    shares: Shares,
    number: u64,
    end: Arc<Notify>,
}

impl Shares {
    /// None yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            table: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more connection, for which another one may have to end; nothing where its origin holds as many as it may.
    pub fn take(&self, origin: Origin, proven: bool) -> Option<Share> {
        let mut table = self.lock();
        if !table.make_room(origin, &self.limits) {
            return None;
        }
        table.turn += 1;
        let (number, end) = (table.turn, Arc::new(Notify::new()));
        let held = Held {
            origin,
            proven,
            busy: 0,
            used: number,
            end: Arc::clone(&end),
        };
        table.held.insert(number, held);
        drop(table);
        Some(Share(Arc::new(One {
            shares: self.clone(),
            number,
            end,
        })))
    }
}

impl Share {
    fn change(&self, change: impl FnOnce(&mut Held)) {
        let mut table = self.0.shares.lock();
        table.turn += 1;
        let turn = table.turn;
        // It may have been told to end meanwhile.
        if let Some(held) = table.held.get_mut(&self.0.number) {
            held.used = turn;
            change(held);
        }
    }

    /// It showed a good credential.
    pub fn prove(&self) {
        self.change(|held| held.proven = true);
    }

    /// It is busy until the answer is dropped.
    pub fn busy(&self) -> Busy {
        self.change(|held| held.busy += 1);
        Busy(self.clone())
    }

    /// Waits until it is to end, since another one needs its place.
    pub async fn ended(&self) {
        self.0.end.notified().await;
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.shares.lock().held.remove(&self.number);
    }
}

/// A request of a connection that is being answered.
pub struct Busy(Share);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0
            .change(|held| held.busy = held.busy.saturating_sub(1));
    }
}

/// A body, as long as which its connection is busy.
pub struct WhileSent<B> {
    body: B,
    _busy: Busy,
}

impl<B> WhileSent<B> {
    /// That of a request.
    pub fn new(body: B, busy: Busy) -> Self {
        Self { body, _busy: busy }
    }
}

impl<B: hyper::body::Body + Unpin> hyper::body::Body for WhileSent<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::task::Waker;

    const LIMITS: Limits = Limits {
        all: 12,
        unproven: 8,
        origin: 4,
        network: 6,
    };

    fn address(text: &str) -> Origin {
        Origin::of(text.parse().unwrap())
    }

    fn has_ended(share: &Share) -> bool {
        let ended = std::pin::pin!(share.ended());
        ended
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    fn ended(shares: &[Share]) -> usize {
        shares.iter().filter(|share| has_ended(share)).count()
    }

    #[test]
    fn silent_connections_of_few_origins_keep_nobody_out() {
        let shares = Shares::new(LIMITS);
        let silent: Vec<Share> = (0..8)
            .map(|at| shares.take(Origin::V4(at % 2), false).unwrap())
            .collect();
        let good: Vec<Share> = (10..16)
            .map(|at| shares.take(Origin::V4(at), false).unwrap())
            .collect();
        assert_eq!((ended(&silent), ended(&good)), (6, 0));
    }

    #[test]
    fn a_newcomer_is_not_ended_by_very_many_origins_once_it_is_proven() {
        let shares = Shares::new(LIMITS);
        let good = shares.take(Origin::V4(0), false).unwrap();
        good.prove();
        let others: Vec<Share> = (1..100)
            .map(|at| shares.take(Origin::V4(at), false).unwrap())
            .collect();
        assert!(!has_ended(&good));
        assert_eq!(ended(&others), 99 - LIMITS.unproven);
    }

    #[test]
    fn an_origin_ends_its_own_idle_ones_and_is_refused_while_all_are_busy() {
        let shares = Shares::new(LIMITS);
        let own: Vec<Share> = (0..4)
            .map(|_| shares.take(Origin::User(1), true).unwrap())
            .collect();
        let busy: Vec<Busy> = own.iter().skip(1).map(Share::busy).collect();
        let more = shares.take(Origin::User(1), true).unwrap();
        assert!(has_ended(&own[0]) && ended(&own[1..]) == 0);
        let _busy = more.busy();
        assert!(shares.take(Origin::User(1), true).is_none());
        assert!(shares.take(Origin::User(2), true).is_some());
        drop(busy);
        assert!(shares.take(Origin::User(1), true).is_some());
    }

    #[test]
    fn an_ipv6_network_has_a_share_of_its_own() {
        let shares = Shares::new(LIMITS);
        let held: Vec<Share> = (0..20)
            .map(|at| address(&format!("2001:db8:0:{at:x}::1")))
            .map(|origin| shares.take(origin, false).unwrap())
            .collect();
        assert_eq!(ended(&held), 20 - LIMITS.network);
        assert_eq!(address("2001:db8::1"), address("2001:db8::2:0:0:1"));
        assert_eq!(address("::ffff:10.0.0.1"), address("10.0.0.1"));
    }

    #[test]
    fn who_holds_most_gives_one_up_when_all_are_busy() {
        let shares = Shares::new(LIMITS);
        let held: Vec<Share> = (0..12)
            .map(|at| shares.take(Origin::User(at / 4), true).unwrap())
            .collect();
        let _busy: Vec<Busy> = held.iter().map(Share::busy).collect();
        let newcomer = shares.take(Origin::User(9), true).unwrap();
        assert!(ended(&held) == 1 && !has_ended(&newcomer));
    }

    #[test]
    fn what_ended_frees_its_place() {
        let shares = Shares::new(LIMITS);
        let held = shares.take(Origin::User(1), true).unwrap();
        drop(held.busy());
        drop(held);
        assert!(shares.lock().held.is_empty());
    }
}
