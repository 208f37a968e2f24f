//! What listener, sessions and the export's owner know of each other.

use crate::tls::Tls;
use block::BlockDevice;
use reactor::{Budget, Connections, Full, Share, ShareLimits, Shares, Stream};
use std::cell::RefCell;
use std::net::{IpAddr, Shutdown};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Connections that may be in their handshake. Few are enough, as one takes milliseconds.
const HANDSHAKES: ShareLimits = ShareLimits {
    all: 256,
    network: 128,
    address: 64,
    reserve: 64,
    few: 4,
};

/// What may change while an export runs: it counts for connections to come.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Connections in transmission.
    pub connections: ShareLimits,
    pub tls: Option<Tls>,
}

/// One export, from every side.
pub(crate) struct Shared {
    pub name: String,
    pub volume: String,
    pub device: Arc<dyn BlockDevice>,
    /// What may change while the export runs.
    settings: Mutex<Settings>,
    /// What memory sessions may take together.
    pub memory: Budget,
    /// The volume's size in bytes, refreshed at each change.
    size: AtomicU64,
    pub connections: Connections,
    /// Places of those in transmission.
    places: Shares,
}

/// A connection of an export, from its beginning; left when dropped.
pub(crate) struct Seat {
    entry: reactor::Seat,
    host: IpAddr,
    /// Where it is in transmission.
    place: RefCell<Option<Share>>,
}

/// Why a connection may not go into transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// There are so many.
    All(usize),
    /// So many are of its address.
    Address(usize),
    /// It was ended for another one.
    Ended,
}

impl Seat {
    /// Counts the connection as one of those that the export may have.
    ///
    /// # Errors
    /// When there are as many already.
    pub(crate) fn admit(&self, shared: &Shared) -> Result<(), Refused> {
        let mut place = self.place.borrow_mut();
        if place.is_some() {
            return Ok(());
        }
        let share = shared.places.take(self.host).map_err(|full| {
            let ShareLimits { all, address, .. } = shared.settings().connections;
            match full {
                Full::Address if address < all => Refused::Address(address),
                _ => Refused::All(all),
            }
        })?;
        if !self.entry.admit() {
            return Err(Refused::Ended);
        }
        *place = Some(share);
        Ok(())
    }
}

impl Shared {
    pub(crate) fn new(
        (name, volume): (String, String),
        device: Arc<dyn BlockDevice>,
        memory: Budget,
        settings: Settings,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            volume,
            size: AtomicU64::new(device.geometry().size),
            device,
            places: Shares::new(settings.connections),
            settings: Mutex::new(settings),
            memory,
            connections: Connections::new(HANDSHAKES),
        })
    }

    pub(crate) fn settings(&self) -> Settings {
        let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        settings.clone()
    }

    pub(crate) fn change(&self, settings: Settings) {
        let mut known = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        self.places.limit(settings.connections);
        *known = settings;
    }

    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    pub(crate) fn refresh_size(&self) {
        self.size
            .store(self.device.geometry().size, Ordering::Relaxed);
    }

    /// A seat for a connection that begins its handshake; none when it is to be closed at once.
    pub(crate) fn sit(&self, stream: &Stream) -> Option<Seat> {
        Some(Seat {
            entry: self.connections.enter(stream)?,
            host: stream.counted_by(),
            place: RefCell::default(),
        })
    }

    /// Connections in transmission.
    pub(crate) fn sessions(&self) -> usize {
        self.places.taken()
    }

    /// Ends the listener, and the sessions after what they have in flight.
    pub(crate) fn stop(&self) {
        self.connections.stop(Shutdown::Read);
    }

    /// Ends the sessions whatever they do.
    pub(crate) fn cut(&self) {
        self.connections.stop(Shutdown::Both);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.connections.is_stopping()
    }
}
