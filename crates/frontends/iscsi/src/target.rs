//! Targets: named collections of units with access control.

use crate::access::{Grant, Peer};
use crate::account::Account;
use crate::chap::Credentials;
use crate::members::{Connection, Known, Session};
use crate::open;
use crate::parameters::Secrets;
use crate::portal::Seat;
use crate::twins::Twins;
use block::BlockDevice;
use reactor::{Budget, OpenFor, SessionInfo};
use scsi::{Nexus, Once, PortGroups, Ports, Unit};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// A unit as exported by one export.
#[derive(Clone)]
pub(crate) struct Offer {
    pub unit: Arc<Unit>,
    pub device: Arc<dyn BlockDevice>,
    pub open_for: Option<OpenFor>,
    /// Memory budget of the volume's hosts.
    pub memory: Budget,
    pub portals: Vec<SocketAddr>,
    /// Portal groups with their ALUA states.
    pub groups: Arc<PortGroups>,
    pub grant: Grant,
}

impl Offer {
    /// The volume opened on behalf of this initiator; as opened by the export if that fails.
    pub(crate) async fn open(&self, initiator: &str) -> Arc<dyn BlockDevice> {
        let Some(open_for) = self.open_for.clone() else {
            return self.device.clone();
        };
        let opened: Arc<Once<Option<Arc<dyn BlockDevice>>>> = Arc::default();
        let (done, initiator) = (opened.clone(), initiator.to_owned());
        // Opening may block on loops, of which this is one.
        let work = Box::new(move || done.give(open_for(&initiator)));
        match reactor::control::start("iscsi-open".to_owned(), work) {
            Ok(()) => opened.take().await.unwrap_or_else(|| self.device.clone()),
            Err(_) => self.device.clone(),
        }
    }

    /// Whether a host may see it, according to its name and address.
    pub(crate) fn is_for(&self, peer: &Peer) -> bool {
        self.portals.contains(&peer.portal) && self.grant.is_for(peer)
    }
}

/// Unique session numbers.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A login that requests a session.
pub(crate) struct Joining<'a> {
    /// Initiator port and portal group tag.
    pub port: &'a (String, u16),
    /// CID.
    pub connection: u16,
    pub peer: &'a Peer,
    /// Proved credentials.
    pub proved: Option<&'a Credentials>,
    pub granted: &'a Granted,
    pub seat: &'a Arc<Seat>,
}

/// Result of such a request.
pub(crate) enum Joined {
    Place(Place),
    /// A session with the same ports is being ended: retry. With a message to log.
    Waits(Option<String>),
    /// A session with the same ports belongs to a host authenticated with another secret.
    OfAnother,
    /// The granted units no longer exist.
    Gone,
}

#[derive(Default)]
struct State {
    offers: BTreeMap<u16, Arc<Offer>>,
    /// Every portal used by its units, by group tag.
    portals: BTreeMap<u16, SocketAddr>,
    sessions: Vec<Session>,
    twins: Twins,
}

impl State {
    /// Whether a host with credentials `proved` may replace a session: with the same credentials,
    /// or if the session has none or ones that are no longer required.
    fn may_replace(&self, session: &Session, proved: Option<&Credentials>) -> bool {
        let Some(own) = &session.proved else {
            return true;
        };
        let mut chap = self.offers.values().map(|offer| offer.grant.chap.as_ref());
        proved == Some(own) || !chap.any(|chap| chap.is_some_and(|chap| chap.initiator == *own))
    }

    /// Records that a session is replaced. Returns a message to log.
    fn note_replaced(&mut self, joining: &Joining<'_>) -> Option<String> {
        let mut sessions = self.sessions.iter();
        let before = sessions.find(|session| session.port == *joining.port)?;
        let address = before.connections.first()?.peer.address.ip();
        let age = before.since.elapsed().unwrap_or_default();
        let addresses = (address, joining.peer.address.ip());
        self.twins
            .note(&joining.port.0, addresses, age, Instant::now())
    }

    fn own(&mut self, place: &Place) -> Option<&mut Session> {
        let mut sessions = self.sessions.iter_mut();
        sessions.find(|session| session.number == place.number)
    }
}

/// A target.
pub(crate) struct Target {
    pub name: String,
    state: Mutex<State>,
    /// Incremented at each change of the units.
    version: AtomicU64,
    ended: Condvar,
}

