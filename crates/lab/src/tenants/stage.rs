//! A pool for several tenants: drives, volumes, exports and policies.

use crate::arguments::Behind;
use crate::daemon::Daemon;
use crate::failure::Result;
use crate::load::{self, Content, Disk};
use crate::rival::write_file;
use crate::scratch::Scratch;
use api::v1::{ExportCreate, SnapshotClone, VolumeChange};
use std::path::Path;

/// The pool.
pub const POOL: &str = "storm";
/// Modelled disks of the slow tier.
const DISKS: u64 = 6;
const GIB: u64 = 1 << 30;

/// Sizes of drives in bytes.
#[derive(Clone, Copy)]
pub struct Drives {
    /// The fast drive.
    pub fast: u64,
    /// Maximum use of the slow tier by volumes.
    pub slow: u64,
}

/// A daemon with a pool.
pub struct Stage {
    /// The daemon. It ends before the folder goes.
    pub daemon: Daemon,
    scratch: Scratch,
    _disks_in: Option<Scratch>,
}

impl Stage {
    /// Starts a daemon, and creates a pool: a fast file with direct I/O before modelled 7,200 rpm disks.
    ///
    /// # Errors
    /// When there is no room, or the daemon does not start.
    pub fn new(convect: &Path, purpose: &str, drives: Drives, behind: &Behind) -> Result<Self> {
        Self::on_files(convect, purpose, drives, behind, &["fast.img"])
    }

    /// The same with a mirror of two fast files.
    ///
    /// # Errors
    /// When there is no room, or the daemon does not start.
    pub fn with_fast_mirror(
        convect: &Path,
        purpose: &str,
        drives: Drives,
        behind: &Behind,
    ) -> Result<Self> {
        let files = ["fast-1.img", "fast-2.img"];
        Self::on_files(convect, purpose, drives, behind, &files)
    }

    fn on_files(
        convect: &Path,
        purpose: &str,
        drives: Drives,
        behind: &Behind,
        fast_files: &[&str],
    ) -> Result<Self> {
        let behind = behind.disks_in.as_deref();
        let here = if behind.is_some() { 0 } else { drives.slow };
        let scratch = Scratch::new(purpose, drives.fast * fast_files.len() as u64 + here + GIB)?;
        let disks_in = behind.map(|parent| Scratch::below(parent, purpose, drives.slow + GIB));
        let disks_in = disks_in.transpose()?;
        let mut fast = Vec::new();
        for name in fast_files {
            write_file(&scratch.join(name), drives.fast)?;
            fast.push(format!("file:{}", scratch.join(name).display()));
        }
        let daemon = Daemon::start(convect, scratch.path(), "")?;
        let size = drives.slow.div_ceil(DISKS).div_ceil(GIB).max(1);
        let folder = disks_in.as_ref().unwrap_or(&scratch);
        let slow: Vec<String> = (1..=DISKS)
            .map(|disk| {
                let path = folder.join(&format!("disk{disk}.img"));
                let path = path.display();
                format!("model:hdd-7200,seed={disk}:file:{path}?size={size}G")
            })
            .collect();
        let mut words = vec!["pool", "create", POOL, "fast"];
        words.extend((fast.len() > 1).then_some("mirror"));
        words.extend(fast.iter().map(String::as_str));
        words.extend(["slow", "stripe:1M"]);
        words.extend(slow.iter().map(String::as_str));
        words.extend(["--policy", "slow-first", "--accept-unmirrored"]);
        daemon.run(&words)?;
        Ok(Self {
            daemon,
            scratch,
            _disks_in: disks_in,
        })
    }

    /// The same with drives in memory, between which nothing moves by itself, and one thread: so the daemon, and not its
    /// clients, is the bottleneck.
    ///
    /// # Errors
    /// When the daemon does not start, or refuses the pool.
    pub fn in_memory(convect: &Path, purpose: &str, drives: Drives) -> Result<Self> {
        let scratch = Scratch::new(purpose, 1 << 20)?;
        let daemon = Daemon::start(convect, scratch.path(), "threads = 1\n")?;
        let drive = |name: &str, size: u64| format!("ram:{name}?size={size}");
        let (fast, slow) = (drive("fast", drives.fast), drive("slow", drives.slow));
        let words = ["pool", "create", POOL, "fast", &fast, "slow", &slow];
        let policy = ["--policy", "fast-first", "--accept-unmirrored"];
        daemon.run(&[&words[..], &policy[..]].concat())?;
        Ok(Self {
            daemon,
            scratch,
            _disks_in: None,
        })
    }

