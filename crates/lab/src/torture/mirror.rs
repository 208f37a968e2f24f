//! Drives of mirrors that go away and return: by command, or because their file is gone when the
//! daemon starts.
//!
//! Never both drives of a mirror: data without a copy cannot be read. A drive goes only when the
//! other one is whole, so that a copy that is wrong is read from alone, sooner or later.

use crate::chance::Chance;
use crate::daemon::Daemon;
use crate::failure::{Failure, Result};
use crate::interrupt;
use api::v1::{Drive, Pool};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long bringing a drive up to date may take when nothing else runs.
const SYNC_TIME: Duration = Duration::from_secs(600);

/// A drive that is away.
enum Away {
    /// By command.
    Offline(String),
    /// Its file has another name.
    Moved(PathBuf),
}

/// The drives of a pool, and who does what to them.
pub struct Mirrors {
    pool: &'static str,
    chance: Chance,
    away: Option<Away>,
    /// The file that is moved once the daemon is dead.
    next: Option<PathBuf>,
    /// Times that a drive was taken offline, that its file was moved, and that it returned.
    pub counts: [u64; 3],
}

fn file_of(drive: &Drive) -> PathBuf {
    PathBuf::from(drive.spec.strip_prefix("file:").unwrap_or(&drive.spec))
}

fn aside(file: &Path) -> PathBuf {
    file.with_extension("away")
}

fn is_whole(pool: &Pool) -> bool {
    let mut drives = pool.vdrives.iter().flat_map(|vdrive| &vdrive.drives);
    drives.all(|drive| drive.state == "online")
}

impl Mirrors {
    /// Over the drives of a pool.
    pub fn new(pool: &'static str, chance: Chance) -> Self {
        Self {
            pool,
            chance,
            away: None,
            next: None,
            counts: [0; 3],
        }
    }

    /// While the load runs: a drive goes or returns, or one is chosen to be gone at the next start.
    pub fn meddle(&mut self, daemon: &Daemon) -> Result<()> {
        if let Some(Away::Offline(drive)) = &self.away {
            daemon.run(&["pool", "online", self.pool, drive, "--background"])?;
            self.away = None;
            self.counts[2] += 1;
            return Ok(());
        }
        let state = daemon.pool(self.pool)?;
        if self.away.is_some() || !is_whole(&state) {
            return Ok(());
        }
        let drives: Vec<&Drive> = state
            .vdrives
            .iter()
            .flat_map(|vdrive| &vdrive.drives)
            .collect();
        let drive = drives[self.chance.below(drives.len() as u64) as usize];
        if self.chance.below(2) == 0 {
            self.next = Some(file_of(drive));
            return Ok(());
        }
        daemon.run(&["pool", "offline", self.pool, &drive.spec])?;
        self.away = Some(Away::Offline(drive.spec.clone()));
        self.counts[0] += 1;
        Ok(())
    }

    /// Between a kill and the next start.
    pub fn while_dead(&mut self) -> Result<()> {
        if let Some(Away::Moved(file)) = &self.away {
            std::fs::rename(aside(file), file)?;
            self.away = None;
            self.counts[2] += 1;
        } else if let Some(file) = self.next.take() {
            std::fs::rename(&file, aside(&file))?;
            self.away = Some(Away::Moved(file));
            self.counts[1] += 1;
        }
        Ok(())
    }

    /// After a start: a pool that misses a drive of its mirrors is open by itself.
    pub fn after_start(&self, daemon: &Daemon) -> Result<()> {
        let Some(Away::Moved(file)) = &self.away else {
            return Ok(());
        };
        let state = daemon.pool(self.pool)?;
        match is_whole(&state) {
            false => Ok(()),
            true => Err(Failure::new(format!(
                "the pool says that it is whole without {}",
                file.display()
            ))),
        }
    }

    /// Whether a drive's file is removed, which a running daemon cannot reopen.
    pub fn is_moved(&self) -> bool {
        matches!(self.away, Some(Away::Moved(_)))
    }

    /// Waits until every drive is whole; brings back the one that is offline.
    pub fn make_whole(&mut self, daemon: &Daemon) -> Result<()> {
        if let Some(Away::Offline(_)) = self.away {
            self.meddle(daemon)?;
        }
        let whole = interrupt::wait_for(SYNC_TIME, || Ok(is_whole(&daemon.pool(self.pool)?)))?;
        if whole {
            return Ok(());
        }
        let messages = daemon.pool(self.pool)?.messages.join("; ");
        Err(Failure::new(format!(
            "the mirrors are not whole after {SYNC_TIME:?}: {messages}"
        )))
    }

    /// Calls `check` with each drive offline in turn, so that every block is read from the other.
    pub fn each_alone(
        &mut self,
        daemon: &Daemon,
        mut check: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let state = daemon.pool(self.pool)?;
        for drive in state.vdrives.iter().flat_map(|vdrive| &vdrive.drives) {
            daemon.run(&["pool", "offline", self.pool, &drive.spec])?;
            self.away = Some(Away::Offline(drive.spec.clone()));
            check()?;
            self.make_whole(daemon)?;
        }
        let state = daemon.pool(self.pool)?;
        let drives = state.vdrives.iter().flat_map(|vdrive| &vdrive.drives);
        let repaired: u64 = drives.map(|drive| drive.repaired).sum();
        match repaired {
            0 => Ok(()),
            blocks => Err(Failure::new(format!(
                "{blocks} blocks of an intact mirror had to be repaired from the other drive"
            ))),
        }
    }
}
