//! Sessions of a target, visible to all threads: their initiators, addresses, and how to end them.

use crate::access::Peer;
use crate::account::Account;
use crate::chap::Credentials;
use crate::portal::Seat;
use crate::target::Offer;
use reactor::{Remote, SessionInfo};
use std::cell::Cell;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

/// A connection in the target's list.
pub(crate) struct Connection {
    /// CID.
    pub number: u16,
    pub peer: Peer,
    pub seat: Weak<Seat>,
}

/// A session in the target's list.
pub(crate) struct Session {
    pub number: u64,
    /// Initiator, ISID and portal group tag, which identify a session (RFC 7143, section 4.4.4).
    pub port: (String, u16),
    pub handle: u16,
    pub luns: Vec<u16>,
    /// Oldest first.
    pub connections: Vec<Connection>,
    /// The session's loop.
    pub remote: Remote,
    /// Proved credentials.
    pub proved: Option<Credentials>,
    pub since: SystemTime,
    pub account: Arc<Account>,
    /// A new session of the same ports is replacing it.
    pub is_replaced: Cell<bool>,
}

impl Session {
    /// Information for administrators.
    pub(crate) fn info(&self, target: &str) -> SessionInfo {
        let (read, written, commands) = self.account.all();
        let since = self.since.duration_since(UNIX_EPOCH);
        let peer = self.connections.first().map(|first| &first.peer);
        let of_peer = |text: &dyn Fn(&Peer) -> String| peer.map_or(String::new(), text);
        SessionInfo {
            id: self.number,
            initiator: of_peer(&|peer| peer.initiator.clone()),
            address: of_peer(&|peer| peer.address.to_string()),
            target: target.to_owned(),
            portal: of_peer(&|peer| peer.portal.to_string()),
            user: self.proved.as_ref().map(|proved| proved.name.clone()),
            since_s: since.map_or(0, |since| since.as_secs()),
            connections: self.connections.len() as u32,
            commands,
            read,
            written,
        }
    }

    /// Ends all of its connections.
    pub(crate) fn end(&self, whatever: bool) {
        for connection in &self.connections {
            if let Some(seat) = connection.seat.upgrade() {
                seat.end(whatever);
            }
        }
    }

    /// Whether a unit is visible from all of its addresses.
    pub(crate) fn may_see(&self, offer: &Offer) -> bool {
        let mut connections = self.connections.iter();
        connections.all(|connection| offer.is_for(&connection.peer))
    }
}

/// The state of a session that a further connection needs.
pub(crate) struct Known {
    pub number: u64,
    /// TSIH.
    pub handle: u16,
    /// Proved name and secret.
    pub proved: Option<Credentials>,
    pub luns: Vec<u16>,
    /// The session's loop.
    pub remote: Remote,
}
