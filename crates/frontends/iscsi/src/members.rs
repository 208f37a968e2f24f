//! The sessions of a target as every thread may see them: who they are of, from where, and how they are ended.

use crate::access::Peer;
use crate::account::Account;
use crate::chap::Credentials;
use crate::portal::Seat;
use crate::target::Offer;
use reactor::{Remote, SessionInfo};
use std::cell::Cell;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

/// A connection of a session in its target's list.
pub(crate) struct Connection {
    /// CID.
    pub number: u16,
    pub peer: Peer,
    pub seat: Weak<Seat>,
}

/// A session in its target's list.
pub(crate) struct Session {
    pub number: u64,
    /// Initiator, ISID and portal group: what a session is known by (RFC 7143, section 4.4.4).
    pub port: (String, u16),
    pub handle: u16,
    pub luns: Vec<u16>,
    /// The first of them is the oldest.
    pub connections: Vec<Connection>,
    /// The loop that it is on.
    pub remote: Remote,
    /// What was proved for it.
    pub proved: Option<Credentials>,
    pub since: SystemTime,
    pub account: Arc<Account>,
    /// Another one with its ports is to take its place.
    pub is_replaced: Cell<bool>,
}

impl Session {
    /// What people are told of it.
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

    /// Has all of its connections end.
    pub(crate) fn end(&self, whatever: bool) {
        for connection in &self.connections {
            if let Some(seat) = connection.seat.upgrade() {
                seat.end(whatever);
            }
        }
    }

    /// Whether a unit may be seen from wherever it has connected.
    pub(crate) fn may_see(&self, offer: &Offer) -> bool {
        let mut connections = self.connections.iter();
        connections.all(|connection| offer.is_for(&connection.peer))
    }
}

/// A session, as one more connection of it needs to know it.
pub(crate) struct Known {
    pub number: u64,
    /// TSIH.
    pub handle: u16,
    /// The name and secret that were proved for it.
    pub proved: Option<Credentials>,
    pub luns: Vec<u16>,
    /// The loop that it is on.
    pub remote: Remote,
}
