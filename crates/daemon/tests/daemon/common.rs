//! A fake protocol, a daemon over the fake engine, and requests.

pub use crate::fake::{Fake, World};

use daemon::ManagerConfig;
use daemon::{Manager, StateDir};
use reactor::{Export, FrontEnd, Parameter, SessionInfo, StartExport};
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A free loopback port outside of the ephemeral range, so that the system does not assign it
/// before the daemon binds it.
pub fn free_port() -> SocketAddr {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let given = range.split_whitespace().next().unwrap();
    let given = given.parse::<u64>().unwrap().max(4096);
    loop {
        let random = RandomState::new().build_hasher().finish();
        let port = 1024 + random % (given - 1024);
        let at = SocketAddr::from(([127, 0, 0, 1], port as u16));
        if TcpListener::bind(at).is_ok() {
            return at;
        }
    }
}

/// Addresses in use by any test of the process.
static OFFERED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

pub fn is_offered(address: &str) -> bool {
    OFFERED.lock().unwrap().contains(address)
}

/// The parameter `queues` by address, for changed exports.
static QUEUES: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

pub fn queues(address: &str) -> Option<String> {
    QUEUES.lock().unwrap().get(address).cloned()
}

struct Offer(String);

impl Export for Offer {
    fn address(&self) -> String {
        self.0.clone()
    }

    fn hints(&self) -> Vec<String> {
        vec![format!("use {}", self.0)]
    }

    /// Three hosts, at an address `idle...` none.
    fn sessions(&self) -> usize {
        match self.0.starts_with("idle") {
            true => 0,
            false => 3,
        }
    }

    /// One session, whose id is the length of the address.
    fn session_list(&self) -> Vec<SessionInfo> {
        vec![SessionInfo {
            id: self.0.len() as u64,
            initiator: "host".to_owned(),
            address: "there".to_owned(),
            target: "shared".to_owned(),
            portal: "here".to_owned(),
            user: None,
            since_s: 1,
            connections: 1,
            commands: 0,
            read: 2,
            written: 3,
        }]
    }

    fn end_session(&self, id: u64) -> bool {
        id == self.0.len() as u64
    }

    fn change(&self, parameters: &BTreeMap<String, String>) -> io::Result<()> {
        if parameters["listen"] != self.0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it stays"));
        }
        let queues = parameters.get("queues").cloned().unwrap_or_default();
        QUEUES.lock().unwrap().insert(self.0.clone(), queues);
        Ok(())
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        OFFERED.lock().unwrap().remove(&self.0);
    }
}

/// A fake protocol; an address can be used once.
pub const FRONT_ENDS: &[FrontEnd] = &[FrontEnd {
    name: "pipe",
    about: "Offers nothing.",
    parameters: &[
        Parameter {
            name: "listen",
            about: "where: any word.",
            required: true,
        },
        Parameter {
            name: "queues",
            about: "how many.",
            required: false,
        },
    ],
    start: |with: StartExport| {
        let address = with.parameters["listen"].clone();
        if !OFFERED.lock().unwrap().insert(address.clone()) {
            let message = format!("{address} is in use: choose another");
            return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
        }
        Ok(Box::new(Offer(address)) as Box<dyn Export>)
    },
}];

/// A daemon without a socket, over `world`, with its state in `folder`.
pub fn manager(world: &Arc<World>, folder: &Path) -> Manager {
    manager_with(world, folder, ManagerConfig::default())
}

/// The same with a configuration.
pub fn manager_with(world: &Arc<World>, folder: &Path, config: ManagerConfig) -> Manager {
    let state = StateDir::open(folder).unwrap();
    let manager = Manager::new(Fake::over(world), FRONT_ENDS, state, config);
    manager.start(&[]).unwrap();
    manager
}

pub fn pool_request(name: &str, drives: &[&str], mirror: bool) -> api::v1::PoolCreate {
    api::v1::PoolCreate {
        name: name.to_owned(),
        vdrives: vec![api::v1::VdriveSpec {
            tier: api::v1::Tier::Slow,
            layout: match mirror {
                true => api::v1::Layout::Mirror,
                false => api::v1::Layout::Concat,
            },
            drives: drives.iter().map(|drive| (*drive).to_owned()).collect(),
        }],
        policy: api::v1::SpacePolicy::SlowFirst,
        shards: 0,
        force: false,
        accept_unmirrored: false,
    }
}

pub fn volume_request(pool: &str, name: &str) -> api::v1::VolumeCreate {
    api::v1::VolumeCreate {
        pool: pool.to_owned(),
        name: name.to_owned(),
        size: 1 << 20,
        lba_size: 512,
        thick: false,
        quota: None,
        reservation: None,
        policy: None,
        group: None,
        overcommit: false,
    }
}

pub fn export_request(name: &str, pool: &str, volume: &str, at: &str) -> api::v1::ExportCreate {
    api::v1::ExportCreate {
        name: name.to_owned(),
        pool: pool.to_owned(),
        volume: volume.to_owned(),
        writable: false,
        kind: "pipe".to_owned(),
        parameters: [("listen".to_owned(), at.to_owned())].into(),
        initiator: None,
    }
}
