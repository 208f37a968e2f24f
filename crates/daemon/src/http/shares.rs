//! Shares of the connections of one listener, so that nobody can hold all of them.
//!
//! Each connection has an origin ([`reactor::Origin`]). Until its first request is whole it is an *arrival*, and counts
//! among arrivals alone: whoever says nothing takes no place of those who ask. It is *proven* once it showed a good
//! credential, and *active* while a request of it is carried out or answered; not while the peer does not send or take
//! for [`STALL_TIME`]. Where there is no room for one more, another one is closed: the one that was used least recently
//! of the origin that holds most, of those that are not proven first, then of those that are not active. So whoever opens
//! very many connections closes their own.
//!
//! An arrival has a grace to send its request, without any timer: connections are accepted at a bounded rate (`accept`),
//! so the oldest of N arrivals has had the time of N of them. Those beyond wait in the kernel's backlog.

use reactor::{Full, Origin, OriginCounts, ShareLimits};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A connection whose peer has neither sent nor taken anything for so long, while it was waited for, is not active.
const STALL_TIME: Duration = Duration::from_secs(5);

/// How many connections there may be at a time. The reserve is for those that are proven.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Without a whole request yet.
    pub arrivals: ShareLimits,
    /// With one.
    pub admitted: ShareLimits,
}

struct Held {
    origin: Origin,
    proven: bool,
    /// Requests that are carried out or answered.
    requests: usize,
    /// Since when the peer is waited for: it is to send more of a request, or to take more of an answer.
    waits: Option<Instant>,
    /// The turn at which it was used last.
    used: u64,
    end: Arc<Notify>,
}

impl Held {
    fn is_active(&self, now: Instant) -> bool {
        let stalled = |since| now.saturating_duration_since(since) >= STALL_TIME;
        self.requests > 0 && !self.waits.is_some_and(stalled)
    }
}

/// Connections of one kind.
struct Table {
    limits: ShareLimits,
    counts: OriginCounts,
    unproven: usize,
    held: BTreeMap<u64, Held>,
}

impl Table {
    fn new(limits: ShareLimits) -> Self {
        Self {
            limits,
            counts: OriginCounts::default(),
            unproven: 0,
            held: BTreeMap::new(),
        }
    }

    fn insert(&mut self, number: u64, held: Held) {
        self.counts.add(held.origin);
        self.unproven += usize::from(!held.proven);
        self.held.insert(number, held);
    }

    fn remove(&mut self, number: u64) -> Option<Held> {
        let held = self.held.remove(&number)?;
        self.counts.remove(held.origin);
        self.unproven -= usize::from(!held.proven);
        Some(held)
    }

    fn prove(&mut self, number: u64) {
        if let Some(held) = self.held.get_mut(&number) {
            self.unproven -= usize::from(!held.proven);
            held.proven = true;
        }
    }

    /// The one of some connections that is closed first.
    fn first(&self, now: Instant, of: impl Fn(&Held) -> bool) -> Option<u64> {
        let candidates = self.held.iter().filter(|(_, held)| of(held));
        let first = candidates.min_by_key(|(_, held)| {
            let most = std::cmp::Reverse(self.counts.of(held.origin));
            (most, held.proven, held.is_active(now), held.used)
        });
        first.map(|(number, _)| *number)
    }

    /// Closes a connection; whether there was one.
    fn close(&mut self, number: Option<u64>) -> bool {
        let held = number.and_then(|number| self.remove(number));
        held.is_some_and(|held| {
            held.end.notify_one();
            true
        })
    }

