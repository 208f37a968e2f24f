//! State shared by the exports of the process: portals, targets and units.
//!
//! Exports are started independently, yet may share a portal, be units of one target, or export one
//! volume, whose reservations and locks are then shared.

use crate::access::Peer;
use crate::portal::Portal;
use crate::target::{Granted, Target};
use block::BlockDevice;
use reactor::{Keeper, Remote};
use scsi::Unit;
use std::collections::HashMap;
use std::io::Result;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// Portals, under a separate lock: it is held while a portal's start waits for a loop, on which
/// logins look up targets.
type Portals = HashMap<SocketAddr, Weak<Portal>>;

#[derive(Default)]
struct Registry {
    targets: HashMap<String, Arc<Target>>,
    units: HashMap<String, Weak<Unit>>,
}

fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: OnceLock<Mutex<Registry>> = OnceLock::new();
    let registry = REGISTRY.get_or_init(Mutex::default);
    registry.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The portal at an address, which starts listening if it is new.
pub(crate) fn portal(address: SocketAddr, remotes: &[Remote]) -> Result<Arc<Portal>> {
    static PORTALS: OnceLock<Mutex<Portals>> = OnceLock::new();
    let portals = PORTALS.get_or_init(Mutex::default);
    let mut portals = portals.lock().unwrap_or_else(PoisonError::into_inner);
    portals.retain(|_, portal| portal.strong_count() > 0);
    if let Some(portal) = portals.get(&address).and_then(Weak::upgrade) {
        return Ok(portal);
    }
    let portal = Portal::start(address, remotes)?;
    portals.insert(portal.address, Arc::downgrade(&portal));
    Ok(portal)
}

/// The target with a name, created if it does not exist.
pub(crate) fn target(name: &str) -> Arc<Target> {
    let mut registry = registry();
    let known = registry.targets.entry(name.to_owned());
    known.or_insert_with(|| Target::new(name)).clone()
}

/// Removes a target without units.
pub(crate) fn tidy(name: &str) {
    let mut registry = registry();
    if registry
        .targets
        .get(name)
        .is_some_and(|target| target.is_empty())
    {
        registry.targets.remove(name);
    }
}

/// The unit of a volume, shared by all of its exports. Must not be called on a loop.
///
/// # Errors
/// When the stored reservations cannot be read.
pub(crate) fn unit(device: &Arc<dyn BlockDevice>, keeper: Arc<dyn Keeper>) -> Result<Arc<Unit>> {
    let serial = device.geometry().serial;
    let mut registry = registry();
    registry.units.retain(|_, unit| unit.strong_count() > 0);
    if let Some(unit) = registry.units.get(&serial).and_then(Weak::upgrade) {
        return Ok(unit);
    }
    let unit = Unit::new(device, keeper)?;
    registry.units.insert(serial, Arc::downgrade(&unit));
    Ok(unit)
}

/// The target with a name.
pub(crate) fn find(name: &str) -> Option<Arc<Target>> {
    registry().targets.get(name).cloned()
}

/// Group tag of a portal in the first of its targets that require a secret; `None` if no target
/// does.
pub(crate) fn secret_at(portal: SocketAddr) -> Option<u16> {
    let mut targets: Vec<_> = registry().targets.values().cloned().collect();
    targets.sort_by(|left, right| left.name.cmp(&right.name));
    let asking = targets.iter().find(|target| target.asks_at(portal))?;
    Some(asking.group(portal))
}

/// Accessible units of an initiator, by target.
pub(crate) fn granted(peer: &Peer) -> Vec<(Arc<Target>, Granted)> {
    let mut targets: Vec<_> = registry().targets.values().cloned().collect();
    targets.sort_by(|left, right| left.name.cmp(&right.name));
    let granted = targets.into_iter().map(|target| {
        let granted = target.granted(peer);
        (target, granted)
    });
    granted
        .filter(|(_, granted)| !granted.0.is_empty())
        .collect()
}
