//! One shard of a pool, read as an opening would read it.

use crate::inspection::Inspection;
use crate::journal::{self, Journal};
use crate::report::{ShardReport, Verdict};
use crate::space::{Space, WORDS};
use crate::walk::{Found, Walk, keys_beneath};
use crate::{checkpoint, replay};
use format::{
    BlockCounts, Bounded, Bounds, Checkpoint, CheckpointMark, DIRECTORY, GroupKey, HOME_GROUPS,
    HOMES, HomesPage, NUMBERS_MAX, PageKind, PagePtr, SLOTS, SlotsPage, VolumePage,
};
use std::collections::{BTreeMap, BTreeSet};
use units::Place;

/// The state of a shard before its volumes' maps are read.
pub struct ShardView {
    /// Its number.
    pub id: u16,
    /// Its newest checkpoint.
    pub checkpoint: Checkpoint,
    /// Its journal since.
    pub journal: Journal,
    /// Chunks that the journal changes.
    pub subjects: BTreeSet<(u32, u32)>,
    /// Its bitmaps, as far as they can be read.
    pub space: Space,
    /// Whether all of them can.
    pub space_whole: bool,
    /// Roots of volumes' maps.
    pub volumes: BTreeMap<u32, PagePtr>,
    /// Volumes' numbers whose entries cannot be read.
    pub lost_volumes: Vec<std::ops::RangeInclusive<u32>>,
    /// Places of the pages of its own trees.
    pub pages: Vec<Place>,
    /// Its report.
    pub report: ShardReport,
}

impl ShardView {
    /// Reads checkpoint, journal, bitmaps and directory. None when no checkpoint is left.
    pub async fn read(inspection: &Inspection<'_>, id: u16) -> Option<Self> {
        let Some(checkpoint) = checkpoint::newest(inspection, id).await else {
            let text = format!(
                "shard {id} has no checkpoint on any drive: every part of a volume in this shard is lost"
            );
            inspection.find(Verdict::Lost, text);
            return None;
        };
        let journal = journal::read(inspection, &checkpoint).await;
        let report = ShardReport {
            shard: id,
            checkpoint: Some(checkpoint.generation),
            epoch: checkpoint.epoch,
            journal_pages: journal.pages.len() as u64,
            journal_records: journal
                .pages
                .iter()
                .map(|page| page.records.len() as u64)
                .sum(),
            ..ShardReport::default()
        };
        let mut view = Self {
            id,
            checkpoint,
            subjects: replay::subjects(&journal, inspection.pool.config()),
            journal,
            space: Space::default(),
            space_whole: true,
            volumes: BTreeMap::new(),
            lost_volumes: Vec::new(),
            pages: Vec::new(),
            report,
        };
        view.read_space(inspection).await;
        view.read_directory(inspection).await;
        Some(view)
    }

    /// Evidence that the shard's metadata was restored to an earlier state: the newest label records a later one.
    pub fn older(&self, inspection: &Inspection<'_>) -> Option<String> {
        let told = inspection
            .pool
            .config()
            .checkpoints
            .get(usize::from(self.id))?;
        let found = CheckpointMark {
            generation: self.checkpoint.generation,
            epoch: self.checkpoint.epoch,
            page: self.checkpoint.journal_from + self.journal.pages.len() as u64,
        };
        let text = || {
            format!(
                "shard {}: its metadata was restored to an earlier state: checkpoint {} of opening {}, and the newest label \
                 records {} of opening {}. Later writes are lost or older",
                self.id, found.generation, found.epoch, told.generation, told.epoch
            )
        };
        told.is_beyond(&found).then(text)
    }

    async fn read_space(&mut self, inspection: &Inspection<'_>) {
        let mut walk = Walk::new(SLOTS, PageKind::Slots, self.checkpoint.slots);
        while let Some(found) = walk.next(inspection).await {
            for found in found {
                self.note_page(&found);
                match found {
                    Found::Page { page, header, .. } if header.kind == PageKind::Slots => {
                        let bits: Box<[u64; WORDS]> = Box::new(SlotsPage::decode(&page));
                        let key = GroupKey(header.key);
                        if self.is_bounded(inspection, inspection.pool.check_slots(key, &bits)) {
                            self.space.slots.insert(key, bits);
                        }
                    }
                    Found::Page { .. } => {}
                    Found::Lost { .. } => self.space_whole = false,
                }
            }
        }
        let mut walk = Walk::new(HOMES, PageKind::Homes, self.checkpoint.homes);
        while let Some(found) = walk.next(inspection).await {
            for found in found {
                self.note_page(&found);
                match found {
                    Found::Page { page, header, .. } if header.kind == PageKind::Homes => {
                        let groups = HomesPage::decode(&page);
                        let bounded = inspection.pool.check_homes(header.key, &groups);
                        if !self.is_bounded(inspection, bounded) {
                            continue;
                        }
                        for (index, bits) in groups.iter().enumerate() {
                            let key = header.key.wrapping_mul(HOME_GROUPS as u32);
                            let key = GroupKey(key.wrapping_add(index as u32));
                            if let Some(bits) = bits {
                                self.space.homes.insert(key, *bits);
                            }
                        }
                    }
                    Found::Page { .. } => {}
                    Found::Lost { .. } => self.space_whole = false,
                }
            }
        }
    }

    /// Reports an impossible bitmap; false: it counts as lost.
    fn is_bounded(&mut self, inspection: &Inspection<'_>, bounded: Bounded) -> bool {
        if let Err(found) = bounded {
            let text = format!("shard {}: {found}", self.id);
            inspection.find(Verdict::Repairable, text);
            self.space_whole = false;
        }
        bounded.is_ok()
    }

    async fn read_directory(&mut self, inspection: &Inspection<'_>) {
        let mut walk = Walk::new(DIRECTORY, PageKind::Volume, self.checkpoint.directory);
        let mut stored = BlockCounts::default();
        while let Some(found) = walk.next(inspection).await {
            for found in found {
                self.note_page(&found);
                match found {
                    Found::Page { page, header, .. } if header.kind == PageKind::Volume => {
                        let (root, counts) = VolumePage::decode(&page);
                        if !counts.is_possible() || header.key == 0 || header.key >= NUMBERS_MAX {
                            let text = format!(
                                "shard {}: the entry of volume {} has an invalid number or counts: the \
                                 pool cannot be opened",
                                self.id, header.key
                            );
                            inspection.find(Verdict::Repairable, text);
                        }
                        stored += counts;
                        self.volumes.insert(header.key, root);
                    }
                    Found::Page { .. } => {}
                    Found::Lost { level, key, .. } => {
                        self.lost_volumes.push(keys_beneath(level, key));
                    }
                }
            }
        }
        inspection.expect(stored.mapped());
    }

    /// Counts a page of one of its trees.
    pub fn note_page(&mut self, found: &Found) {
        match found {
            Found::Page { ptr, .. } => {
                self.report.pages += 1;
                self.pages.push(ptr.place);
            }
            Found::Lost { .. } => self.report.lost_pages += 1,
        }
    }
}
