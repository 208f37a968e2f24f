//! Registrations and the reservation of a unit.

use super::keep::decode;
use crate::nexus::Ports;
use crate::ranges::{Held, Ranges};
use crate::unit::lock;
use reactor::Keeper;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Registrations of one unit.
pub(super) const REGISTRATIONS_MAX: usize = 256;

/// Types of a persistent reservation (SPC-4 table 68).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    WriteExclusive,
    ExclusiveAccess,
    WriteExclusiveRegistrants,
    ExclusiveAccessRegistrants,
    WriteExclusiveAll,
    ExclusiveAccessAll,
}

impl Kind {
    pub(super) fn parse(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::WriteExclusive,
            3 => Self::ExclusiveAccess,
            5 => Self::WriteExclusiveRegistrants,
            6 => Self::ExclusiveAccessRegistrants,
            7 => Self::WriteExclusiveAll,
            8 => Self::ExclusiveAccessAll,
            _ => return None,
        })
    }

    pub(super) fn code(self) -> u8 {
        match self {
            Self::WriteExclusive => 1,
            Self::ExclusiveAccess => 3,
            Self::WriteExclusiveRegistrants => 5,
            Self::ExclusiveAccessRegistrants => 6,
            Self::WriteExclusiveAll => 7,
            Self::ExclusiveAccessAll => 8,
        }
    }

    /// Everybody who is registered holds it.
    pub(super) fn is_all(self) -> bool {
        matches!(self, Self::WriteExclusiveAll | Self::ExclusiveAccessAll)
    }

    /// Every registrant has the holder's rights.
    pub(super) fn is_for_registrants(self) -> bool {
        !matches!(self, Self::WriteExclusive | Self::ExclusiveAccess)
    }

    pub(super) fn excludes_reads(self) -> bool {
        matches!(
            self,
            Self::ExclusiveAccess | Self::ExclusiveAccessRegistrants | Self::ExclusiveAccessAll
        )
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Registration {
    pub ports: Ports,
    pub key: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Reservation {
    /// Its creator. For types held by all registrants only informational.
    pub holder: Ports,
    pub kind: Kind,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct State {
    /// Counts changes of registrations (PRGENERATION).
    pub generation: u32,
    pub(super) registrations: Vec<Registration>,
    pub(super) reservation: Option<Reservation>,
    /// All of it is to be kept when the power is lost.
    pub persists: bool,
    /// The nexus that has reserved the unit by RESERVE(6).
    pub legacy: Option<u64>,
}

impl State {
    pub(super) fn registration(&self, ports: &Ports) -> Option<&Registration> {
        self.registrations
            .iter()
            .find(|known| known.ports == *ports)
    }

    pub(super) fn is_holder(&self, ports: &Ports) -> bool {
        match &self.reservation {
            Some(held) if held.kind.is_all() => self.registration(ports).is_some(),
            Some(held) => held.holder == *ports,
            None => false,
        }
    }
}

/// The reservations of one unit.
pub(crate) struct Reservations {
    state: Mutex<State>,
    /// Something is reserved: without it no command needs to look further.
    active: AtomicBool,
    keeper: Arc<dyn Keeper>,
    /// Changes come one after the other, each as a whole.
    turns: Arc<Ranges>,
}

impl Reservations {
    /// Those that `keeper` has kept. Not to be called on a loop.
    pub(crate) fn new(keeper: Arc<dyn Keeper>) -> io::Result<Self> {
        let state = match keeper.load()? {
            None => State::default(),
            Some(kept) => decode(&kept).ok_or_else(|| {
                io::Error::other(
                    "the stored reservations of this volume cannot be read, and without \
                     them fenced hosts could write: use the version that stored them",
                )
            })?,
        };
        Ok(Self {
            active: AtomicBool::new(state.reservation.is_some()),
            state: Mutex::new(state),
            keeper,
            turns: Arc::default(),
        })
    }

    /// The turn of a change, until it is dropped.
    pub(crate) async fn turn(&self) -> Held {
        self.turns.hold(0..1, true).await
    }

    /// The state of now, for a change.
    pub(crate) fn state(&self) -> State {
        self.lock().clone()
    }

    /// Takes over a changed state. What RESERVE(6) did meanwhile stays.
    pub(crate) fn install(&self, changed: State) {
        let mut state = self.lock();
        let legacy = state.legacy;
        *state = State { legacy, ..changed };
        self.refresh(&state);
    }

    pub(crate) fn keeper(&self) -> &Arc<dyn Keeper> {
        &self.keeper
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    /// To be called under the lock after each change.
    pub(super) fn refresh(&self, state: &State) {
        let active = state.reservation.is_some() || state.legacy.is_some();
        self.active.store(active, Ordering::Release);
    }

    /// RESERVE(6). False when that is a conflict.
    pub(crate) fn reserve_legacy(&self, nexus: u64) -> bool {
        let mut state = self.lock();
        let free = state.legacy.is_none_or(|holder| holder == nexus);
        if !free || !state.registrations.is_empty() {
            return false;
        }
        state.legacy = Some(nexus);
        self.refresh(&state);
        true
    }

    /// Ends the RESERVE(6) reservation of `nexus`, or of any nexus.
    pub(crate) fn release_legacy(&self, nexus: Option<u64>) {
        let mut state = self.lock();
        if nexus.is_none() || state.legacy == nexus {
            state.legacy = None;
            self.refresh(&state);
        }
    }

    /// Whether RELEASE(6) is a conflict: something is registered.
    pub(crate) fn refuses_release(&self) -> bool {
        !self.lock().registrations.is_empty()
    }
}
