//! Targets: names under which units are offered, and to whom.

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

/// A unit, as one export offers it.
#[derive(Clone)]
pub(crate) struct Offer {
    pub unit: Arc<Unit>,
    pub device: Arc<dyn BlockDevice>,
    pub open_for: Option<OpenFor>,
    /// What hosts' requests of the volume may take.
    pub memory: Budget,
    pub portals: Vec<SocketAddr>,
    /// The portals' groups with their states.
    pub groups: Arc<PortGroups>,
    pub grant: Grant,
}

impl Offer {
    /// The volume as this initiator has it open; as the export has it where that cannot be.
    pub(crate) async fn open(&self, initiator: &str) -> Arc<dyn BlockDevice> {
        let Some(open_for) = self.open_for.clone() else {
            return self.device.clone();
        };
        let opened: Arc<Once<Option<Arc<dyn BlockDevice>>>> = Arc::default();
        let (done, initiator) = (opened.clone(), initiator.to_owned());
        // Opening may wait for loops, of which this is one.
        let work = Box::new(move || done.give(open_for(&initiator)));
        match reactor::control::start("iscsi-open".to_owned(), work) {
            Ok(()) => opened.take().await.unwrap_or_else(|| self.device.clone()),
            Err(_) => self.device.clone(),
        }
    }

    /// Whether a host may see it, as far as its name and address say.
    pub(crate) fn is_for(&self, peer: &Peer) -> bool {
        self.portals.contains(&peer.portal) && self.grant.is_for(peer)
    }
}

/// Numbers of sessions, of all targets.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Who asks for a place.
pub(crate) struct Joining<'a> {
    /// Initiator port and portal group.
    pub port: &'a (String, u16),
    /// CID.
    pub connection: u16,
    pub peer: &'a Peer,
    /// What the initiator has proved.
    pub proved: Option<&'a Credentials>,
    pub granted: &'a Granted,
    pub seat: &'a Arc<Seat>,
}

/// What became of who asked for a place.
pub(crate) enum Joined {
    Place(Place),
    /// The session with the same ports is being ended: again later. What is to be logged of that.
    Waits(Option<String>),
    /// A session with the same ports is of somebody who has proved another secret.
    OfAnother,
    /// What was granted is not there any more.
    Gone,
}

#[derive(Default)]
struct State {
    offers: BTreeMap<u16, Arc<Offer>>,
    /// Every portal that an offer has had, by its group's number.
    portals: BTreeMap<u16, SocketAddr>,
    sessions: Vec<Session>,
    twins: Twins,
}

impl State {
    /// Whether who has proved `proved` may take the place of a session: by the same proof, or where that session has
    /// none, or one that nothing asks for any more.
    fn may_replace(&self, session: &Session, proved: Option<&Credentials>) -> bool {
        let Some(own) = &session.proved else {
            return true;
        };
        let mut chap = self.offers.values().map(|offer| offer.grant.chap.as_ref());
        proved == Some(own) || !chap.any(|chap| chap.is_some_and(|chap| chap.initiator == *own))
    }

    /// Takes note that a session is replaced. What is to be logged of it.
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
    /// Counts changes of the offers.
    version: AtomicU64,
    ended: Condvar,
}

/// A session's place in its target; left when dropped.
pub(crate) struct Place {
    target: Arc<Target>,
    /// The session's number, which no other has.
    pub number: u64,
    /// The session's handle (TSIH).
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

/// What an initiator may reach.
#[derive(Clone, Default)]
pub(crate) struct Granted(pub BTreeMap<u16, Arc<Offer>>);

impl Granted {
    /// Whether none of it asks for a secret.
    pub(crate) fn is_open(&self) -> bool {
        self.0.values().all(|offer| offer.grant.chap.is_none())
    }

    /// What is left for somebody who has proved what `proves` says.
    pub(crate) fn proved(&self, proves: impl Fn(&Credentials) -> bool) -> Self {
        let offers = self.0.iter().filter(|(_, offer)| {
            let chap = offer.grant.chap.as_ref();
            chap.is_none_or(|secrets| proves(&secrets.initiator))
        });
        Self(offers.map(|(lun, offer)| (*lun, offer.clone())).collect())
    }

