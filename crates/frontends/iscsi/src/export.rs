//! An export: a unit of a target at its portals, and its shutdown.

use crate::parameters::{Wanted, check_states, parse};
use crate::portal::Portal;
use crate::registry;
use crate::target::{Offer, Target};
use block::BlockDevice;
use reactor::{Export, SessionInfo, Space, StartExport};
use scsi::{AccessState, PortGroups, Unit};
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

/// Time limit for sessions to complete commands in flight when the export stops, and then to end
/// after their sockets were shut down.
const ANSWER_MAX: Duration = Duration::from_secs(2);
const END_MAX: Duration = Duration::from_secs(5);
/// Ids of this protocol's listeners for volume changes: "iscs" followed by a counter.
static NEXT_LISTENER: AtomicU64 = AtomicU64::new(0x6973_6373_0000_0000);

struct IscsiExport {
    target: Arc<Target>,
    lun: u16,
    addresses: Vec<SocketAddr>,
    portals: Vec<Arc<Portal>>,
    groups: Arc<PortGroups>,
    /// Target portal group tags of the portals.
    numbers: Vec<u16>,
    /// Parameters at the start that cannot change while it runs.
    parameters: BTreeMap<String, String>,
    export: String,
    watch: Arc<Watch>,
}

/// Follows changes of the volume: its size, and its end.
struct Watch {
    device: Arc<dyn BlockDevice>,
    unit: Arc<Unit>,
    number: u64,
    ended: AtomicBool,
    waker: std::sync::Mutex<Option<Waker>>,
}

impl Watch {
    fn poll(&self, waker: &Waker) -> Poll<()> {
        *self
            .waker
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(waker.clone());
        self.device.on_change(self.number, waker.clone());
        self.unit.refresh(&self.device);
        match self.ended.load(Ordering::Acquire) || self.device.is_gone() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        let waker = self
            .waker
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Starts an export. Must not be called on one of its loops, as it waits for the first of them.
pub(crate) fn start(export: StartExport) -> Result<Box<dyn Export>> {
    let wanted = parse(&export.parameters, &export.name)?;
    let portals: Result<Vec<_>> = wanted
        .portals
        .iter()
        .map(|address| registry::portal(*address, &export.remotes))
        .collect();
    let portals = portals?;
    let addresses: Vec<SocketAddr> = portals.iter().map(|portal| portal.address).collect();
    let Wanted {
        target: name,
        lun,
        groups: wanted_numbers,
        grant,
        states,
        ..
    } = wanted;
    check_states(&states, &addresses)?;
    let device = export.device;
    let unit = registry::unit(&device, export.keeper)?;
    let target = registry::target(&name);
    let numbers = target.number(&addresses, wanted_numbers.as_deref())?;
    let groups = Arc::new(PortGroups::new(states_of(&numbers, &addresses, &states)));
    let offer = Offer {
        unit: unit.clone(),
        device: device.clone(),
        open_for: export.open_for,
        memory: export.memory,
        portals: addresses.clone(),
        groups: groups.clone(),
        grant,
    };
    if !target.add(lun, offer) {
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            format!("target {name} already has a unit {lun}: choose another --lun or --target"),
        ));
    }
    let watch = Arc::new(Watch {
        device,
        unit,
        number: NEXT_LISTENER.fetch_add(1, Ordering::Relaxed),
        ended: AtomicBool::new(false),
        waker: std::sync::Mutex::default(),
    });
    let watching = watch.clone();
    if let Some(first) = export.remotes.first() {
        first.spawn(move |_| std::future::poll_fn(move |context| watching.poll(context.waker())));
    }
    let mut parameters = export.parameters;
    parameters.insert("groups".to_owned(), listed(&numbers));
    Ok(Box::new(IscsiExport {
        target,
        lun,
        addresses,
        portals,
        groups,
        numbers,
        parameters,
        export: export.name,
        watch,
    }))
}

fn listed(numbers: &[u16]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u16::to_string).collect();
    numbers.join(",")
}

/// ALUA states of the portals, by group tag.
fn states_of(
    numbers: &[u16],
    portals: &[SocketAddr],
    states: &[(SocketAddr, AccessState)],
) -> Vec<(u16, AccessState)> {
    let state = |portal: &SocketAddr| {
        let named = states.iter().find(|(known, _)| known == portal);
        named.map_or(AccessState::Optimized, |(_, state)| *state)
    };
    let pairs = numbers.iter().zip(portals);
    pairs
        .map(|(number, portal)| (*number, state(portal)))
        .collect()
}

/// Parameters that can change while hosts are connected.
const CHANGEABLE: [&str; 7] = [
    "connections",
    "initiators",
    "addresses",
    "chap",
    "without-authentication",
    "read-only",
    "states",
];

impl Export for IscsiExport {
    fn address(&self) -> String {
        let portals: Vec<String> = self.addresses.iter().map(SocketAddr::to_string).collect();
        format!(
            "iscsi:{}/{}/{}",
            portals.join(","),
            self.target.name,
            self.lun
        )
    }

    fn hints(&self) -> Vec<String> {
        let name = &self.target.name;
        let mut hints = Vec::new();
        if let Some(portal) = self.addresses.first() {
            hints.push(format!("iscsiadm -m discovery -t sendtargets -p {portal}"));
            hints.push(format!("iscsiadm -m node -T {name} -p {portal} --login"));
            hints.push(format!(
                "qemu-img info iscsi://{portal}/{name}/{}",
                self.lun
            ));
        }
        hints
    }

    fn chosen(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("groups".to_owned(), listed(&self.numbers))])
    }

    fn sessions(&self) -> usize {
        self.target.sessions(self.lun)
    }

    fn session_list(&self) -> Vec<SessionInfo> {
        self.target.list(self.lun)
    }

    fn end_session(&self, id: u64) -> bool {
        self.target.end_session(id)
    }

    fn troubles(&self) -> Vec<String> {
        self.target.troubles(self.lun)
    }

    fn note_space(&self, space: Space, warns: bool) {
        self.watch.unit.note_space(space, warns);
    }

    /// Applies access rights and portal states. The file of secrets is read again.
    fn change(&self, parameters: &BTreeMap<String, String>) -> Result<()> {
        let mut names = self.parameters.keys().chain(parameters.keys());
        let fixed = names.find(|name| {
            let is_chosen = *name == "groups" && !parameters.contains_key(*name);
            !is_chosen
                && !CHANGEABLE.contains(&name.as_str())
                && self.parameters.get(*name) != parameters.get(*name)
        });
        if let Some(name) = fixed {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "{name} cannot be changed while hosts are connected: delete the export and \
                     create it again. Changeable parameters: {}",
                    CHANGEABLE.join(", ")
                ),
            ));
        }
        let wanted = parse(parameters, &self.export)?;
        check_states(&wanted.states, &self.addresses)?;
        self.target.regrant(self.lun, wanted.grant);
        let states = states_of(&self.numbers, &self.addresses, &wanted.states);
        self.groups
            .change(&self.watch.unit, &self.target.name, &states);
        Ok(())
    }
}

impl Drop for IscsiExport {
    /// Waits, for a limited time, until the sessions have ended and the addresses are released.
    fn drop(&mut self) {
        self.watch.end();
        self.target.remove(self.lun, (ANSWER_MAX, END_MAX));
        registry::tidy(&self.target.name);
        self.portals.clear();
    }
}