    /// Creates a volume of a number of bytes.
    ///
    /// # Errors
    /// When that is refused.
    pub fn volume(&self, name: &str, bytes: u64) -> Result<()> {
        let wanted = serde_json::json!({"pool": POOL, "name": name, "size": bytes});
        self.daemon.post("/v1/volumes", &wanted)
    }

    /// Exports a volume by its name to a guest, by vhost-user-blk.
    ///
    /// # Errors
    /// When that is refused.
    pub fn export_guest(&self, name: &str) -> Result<Disk> {
        let socket = self.export(name, "vhost-user-blk", "path", "")?;
        Ok(Disk::VhostUserBlk(socket.into()))
    }

    /// Exports a volume by its name by NBD.
    ///
    /// # Errors
    /// When that is refused.
    pub fn export_nbd(&self, name: &str) -> Result<Disk> {
        let socket = self.export(name, "nbd", "listen", "unix:")?;
        Ok(Disk::Nbd(crate::nbd::Place {
            export: name.to_owned(),
            socket: socket.into(),
        }))
    }

    fn export(&self, name: &str, kind: &str, parameter: &str, scheme: &str) -> Result<String> {
        let socket = self.scratch.join(&format!("{name}.sock"));
        let socket = socket.display().to_string();
        let address = (parameter.to_owned(), format!("{scheme}{socket}"));
        let wanted = ExportCreate {
            name: name.to_owned(),
            pool: POOL.to_owned(),
            volume: name.to_owned(),
            writable: false,
            kind: kind.to_owned(),
            parameters: [address].into(),
            initiator: None,
        };
        self.daemon.post("/v1/exports", &wanted)?;
        Ok(socket)
    }

    /// Creates a volume, exports it to a guest, and writes all of it.
    ///
    /// # Errors
    /// When that is refused, or a write fails.
    pub fn filled_guest(&self, name: &str, bytes: u64) -> Result<Disk> {
        self.volume(name, bytes)?;
        let disk = self.export_guest(name)?;
        load::fill(&disk, bytes, Content::Random)?;
        Ok(disk)
    }

    /// Creates a clone of a snapshot, `VOLUME/SNAPSHOT`.
    ///
    /// # Errors
    /// When that is refused.
    pub fn clone_of(&self, snapshot: &str, name: &str) -> Result<()> {
        let wanted = SnapshotClone {
            name: name.to_owned(),
        };
        let path = format!("/v1/snapshots/{POOL}/{snapshot}/clone");
        self.daemon.post(&path, &wanted)
    }

    /// Creates a policy of a level with these figures, as the command has them: `["--min-iops", "15"]`.
    ///
    /// # Errors
    /// When that is refused.
    pub fn policy(&self, name: &str, level: u8, figures: &[&str]) -> Result<()> {
        let (name, level) = (format!("{POOL}/{name}"), level.to_string());
        let words = ["qos", "policy", "create", &name, "--level", &level];
        self.daemon.run(&[&words[..], figures].concat()).map(|_| ())
    }

    /// Assigns a policy to a volume, even with overcommitted minimums; `none` removes it.
    ///
    /// # Errors
    /// When that is refused.
    pub fn give(&self, volume: &str, policy: &str) -> Result<()> {
        let wanted = VolumeChange {
            policy: Some(policy.to_owned()),
            overcommit: true,
            ..VolumeChange::default()
        };
        self.daemon
            .put(&format!("/v1/volumes/{POOL}/{volume}"), &wanted)
    }

    /// The daemon's statistics of a volume's policy, if it has one.
    ///
    /// # Errors
    /// When the daemon does not respond.
    pub fn windows_of(&self, volume: &str) -> Result<Option<(u64, u64)>> {
        let qos = self.daemon.volume(&format!("{POOL}/{volume}"))?.qos;
        Ok(qos.map(|qos| (qos.windows, qos.met)))
    }

    /// Sends everything to the slow tier.
    ///
    /// # Errors
    /// When that fails.
    pub fn cool(&self) -> Result<()> {
        self.daemon.run_long(&["pool", "cool", POOL], || Ok(()))
    }

    /// Content for writes: what looks like data.
    pub fn content(bytes: usize) -> Vec<u8> {
        let mut chance = crate::chance::Chance::new(1);
        let words = (0..bytes / 8).flat_map(|_| chance.next().to_le_bytes());
        words.collect()
    }

    /// Ends the daemon.
    ///
    /// # Errors
    /// When it does not end well.
    pub fn stop(&mut self) -> Result<()> {
        self.daemon.stop()
    }

    /// The result, or the error.
    ///
    /// # Errors
    /// Those of what was measured.
    pub fn explain<T>(&mut self, measured: Result<T>) -> Result<T> {
        self.daemon.explain(measured)
    }
}