    /// What is left of `now` for somebody to whom this was granted: what asks for no secret, or for
    /// one that was proved.
    pub(crate) fn of(&self, now: &Self) -> Self {
        now.proved(|known| self.closed().any(|secrets| secrets.initiator == *known))
    }

    /// What asks for a secret.
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

    /// The numbers of portals' groups, in their order: those that are `wanted`, or else those that they have, or the
    /// next ones that no portal has had.
    ///
    /// # Errors
    /// When a number that is wanted is another portal's, a portal has another one, or none is left.
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
                        "the group of portal {portal} cannot be that: target {} has {}. Give other groups, or none \
                         to have them chosen",
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

    /// Offers a unit. False when its number is taken.
    pub(crate) fn add(&self, lun: u16, offer: Offer) -> bool {
        let mut state = self.lock();
        if state.offers.contains_key(&lun) {
            return false;
        }
        state.offers.insert(lun, Arc::new(offer));
        self.version.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// Ends an offer, after what is in flight to it, and waits for that: sessions that have nothing else are ended,
    /// the others lose the unit and tell so with their next command.
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
                // In the end it is the session's own loop that does not let go of the unit.
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

    /// Offers a unit to others, or in another way. Sessions that have nothing left are ended; the rest
    /// takes it over with its next command.
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

    /// The units that are for this initiator.
    pub(crate) fn granted(&self, peer: &Peer) -> Granted {
        let state = self.lock();
        let offers = state.offers.iter();
        let offers = offers.filter(|(_, offer)| offer.is_for(peer));
        Granted(offers.map(|(lun, offer)| (*lun, offer.clone())).collect())
    }

    /// Whether it asks for a secret at a portal.
    pub(crate) fn asks_at(&self, portal: SocketAddr) -> bool {
        let state = self.lock();
        let mut offers = state.offers.values();
        offers.any(|offer| offer.grant.chap.is_some() && offer.portals.contains(&portal))
    }

    /// The portals where `granted` can be reached, with their groups.
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

    /// The number of a portal's group.
    pub(crate) fn group(&self, portal: SocketAddr) -> u16 {
        let state = self.lock();
        let mut numbered = state.portals.iter();
        let found = numbered.find(|(_, known)| **known == portal);
        found.map_or(1, |(number, _)| *number)
    }

    /// A place for a session, once the one before it with the same ports has ended (RFC 7143, section 6.3.5), which
    /// this brings about.
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
            // An export has ended since the initiator asked.
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

    /// Enters one more connection of a session; false when it has as many as it may, or one of that number.
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
        // What it may see is for its session to look at.
        self.version.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// A connection of a session has ended. The last one stays until the session has ended as well.
    pub(crate) fn leave(&self, place: &Place, number: u16) {
        let mut state = self.lock();
        if let Some(session) = state.own(place)
            && session.connections.len() > 1
        {
            session.connections.retain(|known| known.number != number);
        }
    }

    /// The units that are for all connections of a session.
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

    /// Takes over what a session has now: its numbers of units. It ends when there are none.
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

    /// Sessions that have this unit.
    pub(crate) fn sessions(&self, lun: u16) -> usize {
        let state = self.lock();
        state
            .sessions
            .iter()
            .filter(|session| session.luns.contains(&lun))
            .count()
    }

    /// The sessions that have this unit.
    pub(crate) fn list(&self, lun: u16) -> Vec<SessionInfo> {
        let state = self.lock();
        let sessions = state.sessions.iter();
        let having = sessions.filter(|session| session.luns.contains(&lun));
        having.map(|session| session.info(&self.name)).collect()
    }

    /// What is wrong with the hosts that log in to it.
    /// One of its units tells them, the first.
    pub(crate) fn troubles(&self, lun: u16) -> Vec<String> {
        let state = self.lock();
        match state.offers.keys().next() == Some(&lun) {
            true => state.twins.told(Instant::now()),
            false => Vec::new(),
        }
    }

    /// Has a session log out; false when there is none of this number.
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