/// A session of the target, until it is dropped.
pub(crate) struct Place {
    target: Arc<Target>,
    /// Unique number of the session.
    pub number: u64,
    /// Session handle (TSIH).
    pub handle: u16,
    pub account: Arc<Account>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.target.lock();
        state
            .sessions
            .retain(|session| session.number != self.number);
        drop(state);
        self.target.ended.notify_all();
    }
}

/// Accessible units.
#[derive(Clone, Default)]
pub(crate) struct Granted(pub BTreeMap<u16, Arc<Offer>>);

impl Granted {
    /// Whether no unit requires a secret.
    pub(crate) fn is_open(&self) -> bool {
        self.0.values().all(|offer| offer.grant.chap.is_none())
    }

    /// The units accessible with credentials accepted by `proves`.
    pub(crate) fn proved(&self, proves: impl Fn(&Credentials) -> bool) -> Self {
        let offers = self.0.iter().filter(|(_, offer)| {
            let chap = offer.grant.chap.as_ref();
            chap.is_none_or(|secrets| proves(&secrets.initiator))
        });
        Self(offers.map(|(lun, offer)| (*lun, offer.clone())).collect())
    }

    /// The units of `now` accessible to a holder of `self`: those that require no secret, or one
    /// already proved.
    pub(crate) fn of(&self, now: &Self) -> Self {
        now.proved(|known| self.closed().any(|secrets| secrets.initiator == *known))
    }

    /// The required secrets.
    pub(crate) fn closed(&self) -> impl Iterator<Item = &Secrets> {
        self.0
            .values()
            .filter_map(|offer| offer.grant.chap.as_ref())
    }
}

