//! A daemon with a pool on drives in memory, and volumes of it exported by vhost-user-blk.

use crate::daemon::Daemon;
use crate::failure::{Failure, Result};
use crate::load::{self, Content, Disk};
use crate::machine;
use std::path::{Path, PathBuf};

/// Fast space for each byte of a volume: writes go to free places.
const FAST_TIMES: u64 = 2;
/// Additional space of a pool.
const POOL_BYTES: u64 = 256 << 20;

/// The daemon and the folder that its sockets are in.
pub struct MemoryPool {
    pub daemon: Daemon,
    folder: PathBuf,
}

impl MemoryPool {
    /// A pool for `bytes` of volumes in all; the daemon has one thread, and a core for it.
    ///
    /// # Errors
    /// When the daemon does not start.
    pub fn new(convect: &Path, folder: &Path, core: usize, bytes: u64) -> Result<Self> {
        let daemon = machine::on_core(core, || Daemon::start(convect, folder, "threads = 1\n"))?;
        let size = FAST_TIMES * bytes + POOL_BYTES;
        let (fast, slow) = (
            format!("ram:fast?size={size}"),
            format!("ram:slow?size={size}"),
        );
        daemon.run(&[
            "pool",
            "create",
            "memory",
            "fast",
            &fast,
            "slow",
            &slow,
            "--policy",
            "fast-first",
            "--accept-unmirrored",
        ])?;
        Ok(Self {
            daemon,
            folder: folder.to_owned(),
        })
    }

    /// Creates a volume of `bytes` and exports it under its name.
    ///
    /// # Errors
    /// When either is refused.
    pub fn export(&self, name: &str, bytes: u64) -> Result<Disk> {
        let (volume, size) = (format!("memory/{name}"), bytes.to_string());
        self.daemon
            .run(&["volume", "create", &volume, "--size", &size])?;
        let socket = self.folder.join(format!("{name}.sock"));
        let socket = socket.display().to_string();
        let create = ["export", "create", name, &volume, "vhost-user-blk"];
        self.daemon
            .run(&[&create[..], &["--path", &socket]].concat())?;
        format!("vhost-user-blk:{socket}")
            .parse()
            .map_err(Failure::new)
    }

    /// Changes how an export's rings wait: `adaptive`, `busy` or `interrupt`.
    ///
    /// # Errors
    /// When that is refused.
    pub fn set_polling(&self, export: &str, mode: &str) -> Result<()> {
        let words = ["export", "set", export, "--polling", mode];
        self.daemon.run(&words).map(|_| ())
    }

    /// Writes all of a disk, and then so often anywhere that the drives' memory has been used once.
    ///
    /// # Errors
    /// When a write fails.
    pub fn fill(&self, disk: &Disk, bytes: u64) -> Result<()> {
        load::fill(disk, bytes, Content::Random)?;
        load::scatter(disk, bytes, FAST_TIMES * bytes, Content::Random)
    }
}
