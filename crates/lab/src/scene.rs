//! The common setup of measurements: a fast file over modelled disks, one filled volume.

use crate::arguments::Behind;
use crate::daemon::Daemon;
use crate::failure::Result;
use crate::fio::{self, Load, Target};
use crate::rival::write_file;
use crate::scratch::Scratch;
use crate::screen::{self, Progress};
use std::path::{Path, PathBuf};
use std::time::Instant;
use units::format_bytes;

/// The pool.
pub const POOL: &str = "demo";
/// The volume.
pub const VOLUME: &str = "demo/disk";
/// Modelled disks of the slow tier, where nothing else is said.
pub const DISKS: u64 = 6;
const GIB: u64 = 1 << 30;

/// Sizes in bytes, and how many disks.
#[derive(Clone, Copy)]
pub struct Sizes {
    /// Of the volume.
    pub volume: u64,
    /// Of what is written of it.
    pub used: u64,
    /// Of the fast drive.
    pub fast: u64,
    /// Of the raw file beside the pool.
    pub raw: u64,
    /// Modelled disks of the slow tier.
    pub disks: u64,
    /// Of all of those, at least.
    pub slow: u64,
    /// Of the RAM cache, where that is not to be what the daemon gives a pool by itself.
    pub ram: Option<u64>,
}

impl Sizes {
    /// All of the volume is written.
    pub fn whole(volume: u64, fast: u64, raw: u64) -> Self {
        Self {
            volume,
            used: volume,
            fast,
            raw,
            disks: DISKS,
            slow: volume * 3 / 2,
            ram: None,
        }
    }
}

/// A daemon with a tiered pool. The daemon ends before the folder goes.
pub struct Scene {
    /// The daemon.
    pub daemon: Daemon,
    /// Everything is in here, but for the modelled disks where those are elsewhere.
    pub scratch: Scratch,
    disks_in: Option<Scratch>,
}

impl Scene {
    /// Makes the drives, those behind modelled disks where `behind` says, starts a daemon, makes the pool and the
    /// volume and exports it by NBD.
    pub fn new(convect: &Path, purpose: &str, sizes: Sizes, behind: &Behind) -> Result<Self> {
        let scratch = Scratch::new(purpose, sizes.used + sizes.fast + sizes.raw + GIB)?;
        let disks_in = behind.disks_in.as_deref();
        let disks_in = disks_in.map(|parent| Scratch::below(parent, purpose, sizes.used + GIB));
        let disks_in = disks_in.transpose()?;
        write_file(&scratch.join("fast.img"), sizes.fast)?;
        write_file(&scratch.join("raw.img"), sizes.raw)?;
        let ram = sizes.ram.map(|bytes| format!("ram_tier = {bytes}\n"));
        let daemon = Daemon::start(convect, scratch.path(), &ram.unwrap_or_default())?;
        let scene = Self {
            daemon,
            scratch,
            disks_in,
        };
        scene.create_pool(&sizes)?;
        Ok(scene)
    }

    fn create_pool(&self, sizes: &Sizes) -> Result<()> {
        let &Sizes { volume, disks, .. } = sizes;
        let disk_gib = sizes.slow.div_ceil(disks).div_ceil(GIB).max(1);
        let mut words = vec![
            "pool".to_owned(),
            "create".into(),
            POOL.into(),
            "fast".into(),
        ];
        words.push(format!("file:{}", self.scratch.join("fast.img").display()));
        words.push("slow".to_owned());
        // One drive makes no stripe.
        words.extend((disks > 1).then(|| "stripe:1M".to_owned()));
        for disk in 1..=disks {
            let folder = self.disks_in.as_ref().unwrap_or(&self.scratch);
            let path = folder.join(&format!("disk{disk}.img"));
            words.push(format!(
                "model:hdd-7200,seed={disk}:file:{}?size={disk_gib}G",
                path.display()
            ));
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let policy = ["--policy", "slow-first", "--accept-unmirrored"];
        self.daemon.run(&[&words[..], &policy[..]].concat())?;
        self.daemon
            .run(&["volume", "create", VOLUME, "--size", &volume.to_string()])?;
        let listen = format!("unix:{}", self.nbd_socket().display());
        self.daemon.run(&[
            "export", "create", "disk", VOLUME, "nbd", "--listen", &listen,
        ])?;
        Ok(())
    }

    /// Where the volume is exported by NBD.
    pub fn nbd_socket(&self) -> PathBuf {
        self.scratch.join("nbd.sock")
    }

    /// The volume for fio.
    pub fn target(&self) -> Target {
        Target::Nbd {
            export: "disk".to_owned(),
            socket: self.nbd_socket(),
        }
    }

    /// The file beside the pool that is as the fast drive was before the pool took it.
    pub fn raw_file(&self) -> PathBuf {
        self.scratch.join("raw.img")
    }

    /// Writes a number of bytes, from the volume's start on.
    pub fn fill(&self, used: u64) -> Result<()> {
        self.fill_other(self.target(), used)
    }

    /// The same with another volume of the pool.
    pub fn fill_other(&self, target: Target, used: u64) -> Result<()> {
        let begun = Instant::now();
        let before = self.daemon.counters(POOL)?.write_bytes;
        let mut progress = Progress::new();
        fio::run(&Load::fill(target, used), self.scratch.path(), || {
            if progress.is_due() {
                let written = self.daemon.counters(POOL)?.write_bytes - before;
                let share = written as f64 / used as f64;
                progress.draw(&format!(
                    "  filling {} {} of {}",
                    screen::bar(share, 30),
                    format_bytes(written),
                    format_bytes(used)
                ));
            }
            Ok(())
        })?;
        progress.clear();
        let seconds = begun.elapsed().as_secs_f64();
        println!("  filled {} in {seconds:.0} s", format_bytes(used));
        Ok(())
    }

    /// Sends everything to the slow tier, so that the volume is cold.
    pub fn cool(&self) -> Result<()> {
        let begun = Instant::now();
        let mut progress = Progress::new();
        self.daemon.run_long(&["pool", "cool", POOL], || {
            if progress.is_due() {
                let left = self.daemon.pool(POOL)?.fast_dirty;
                progress.draw(&format!(
                    "  cooling: {} left on the fast tier",
                    format_bytes(left)
                ));
            }
            Ok(())
        })?;
        progress.clear();
        println!(
            "  everything sent to the slow tier in {:.0} s",
            begun.elapsed().as_secs_f64()
        );
        Ok(())
    }

    /// Holds or releases promotion.
    pub fn hold_promotion(&self, hold: bool) -> Result<()> {
        let state = if hold { "on" } else { "off" };
        self.daemon.run(&["pool", "hold-promotion", POOL, state])?;
        Ok(())
    }
}