impl Target {
    pub(crate) fn new(name: &str) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            state: Mutex::default(),
            version: AtomicU64::new(0),
            ended: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Group tags of portals, in order: the requested ones, or else the existing ones, or the next
    /// unused ones.
    ///
    /// # Errors
    /// When a requested tag belongs to another portal, a portal has another tag, or none is left.
    pub(crate) fn number(
        &self,
        portals: &[SocketAddr],
        wanted: Option<&[u16]>,
    ) -> io::Result<Vec<u16>> {
        let mut state = self.lock();
        let mut numbered = state.portals.clone();
        let mut numbers = Vec::new();
        for (at, portal) in portals.iter().enumerate() {
            let known = numbered.iter().find(|(_, known)| *known == portal);
            let known = known.map(|(number, _)| *number);
            let last = numbered.last_key_value().map_or(0, |(number, _)| *number);
            let wanted = wanted.and_then(|wanted| wanted.get(at).copied());
            let number = wanted.or(known).or(last.checked_add(1));
            let is_its_own = |number: &u16| {
                known.is_none_or(|known| known == *number)
                    && numbered.get(number).is_none_or(|known| known == portal)
            };
            let Some(number) = number.filter(is_its_own) else {
                let taken: Vec<String> = numbered
                    .iter()
                    .map(|(number, portal)| format!("{portal}={number}"))
                    .collect();
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    format!(
                        "the requested group of portal {portal} conflicts: target {} has {}. \
                         Choose other groups, or none to have them assigned",
                        self.name,
                        taken.join(", ")
                    ),
                ));
            };
            numbered.insert(number, *portal);
            numbers.push(number);
        }
        state.portals = numbered;
        Ok(numbers)
    }

    /// Adds a unit. False if its number is taken.
    pub(crate) fn add(&self, lun: u16, offer: Offer) -> bool {
        let mut state = self.lock();
        if state.offers.contains_key(&lun) {
            return false;
        }
        state.offers.insert(lun, Arc::new(offer));
        self.version.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// Removes a unit after its commands in flight, waiting for that: sessions without other units
    /// are ended, the others report a unit attention with their next command.
    pub(crate) fn remove(&self, lun: u16, (answer, end): (Duration, Duration)) {
        let mut state = self.lock();
        state.offers.remove(&lun);
        self.version.fetch_add(1, Ordering::AcqRel);
        for (limit, whatever) in [(answer, false), (end, true)] {
            for session in state
                .sessions
                .iter()
                .filter(|session| session.luns.contains(&lun))
            {
                // Finally force it: the session's own loop does not release the unit.
                if whatever || session.luns == [lun] {
                    session.end(whatever);
                } else {
                    let number = session.number;
                    open::with(&session.remote, number, |session| session.refresh());
                }
            }
            let deadline = Instant::now() + limit;
            let has = |state: &State| state.sessions.iter().any(|s| s.luns.contains(&lun));
            while has(&state) {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let waited = self.ended.wait_timeout(state, left);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// Changes the access rights of a unit. Sessions without remaining units are ended; others
    /// apply the change with their next command.
    pub(crate) fn regrant(&self, lun: u16, grant: Grant) {
        let mut state = self.lock();
        let Some(offer) = state.offers.get_mut(&lun) else {
            return;
        };
        let chap_before = offer.grant.chap.clone();
        let mut changed = Offer::clone(offer);
        changed.grant = grant;
        let same_secret = chap_before.map(|known| known.initiator)
            == changed
                .grant
                .chap
                .as_ref()
                .map(|known| known.initiator.clone());
        *offer = Arc::new(changed);
        self.version.fetch_add(1, Ordering::AcqRel);
        for session in &state.sessions {
            let keeps = |lun: &u16| {
                let offer = state.offers.get(lun);
                offer.is_some_and(|offer| session.may_see(offer))
            };
            let is_left = |known: &u16| keeps(known) && (*known != lun || same_secret);
            if !session.luns.iter().any(is_left) {
                session.end(false);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().offers.is_empty()
    }

    /// Units accessible to this initiator.
    pub(crate) fn granted(&self, peer: &Peer) -> Granted {
        let state = self.lock();
        let offers = state.offers.iter();
        let offers = offers.filter(|(_, offer)| offer.is_for(peer));
        Granted(offers.map(|(lun, offer)| (*lun, offer.clone())).collect())
    }

    /// Whether a unit requires a secret at a portal.
    pub(crate) fn asks_at(&self, portal: SocketAddr) -> bool {
        let state = self.lock();
        let mut offers = state.offers.values();
        offers.any(|offer| offer.grant.chap.is_some() && offer.portals.contains(&portal))
    }

    /// Portals of the granted units, with their group tags.
    pub(crate) fn portals(&self, granted: &Granted) -> Vec<(u16, SocketAddr)> {
        let state = self.lock();
        let numbered = state
            .portals
            .iter()
            .map(|(number, portal)| (*number, *portal));
        let offered = |portal: &SocketAddr| {
            granted
                .0
                .values()
                .any(|offer| offer.portals.contains(portal))
        };
        numbered.filter(|(_, portal)| offered(portal)).collect()
    }

    /// The group tag of a portal.
    pub(crate) fn group(&self, portal: SocketAddr) -> u16 {
        let state = self.lock();
        let mut numbered = state.portals.iter();
        let found = numbered.find(|(_, known)| **known == portal);
        found.map_or(1, |(number, _)| *number)
    }

    /// A place for a session, once the previous session with the same ports has ended (RFC 7143,
    /// section 6.3.5), which is initiated here.
    pub(crate) fn join(self: &Arc<Self>, joining: &Joining<'_>) -> Joined {
        let granted = joining.granted;
        let mut state = self.lock();
        let mut sessions = state.sessions.iter();
        if let Some(before) = sessions.find(|session| session.port == *joining.port) {
            if !state.may_replace(before, joining.proved) {
                return Joined::OfAnother;
            }
            let first = !before.is_replaced.replace(true);
            before.end(true);
            let log = first.then(|| state.note_replaced(joining)).flatten();
            return Joined::Waits(log);
        }
        let is_there = |(lun, offer): (&u16, &Arc<Offer>)| {
            state
                .offers
                .get(lun)
                .is_some_and(|known| Arc::ptr_eq(known, offer))
        };
        if !granted.0.iter().all(is_there) {
            // An export was stopped since the login began.
            return Joined::Gone;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let taken = |handle: u16| {
            state
                .sessions
                .iter()
                .any(|session| session.handle == handle)
        };
        let mut handle = (number % 0xffff) as u16 + 1;
        while taken(handle) {
            handle = handle % 0xffff + 1;
        }
        let account: Arc<Account> = Arc::default();
        state.sessions.push(Session {
            number,
            port: joining.port.clone(),
            handle,
            luns: granted.0.keys().copied().collect(),
            connections: vec![Connection {
                number: joining.connection,
                peer: joining.peer.clone(),
                seat: Arc::downgrade(joining.seat),
            }],
            remote: joining.seat.remote().clone(),
            proved: joining.proved.cloned(),
            since: SystemTime::now(),
            is_replaced: false.into(),
            account: account.clone(),
        });
        Joined::Place(Place {
            target: self.clone(),
            number,
            handle,
            account,
        })
    }

    /// The session with these ports and this handle.
    pub(crate) fn known(&self, port: &(String, u16), handle: u16) -> Option<Known> {
        let state = self.lock();
        let mut sessions = state.sessions.iter();
        let found = sessions.find(|session| session.port == *port && session.handle == handle)?;
        let has = |lun: &&u16| {
            let offer = state.offers.get(*lun);
            offer.is_some_and(|offer| found.may_see(offer))
        };
        Some(Known {
            number: found.number,
            handle,
            proved: found.proved.clone(),
            luns: found.luns.iter().filter(has).copied().collect(),
            remote: found.remote.clone(),
        })
    }

    /// Adds a connection to a session; false if the limit is reached, or the CID is in use.
    pub(crate) fn enter(
        &self,
        place: &Place,
        (number, peer, seat): (u16, &Peer, &Arc<Seat>),
        most: usize,
    ) -> bool {
        let mut state = self.lock();
        let Some(session) = state.own(place) else {
            return false;
        };
        let connections = &mut session.connections;
        let has = connections.iter().any(|known| known.number == number);
        if has || connections.len() >= most {
            return false;
        }
        connections.push(Connection {
            number,
            peer: peer.clone(),
            seat: Arc::downgrade(seat),
        });
        // The session must update its accessible units.
        self.version.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// A connection of a session has ended. The last one is kept until the session has ended as
    /// well.
    pub(crate) fn leave(&self, place: &Place, number: u16) {
        let mut state = self.lock();
        if let Some(session) = state.own(place)
            && session.connections.len() > 1
        {
            session.connections.retain(|known| known.number != number);
        }
    }

    /// Units accessible to all connections of a session.
    pub(crate) fn granted_to(&self, place: &Place) -> Granted {
        let mut state = self.lock();
        let Some(session) = state.own(place) else {
            return Granted::default();
        };
        let session = &*session;
        let peers: Vec<Peer> = session
            .connections
            .iter()
            .map(|each| each.peer.clone())
            .collect();
        let offers = state.offers.iter();
        let offers = offers.filter(|(_, offer)| peers.iter().all(|peer| offer.is_for(peer)));
        Granted(offers.map(|(lun, offer)| (*lun, offer.clone())).collect())
    }

    /// Updates the unit numbers of a session, which is ended if there are none.
    pub(crate) fn note_luns(&self, place: &Place, luns: &[u16]) {
        let mut state = self.lock();
        if let Some(session) = state.own(place) {
            session.luns = luns.to_vec();
            if luns.is_empty() {
                session.end(false);
            }
        }
        drop(state);
        self.ended.notify_all();
    }

    /// Number of sessions with this unit.
    pub(crate) fn sessions(&self, lun: u16) -> usize {
        let state = self.lock();
        state
            .sessions
            .iter()
            .filter(|session| session.luns.contains(&lun))
            .count()
    }

    /// Sessions with this unit.
    pub(crate) fn list(&self, lun: u16) -> Vec<SessionInfo> {
        let state = self.lock();
        let sessions = state.sessions.iter();
        let having = sessions.filter(|session| session.luns.contains(&lun));
        having.map(|session| session.info(&self.name)).collect()
    }

    /// Problems of hosts that log in to the target, reported by its first unit.
    pub(crate) fn troubles(&self, lun: u16) -> Vec<String> {
        let state = self.lock();
        match state.offers.keys().next() == Some(&lun) {
            true => state.twins.told(Instant::now()),
            false => Vec::new(),
        }
    }

    /// Asks a session to log out; false if the number is unknown.
    pub(crate) fn end_session(&self, number: u64) -> bool {
        let state = self.lock();
        let mut sessions = state.sessions.iter();
        let found = sessions.find(|session| session.number == number);
        if let Some(session) = found {
            open::with(&session.remote, number, |session| session.ask_to_log_out());
        }
        found.is_some()
    }

    /// A nexus to a unit.
    pub(crate) fn nexus(
        handle: &reactor::Handle,
        offer: &Offer,
        ports: &Ports,
        device: Arc<dyn BlockDevice>,
    ) -> Nexus {
        Nexus::new(
            handle,
            offer.unit.clone(),
            device,
            (ports.clone(), offer.groups.clone()),
            offer.grant.read_only,
        )
    }
}
