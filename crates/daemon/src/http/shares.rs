//! Fair sharing of a listener's connections between origins, so that no origin can exhaust them.
//!
//! Each connection has an origin ([`reactor::Origin`]). Until its first request is complete it is
//! an *arrival* and counts against the limit of arrivals only: silent connections take no place
//! from those with requests. It is *proven* once it has authenticated, and *active* while a request
//! is executed or answered, unless the peer has neither sent nor received anything for
//! [`STALL_TIME`]. When a limit is reached, a connection is closed: the least recently used one of
//! the origin that holds most, first among those not proven, then among those not active. An origin
//! that opens very many connections thus closes its own.
//!
//! Arrivals have a grace period to send their request without any timer: connections are accepted
//! at a bounded rate (`accept`), so the oldest of N arrivals has had N accept periods. Further
//! connections wait in the kernel's backlog.

use reactor::{Full, Origin, OriginCounts, ShareLimits};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A connection whose peer has made no progress for this long is not active.
const STALL_TIME: Duration = Duration::from_secs(5);

/// Limits of concurrent connections. The reserve is for proven ones.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Without a complete request.
    pub arrivals: ShareLimits,
    /// With one.
    pub admitted: ShareLimits,
}

struct ConnectionEntry {
    origin: Origin,
    proven: bool,
    /// Requests being executed or answered.
    requests: usize,
    /// Since when the connection has been waiting for its peer to send a request or to receive a
    /// response.
    waits: Option<Instant>,
    /// Sequence number of its last use.
    used: u64,
    end: Arc<Notify>,
}

impl ConnectionEntry {
    fn is_active(&self, now: Instant) -> bool {
        let stalled = |since| now.saturating_duration_since(since) >= STALL_TIME;
        self.requests > 0 && !self.waits.is_some_and(stalled)
    }
}

/// Connections of one class.
struct Table {
    limits: ShareLimits,
    counts: OriginCounts,
    unproven: usize,
    held: BTreeMap<u64, ConnectionEntry>,
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

    fn insert(&mut self, number: u64, held: ConnectionEntry) {
        self.counts.add(held.origin);
        self.unproven += usize::from(!held.proven);
        self.held.insert(number, held);
    }

    fn remove(&mut self, number: u64) -> Option<ConnectionEntry> {
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

    /// The first connection to close among those selected by `of`.
    fn first(&self, now: Instant, of: impl Fn(&ConnectionEntry) -> bool) -> Option<u64> {
        let candidates = self.held.iter().filter(|(_, held)| of(held));
        let first = candidates.min_by_key(|(_, held)| {
            let most = std::cmp::Reverse(self.counts.of(held.origin));
            (most, held.proven, held.is_active(now), held.used)
        });
        first.map(|(number, _)| *number)
    }

    /// Closes a connection; returns whether there was one.
    fn close(&mut self, number: Option<u64>) -> bool {
        let held = number.and_then(|number| self.remove(number));
        held.is_some_and(|held| {
            held.end.notify_one();
            true
        })
    }

    /// Makes room for one more connection of an origin; returns whether there is room.
    fn make_room(&mut self, origin: Origin, now: Instant) -> bool {
        let limits = self.limits;
        let may_close = |held: &ConnectionEntry| !held.proven || !held.is_active(now);
        let own = |held: &ConnectionEntry| held.origin == origin && may_close(held);
        let near =
            |held: &ConnectionEntry| held.origin.network() == origin.network() && may_close(held);
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
        // All are proven and active: close one of an origin that holds more than this one.
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

/// A connection, until it is dropped. Clones refer to the same one.
#[derive(Clone)]
pub struct Share(Arc<ShareInner>);

struct ShareInner {
    shares: Shares,
    number: u64,
    end: Arc<Notify>,
}

impl Shares {
    /// No connections.
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

    /// Adds an arrival, for which another may be closed; nothing if its origin is at its limit and
    /// no connection can be closed.
    pub fn take(&self, origin: Origin, proven: bool) -> Option<Share> {
        let mut tables = self.lock();
        if !tables.arrivals.make_room(origin, Instant::now()) {
            return None;
        }
        tables.turn += 1;
        let (number, end) = (tables.turn, Arc::new(Notify::new()));
        let held = ConnectionEntry {
            origin,
            proven,
            requests: 0,
            waits: None,
            used: number,
            end: Arc::clone(&end),
        };
        tables.arrivals.insert(number, held);
        drop(tables);
        Some(Share(Arc::new(ShareInner {
            shares: self.clone(),
            number,
            end,
        })))
    }
}

impl Share {
    /// The first request is complete: the connection is no longer an arrival. Returns whether it is
    /// admitted; otherwise it must be closed.
    pub fn admit(&self) -> bool {
        let number = self.0.number;
        let mut tables = self.0.shares.lock();
        if tables.admitted.held.contains_key(&number) {
            return true;
        }
        // A connection chosen for closing is no longer in the table.
        let Some(held) = tables.arrivals.remove(number) else {
            return false;
        };
        let room = tables.admitted.make_room(held.origin, Instant::now());
        if room {
            tables.admitted.insert(number, held);
        }
        room
    }

    fn change(&self, change: impl FnOnce(&mut ConnectionEntry)) {
        let mut tables = self.0.shares.lock();
        tables.turn += 1;
        let turn = tables.turn;
        // It may have been closed concurrently.
        if let Some(held) = tables.admitted.held.get_mut(&self.0.number) {
            held.used = turn;
            change(held);
        }
    }

    /// The connection has authenticated.
    pub fn prove(&self) {
        self.0.shares.lock().admitted.prove(self.0.number);
    }

    /// Marks it busy until the response is dropped.
    pub fn busy(&self) -> Busy {
        self.change(|held| held.requests += 1);
        Busy(self.clone())
    }

    /// It waits for its peer.
    pub fn waits(&self) {
        self.change(|held| held.waits = held.waits.or_else(|| Some(Instant::now())));
    }

    /// Its peer has made progress.
    pub fn works(&self) {
        self.change(|held| held.waits = None);
    }

    /// Waits until it must be closed to make room for another.
    pub async fn ended(&self) {
        self.0.end.notified().await;
    }
}

impl Drop for ShareInner {
    fn drop(&mut self) {
        let mut tables = self.shares.lock();
        if tables.arrivals.remove(self.number).is_none() {
            tables.admitted.remove(self.number);
        }
    }
}

/// A request in progress.
pub struct Busy(Share);

impl Busy {
    /// The connection of the request.
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
