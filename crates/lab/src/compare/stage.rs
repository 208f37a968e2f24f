//! Every server, started when it is first needed.

use super::arguments::Setup;
use super::loop_device::LoopDevice;
use super::peers::{Peer, Places, TARGET, free_portal};
use super::system::System;
use crate::daemon::Daemon;
use crate::failure::{Failure, Result};
use crate::load::{self, Disk};
use crate::machine;
use crate::rival::write_file;
use crate::scratch::Scratch;
use std::collections::BTreeMap;
use std::path::Path;

/// Fast space for each byte of a volume: writes go to free places.
const FAST_TIMES: u64 = 2;
/// Additional space of a pool.
const POOL_BYTES: u64 = 256 << 20;
/// Where a disk is, and whose processor time it takes.
#[derive(Clone, Debug)]
pub struct Served {
    pub disk: Disk,
    pub pid: Option<u32>,
}

/// The servers.
pub struct Stage<'a> {
    with: &'a Setup,
    convect: &'a Path,
    served: BTreeMap<System, Result<Served, String>>,
    /// Taken away before what serves their files.
    loops: Vec<LoopDevice>,
    peers: Vec<Peer>,
    /// By pool.
    daemons: BTreeMap<&'static str, Daemon>,
    memory: Scratch,
    scratch: Scratch,
}

impl<'a> Stage<'a> {
    /// Nothing is started yet.
    ///
    /// # Errors
    /// When there is no room for files.
    pub fn new(convect: &'a Path, with: &'a Setup) -> Result<Self> {
        // The file drive and the raw file.
        let on_disk = (FAST_TIMES + 1) * with.size + POOL_BYTES;
        Ok(Self {
            with,
            convect,
            served: BTreeMap::new(),
            loops: Vec::new(),
            peers: Vec::new(),
            daemons: BTreeMap::new(),
            memory: Scratch::below(&with.memory_in, "compare", with.size)?,
            scratch: Scratch::new("compare", on_disk)?,
        })
    }

    /// A system that serves, all of it written once; or why it does not.
    ///
    /// # Errors
    /// When one of ours does not: there is nothing to compare then.
    pub fn served(&mut self, system: System) -> Result<Result<Served, String>> {
        if let Some(known) = self.served.get(&system) {
            return Ok(known.clone());
        }
        let started = self.start(system);
        let started = match started {
            Err(failure) if failure.is_interrupt() => return Err(failure),
            Err(failure) if system.is_convect() => return Err(failure),
            other => other.map_err(|failure| failure.to_string()),
        };
        self.served.insert(system, started.clone());
        Ok(started)
    }

    fn start(&mut self, system: System) -> Result<Served> {
        let served = match system {
            System::RawFile => {
                let path = self.scratch.join("raw.img");
                write_file(&path, self.with.size)?;
                return Ok(Served {
                    disk: Disk::File(path),
                    pid: None,
                });
            }
            System::ConvectLoop => self.start_loop(System::ConvectFuse)?,
            System::QemuLoop => self.start_loop(System::QemuFuse)?,
            _ if system.is_convect() => self.start_convect(system)?,
            _ => {
                let places = Places {
                    memory: self.memory.path(),
                    folder: self.scratch.path(),
                    size: self.with.size,
                };
                let peer = machine::on_core(self.with.server_core, || places.serve(system))?;
                let served = Served {
                    disk: peer.disk.clone(),
                    pid: Some(peer.pid()),
                };
                self.peers.push(peer);
                served
            }
        };
        // Null drives give zeroes, which is what their checksums have to be of.
        let content = match system {
            System::ConvectNull => load::Content::Zeroes,
            _ => load::Content::Random,
        };
        load::fill(&served.disk, self.with.size, content.clone())?;
        if system.is_convect() {
            // Writes go to free places: until all were used once, the kernel clears memory for them.
            let bytes = FAST_TIMES * self.with.size + POOL_BYTES;
            load::scatter(&served.disk, self.with.size, bytes, content)?;
        }
        Ok(served)
    }

