//! One pass over a pool: its mode, its findings, its progress.

use crate::fetch::Got;
use crate::pool::Pool;
use crate::report::{Report, Verdict};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use units::{Place, VdriveId};

/// The mode of a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Read only.
    Look,
    /// Write good copies over bad ones.
    Mend,
}

/// How far a pass is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Blocks whose map was examined, and with data read.
    pub blocks: u64,
    /// Blocks that the pool says it stores.
    pub total: u64,
}

/// Told now and then how far a pass is.
pub type OnProgress<'a> = &'a dyn Fn(Progress);

/// A pass.
pub struct Inspection<'a> {
    /// The pool.
    pub pool: &'a Pool,
    /// Its mode.
    pub mode: Mode,
    /// Whether the content of blocks is read.
    pub data: bool,
    /// Its findings.
    pub report: RefCell<Report>,
    progress: Cell<Progress>,
    on_progress: OnProgress<'a>,
    written: RefCell<BTreeSet<usize>>,
}

impl<'a> Inspection<'a> {
    /// A pass that has not begun.
    pub fn new(pool: &'a Pool, mode: Mode, data: bool, on_progress: OnProgress<'a>) -> Self {
        Self {
            pool,
            mode,
            data,
            report: RefCell::default(),
            progress: Cell::new(Progress {
                blocks: 0,
                total: 0,
            }),
            on_progress,
            written: RefCell::default(),
        }
    }

    /// Notes a finding.
    pub fn find(&self, verdict: Verdict, text: impl Into<String>) {
        self.report.borrow_mut().find(verdict, text);
    }

    /// Adds blocks that remain to be examined.
    pub fn expect(&self, blocks: u64) {
        let mut progress = self.progress.get();
        // What a pool says that it stores is no more than a word of its drives.
        progress.total = progress.total.saturating_add(blocks);
        self.progress.set(progress);
    }

    /// Adds examined blocks.
    pub fn passed(&self, blocks: u64) {
        let mut progress = self.progress.get();
        progress.blocks = progress.blocks.saturating_add(blocks);
        self.progress.set(progress);
        (self.on_progress)(progress);
    }

    /// Repairs copies that were found wrong when a right one was, else only notes them.
    pub async fn mend(&self, what: &'static str, place: Place, got: &Got) {
        if let Some(bytes) = &got.bytes {
            self.mend_parts(what, place.vdrive(), place.block(), bytes, &got.wrong)
                .await;
        }
    }

    /// Writes `bytes`, which are right, to a block of the parts that do not have them.
    pub async fn mend_parts(
        &self,
        what: &'static str,
        vdrive: VdriveId,
        block: u64,
        bytes: &[u8],
        wrong: &[usize],
    ) {
        // A map may name any block.
        let known = self.pool.vdrives.get(&vdrive);
        let Some(known) = known.filter(|known| block < known.layout.blocks()) else {
            return;
        };
        for (part, byte) in known.copies(block) {
            if !wrong.contains(&part) {
                continue;
            }
            // What was restored to an earlier state or truncated is left as it is.
            let disk = self.pool.disk_with(&known.parts[part], byte);
            let Some(disk) = disk.filter(|disk| !self.pool.is_kept(*disk)) else {
                continue;
            };
            let drive = self.pool.part_name(vdrive, part);
            self.report.borrow_mut().mend(what, drive);
            self.write(what, disk, byte, bytes).await;
        }
    }

    /// Writes to a drive, when the pass may, and looks whether it took it.
    pub async fn write(&self, what: &str, disk: usize, byte: u64, bytes: &[u8]) -> bool {
        if self.mode == Mode::Look {
            return true;
        }
        let drive = &self.pool.disks[disk];
        self.written.borrow_mut().insert(disk);
        let written = drive.write(byte, bytes).await;
        let read = match written {
            Ok(()) => drive.read(byte, bytes.len()).await,
            Err(error) => Err(error),
        };
        let failure = match read {
            Ok(read) if read[..] == *bytes => return true,
            Ok(_) => "reading it back returns other data".to_owned(),
            Err(error) => error.to_string(),
        };
        let text = format!(
            "{}: a {what} at byte {byte} could not be written: {failure}; replace the drive",
            drive.spec
        );
        self.find(Verdict::Repairable, text);
        false
    }

    /// Makes durable what was written.
    pub async fn flush(&self) {
        let written = std::mem::take(&mut *self.written.borrow_mut());
        for disk in written {
            if let Err(error) = self.pool.disks[disk].flush().await {
                let spec = &self.pool.disks[disk].spec;
                let text = format!("{spec} cannot be flushed: {error}; replace the drive");
                self.find(Verdict::Repairable, text);
            }
        }
    }
}
