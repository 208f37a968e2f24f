//! State shared by listener, sessions and the owner of the export.

use crate::tls::Tls;
use block::BlockDevice;
use reactor::{Budget, Connections, Full, Origin, Share, ShareLimits, Shares, Stream};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Shutdown};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Limits of connections in their handshake, which takes milliseconds.
const HANDSHAKES: ShareLimits = ShareLimits {
    all: 256,
    network: 128,
    address: 64,
    reserve: 64,
    few: 4,
};

/// Settings that may change while an export runs; they apply to new connections.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Limits of connections in transmission.
    pub connections: ShareLimits,
    pub tls: Option<Tls>,
}

/// An export's shared state.
pub(crate) struct Shared {
    pub name: String,
    pub volume: String,
    pub device: Arc<dyn BlockDevice>,
    /// Changeable settings.
    settings: Mutex<Settings>,
    /// Memory budget of the sessions.
    pub memory: Budget,
    /// The volume's size in bytes, updated at each change.
    size: AtomicU64,
    pub connections: Connections,
    /// Connections in transmission.
    places: Shares,
}

/// A connection of an export, until it is dropped.
pub(crate) struct Seat {
    entry: reactor::Seat,
    host: IpAddr,
    /// Its place among those in transmission.
    place: RefCell<Option<Share>>,
}

/// Why a connection was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// The export's limit is reached.
    All(usize),
    /// The limit of its address is reached.
    Address(usize),
    /// It was closed in favour of another one.
    Ended,
}

impl Seat {
    /// Admits the connection to transmission.
    ///
    /// # Errors
    /// When a limit is reached.
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

    /// Admits a connection to its handshake; none if it must be closed.
    pub(crate) fn sit(&self, stream: &Stream) -> Option<Seat> {
        Some(Seat {
            entry: self.connections.enter(stream)?,
            host: stream.counted_by(),
            place: RefCell::default(),
        })
    }

    /// Number of connections in transmission.
    pub(crate) fn sessions(&self) -> usize {
        self.places.taken()
    }

    /// The hosts of these connections. Clients of a Unix socket have no address.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let local = Origin::of(Ipv4Addr::UNSPECIFIED.into());
        let origins = self.places.origins().into_iter();
        let name = |origin: Origin| match origin == local {
            true => "a program on this server".to_owned(),
            false => origin.to_string(),
        };
        origins.map(name).collect()
    }

    /// Stops the listener, and the sessions after their requests in flight.
    pub(crate) fn stop(&self) {
        self.connections.stop(Shutdown::Read);
    }

    /// Closes the sessions immediately.
    pub(crate) fn cut(&self) {
        self.connections.stop(Shutdown::Both);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.connections.is_stopping()
    }
}