    /// Makes room for one more of an origin; whether there is.
    fn make_room(&mut self, origin: Origin, now: Instant) -> bool {
        let limits = self.limits;
        let may_close = |held: &Held| !held.proven || !held.is_active(now);
        let own = |held: &Held| held.origin == origin && may_close(held);
        let near = |held: &Held| held.origin.network() == origin.network() && may_close(held);
        if self.counts.full(origin, &limits, usize::MAX) == Some(Full::Address)
            && !self.close(self.first(now, own))
        {
            return false;
        }
        if self.counts.full(origin, &limits, usize::MAX) == Some(Full::Network)
            && !self.close(self.first(now, near))
        {
            return false;
        }
        if self.unproven >= limits.all - limits.reserve {
            self.close(self.first(now, |held| !held.proven));
        }
        if self.counts.all() < limits.all || self.close(self.first(now, may_close)) {
            return true;
        }
        // All are proven and active: an origin that holds more than this one loses one.
        let mine = self.counts.of(origin);
        let greedy = self.first(now, |held| self.counts.of(held.origin) > mine + 1);
        self.close(greedy)
    }
}

struct Tables {
    turn: u64,
    arrivals: Table,
    admitted: Table,
}

/// Connections of one listener.
#[derive(Clone)]
pub struct Shares(Arc<Mutex<Tables>>);

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
        Self(Arc::new(Mutex::new(Tables {
            turn: 0,
            arrivals: Table::new(limits.arrivals),
            admitted: Table::new(limits.admitted),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more arrival, for which another one may be closed; nothing where its origin has as many as it may and none of
    /// them can be.
    pub fn take(&self, origin: Origin, proven: bool) -> Option<Share> {
        let mut tables = self.lock();
        if !tables.arrivals.make_room(origin, Instant::now()) {
            return None;
        }
        tables.turn += 1;
        let (number, end) = (tables.turn, Arc::new(Notify::new()));
        let held = Held {
            origin,
            proven,
            requests: 0,
            waits: None,
            used: number,
            end: Arc::clone(&end),
        };
        tables.arrivals.insert(number, held);
        drop(tables);
        Some(Share(Arc::new(One {
            shares: self.clone(),
            number,
            end,
        })))
    }
}

impl Share {
    /// It has a whole request: it is an arrival no longer. Whether it may ask; where not, it is to be closed.
    pub fn admit(&self) -> bool {
        let number = self.0.number;
        let mut tables = self.0.shares.lock();
        if tables.admitted.held.contains_key(&number) {
            return true;
        }
        // One that is to be closed is no arrival any more.
        let Some(held) = tables.arrivals.remove(number) else {
            return false;
        };
        let room = tables.admitted.make_room(held.origin, Instant::now());
        if room {
            tables.admitted.insert(number, held);
        }
        room
    }

    fn change(&self, change: impl FnOnce(&mut Held)) {
        let mut tables = self.0.shares.lock();
        tables.turn += 1;
        let turn = tables.turn;
        // It may have been closed meanwhile.
        if let Some(held) = tables.admitted.held.get_mut(&self.0.number) {
            held.used = turn;
            change(held);
        }
    }

    /// It showed a good credential.
    pub fn prove(&self) {
        self.0.shares.lock().admitted.prove(self.0.number);
    }

    /// It has a request until the answer is dropped.
    pub fn busy(&self) -> Busy {
        self.change(|held| held.requests += 1);
        Busy(self.clone())
    }

    /// Its peer is waited for.
    pub fn waits(&self) {
        self.change(|held| held.waits = held.waits.or_else(|| Some(Instant::now())));
    }

    /// Its peer sent or took something.
    pub fn works(&self) {
        self.change(|held| held.waits = None);
    }

    /// Waits until it is to be closed, since another one needs its place.
    pub async fn ended(&self) {
        self.0.end.notified().await;
    }
}

impl Drop for One {
    fn drop(&mut self) {
        let mut tables = self.shares.lock();
        if tables.arrivals.remove(self.number).is_none() {
            tables.admitted.remove(self.number);
        }
    }
}

/// A request of a connection that is being answered.
pub struct Busy(Share);

impl Busy {
    /// Its connection.
    pub fn share(&self) -> &Share {
        &self.0
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.change(|held| {
            held.requests = held.requests.saturating_sub(1);
            held.waits = None;
        });
    }
}

#[cfg(test)]
mod tests;