    /// The pool of a system and its tiers.
    fn pool(&self, system: System) -> (&'static str, Vec<String>) {
        let fast = FAST_TIMES * self.with.size + POOL_BYTES;
        let drive = |kind: &str, name: &str| format!("{kind}:{name}?size={fast}");
        let file = self.scratch.join("fast.img").display().to_string();
        let (pool, tiers) = match system {
            System::ConvectNull => ("null", vec![drive("null", "fast"), drive("null", "slow")]),
            System::ConvectMirror => (
                "mirror",
                vec![
                    drive("ram", "one"),
                    drive("ram", "other"),
                    drive("ram", "slow"),
                ],
            ),
            System::ConvectFile => ("file", vec![drive("file", &file), drive("ram", "slow")]),
            _ => ("ram", vec![drive("ram", "fast"), drive("ram", "slow")]),
        };
        let mut words = vec!["fast".to_owned()];
        words.extend((tiers.len() > 2).then(|| "mirror".to_owned()));
        let (slow, fast) = tiers.split_last().expect("two tiers");
        words.extend_from_slice(fast);
        words.extend(["slow".to_owned(), slow.clone()]);
        (pool, words)
    }

    fn launch(&self, pool: &'static str, tiers: &[String]) -> Result<Daemon> {
        let folder = self.scratch.join(pool);
        std::fs::create_dir(&folder)?;
        let (core, convect) = (self.with.server_core, self.convect);
        let daemon = machine::on_core(core, || Daemon::start(convect, &folder, "threads = 1\n"))?;
        let mut create = vec!["pool", "create", pool];
        create.extend(tiers.iter().map(String::as_str));
        create.extend(["--policy", self.with.policy.name(), "--accept-unmirrored"]);
        daemon.run(&create)?;
        let (volume, size) = (format!("{pool}/disk"), self.with.size.to_string());
        daemon.run(&["volume", "create", &volume, "--size", &size])?;
        Ok(daemon)
    }

    /// A loop device on the file that another system serves.
    fn start_loop(&mut self, below: System) -> Result<Served> {
        let below = self.served(below)?.map_err(Failure::new)?;
        let Disk::File(path) = &below.disk else {
            return Err(Failure::new(format!("{} is no file", below.disk)));
        };
        let device = LoopDevice::over(path)?;
        let disk = Disk::File(device.path().to_owned());
        self.loops.push(device);
        Ok(Served {
            disk,
            pid: below.pid,
        })
    }

    fn start_convect(&mut self, system: System) -> Result<Served> {
        let (pool, tiers) = self.pool(system);
        if !self.daemons.contains_key(pool) {
            let daemon = self.launch(pool, &tiers)?;
            self.daemons.insert(pool, daemon);
        }
        let daemon = &self.daemons[pool];
        let folder = self.scratch.join(pool);
        let volume = format!("{pool}/disk");
        let disk = match system {
            System::ConvectNbd => {
                let socket = folder.join("nbd.sock");
                let listen = format!("unix:{}", socket.display());
                daemon.run(&[
                    "export", "create", "nbd", &volume, "nbd", "--listen", &listen,
                ])?;
                format!("nbd+unix:///nbd?socket={}", socket.display())
            }
            System::ConvectFuse => {
                let mount = folder.join("files");
                std::fs::create_dir(&mount)?;
                let path = mount.display().to_string();
                daemon.run(&[
                    "export", "create", "disk.img", &volume, "fuse", "--mount", &path,
                ])?;
                format!("file:{}", mount.join("disk.img").display())
            }
            System::ConvectIscsi => {
                let portal = free_portal()?.to_string();
                daemon.run(&[
                    "export", "create", "lun", &volume, "iscsi", "--portal", &portal, "--target",
                    TARGET,
                ])?;
                format!("iscsi://{portal}/{TARGET}/0")
            }
            _ => {
                let socket = folder.join("guest.sock").display().to_string();
                let create = ["export", "create", "guest", &volume, "vhost-user-blk"];
                daemon.run(&[&create[..], &["--path", &socket]].concat())?;
                format!("vhost-user-blk:{socket}")
            }
        };
        Ok(Served {
            disk: disk.parse().map_err(Failure::new)?,
            pid: Some(daemon.pid()),
        })
    }

    /// An error that says so when one of the daemons has ended.
    pub fn explain<T>(&mut self, mut measured: Result<T>) -> Result<T> {
        for daemon in self.daemons.values_mut() {
            measured = daemon.explain(measured);
        }
        measured
    }

    /// Ends the daemons in order.
    ///
    /// # Errors
    /// When one does not.
    pub fn stop(&mut self) -> Result<()> {
        self.loops.clear();
        self.daemons.values_mut().try_for_each(Daemon::stop)
    }
}
