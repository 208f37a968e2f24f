//! Tampering with drives between two lives of a pool: they are restored to earlier images, truncated, extended,
//! exchanged, replaced by copies or emptied ([`crate::trial`] checks the consequences).

use crate::image::Image;
use crate::oracle::Oracle;
use crate::random::Random;
use format::{LABEL_SIZE, LayoutConfig, PartConfig, PoolConfig, label_offsets};
use std::collections::BTreeSet;
use units::BLOCK;

/// Earlier moments that are kept.
const KEPT: usize = 6;
/// Bytes by which a drive grows.
const MORE: u64 = 4 << 20;

/// Content of drives at a moment, the hosts' view then, and their volumes.
#[derive(Clone)]
pub struct Moment {
    /// How many lives there were before.
    pub life: u64,
    pub images: Vec<Image>,
    pub oracle: Oracle,
    pub volumes: Vec<(String, u32)>,
}

/// Moments of earlier lives, and chances of their own.
pub struct History {
    moments: Vec<Moment>,
    pub random: Random,
}

impl History {
    /// None yet.
    pub fn new(seed: u64) -> Self {
        Self {
            moments: Vec::new(),
            random: Random::new(seed.rotate_left(34)),
        }
    }

    /// A moment that drives may be restored to.
    pub fn add(&mut self, moment: Moment) {
        if self.moments.len() == KEPT {
            let gone = self.random.below(KEPT as u64) as usize;
            self.moments.remove(gone);
        }
        self.moments.push(moment);
    }
}

/// A drive's identity, and the generation of its newest label.
pub type Label = Option<(String, u64)>;

/// The roles of a pool's drives according to its newest label.
pub struct Roles {
    config: PoolConfig,
    /// By drive: its identity, where it is of the pool.
    ids: Vec<Option<String>>,
}

impl Roles {
    /// Of drives with these labels.
    pub fn new(config: PoolConfig, labels: &[Label]) -> Self {
        let id = |label: &Label| label.as_ref().map(|(id, _)| id.clone());
        let ids = labels.iter().map(id).collect();
        Self { config, ids }
    }

    /// Drives of the pool.
    pub fn members(&self) -> Vec<usize> {
        let known = |id: &str| self.config.drives.iter().any(|drive| drive.id == id);
        let all =
            (0..self.ids.len()).filter(|drive| self.ids[*drive].as_deref().is_some_and(known));
        all.collect()
    }

    /// The parts of the metadata region and of each vdrive, and whether they are copies of one another.
    fn groups(&self) -> impl Iterator<Item = (bool, &[PartConfig])> {
        let meta = (true, &self.config.meta.parts[..]);
        let vdrives = self.config.vdrives.iter();
        let data = vdrives.map(|vdrive| {
            let mirror = vdrive.layout == LayoutConfig::Mirror;
            (mirror, &vdrive.parts[..])
        });
        std::iter::once(meta).chain(data)
    }

    fn has(&self, drives: &BTreeSet<usize>, part: &PartConfig) -> bool {
        let id = |drive: &usize| self.ids[*drive].as_deref() == Some(&part.drive);
        drives.iter().any(id)
    }

    /// Whether other members have all that these drives have, and every member counts.
    pub fn can_do_without(&self, drives: &BTreeSet<usize>) -> bool {
        self.is_whole()
            && self.groups().all(|(mirror, parts)| {
                let gone = |part: &PartConfig| self.has(drives, part);
                !parts.iter().any(gone) || mirror && !parts.iter().all(gone)
            })
    }

    /// Whether every member counts.
    pub fn is_whole(&self) -> bool {
        let offline = self.config.drives.iter().any(|drive| drive.offline);
        !offline && !self.config.parts().any(|(_, part)| part.out)
    }

    /// Whether all metadata that counts is on these drives.
    pub fn hold_the_metadata(&self, drives: &BTreeSet<usize>) -> bool {
        let mut counting = self.config.meta.parts.iter().filter(|part| !part.out);
        counting.all(|part| self.has(drives, part))
    }

    /// Whether drives hold what no other has, and labels of theirs, of these generations, are older than the newest one, of
    /// `generation`, lets each be.
    pub fn are_behind(&self, touched: &BTreeSet<usize>, own: &[Label], generation: u64) -> bool {
        let behind = |drive: &usize| {
            let id = self.ids[*drive].as_deref();
            let known = self
                .config
                .drives
                .iter()
                .find(|known| Some(&*known.id) == id);
            let label = own[*drive].as_ref();
            known
                .zip(label)
                .is_some_and(|(known, label)| label.1 < known.oldest_label(generation))
        };
        self.is_whole() && !self.can_do_without(touched) && touched.iter().all(behind)
    }

    /// First byte behind what a drive is used for.
    pub fn end(&self, drive: usize) -> u64 {
        let id = self.ids[drive].as_deref();
        id.map_or(0, |id| self.config.parts_end(id))
    }
}

/// The action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    /// Drives are restored to a moment.
    Old,
    /// All drives are restored to one moment.
    AllOld,
    /// The same but for their labels.
    UnderLabels,
    /// A drive lacks bytes at its end.
    Short,
    /// A drive has more.
    Long,
    /// Two drives are opened by each other's names.
    Swapped,
    /// A copy of one drive is in the place of another.
    Copied,
    /// A drive holds nothing.
    Blank,
}

/// Drives to which something was done.
pub struct Case {
    pub deed: Deed,
    /// The drives.
    pub touched: BTreeSet<usize>,
    /// Content of all drives, and their sizes in bytes.
    pub images: Vec<Image>,
    pub sizes: Vec<u64>,
    /// The moment that drives were restored to.
    pub moment: Option<Moment>,
}

impl Case {
    /// Something is done to drives that hold this. None where nothing can be done.
    pub fn draw(
        history: &mut History,
        images: &[Image],
        sizes: &[u64],
        roles: &Roles,
    ) -> Option<Self> {
        let random = &mut history.random;
        let members = roles.members();
        let one = *random.pick(&members);
        let other = *random.pick(&members);
        let mut case = Self {
            deed: *random.pick(&[
                Deed::Old,
                Deed::Old,
                Deed::Old,
                Deed::AllOld,
                Deed::AllOld,
                Deed::UnderLabels,
                Deed::Short,
                Deed::Short,
                Deed::Long,
                Deed::Swapped,
                Deed::Copied,
                Deed::Blank,
            ]),
            touched: BTreeSet::from([one]),
            images: images.to_vec(),
            sizes: sizes.to_vec(),
            moment: None,
        };
        match case.deed {
            Deed::Old | Deed::AllOld | Deed::UnderLabels => {
                let moment = history.moments.get(random.below(KEPT as u64) as usize)?;
                case.touched = match case.deed {
                    Deed::AllOld | Deed::UnderLabels => (0..images.len()).collect(),
                    _ if random.one_in(3) => BTreeSet::from([one, other]),
                    _ => case.touched,
                };
                for drive in &case.touched {
                    case.images[*drive] = moment.images[*drive].clone();
                    if case.deed == Deed::UnderLabels {
                        give_labels(&mut case.images[*drive], &images[*drive], sizes[*drive]);
                    }
                }
                case.moment = Some(moment.clone());
            }
            Deed::Short => {
                let size = sizes[one];
                let end = roles.end(one);
                let less = match random.below(3) {
                    0 => BLOCK as u64,
                    // Labels at its end, or all of that and more.
                    1 => size.saturating_sub(end),
                    _ => random.within(1..=size / 2),
                };
                let less = less.clamp(BLOCK as u64, size / 2) / BLOCK as u64 * BLOCK as u64;
                case.resize(one, size - less);
            }
            Deed::Long => case.resize(one, sizes[one] + MORE),
            Deed::Swapped | Deed::Copied => {
                if one == other || sizes[one] != sizes[other] {
                    return None;
                }
                case.touched.insert(other);
                match case.deed {
                    Deed::Swapped => case.images.swap(one, other),
                    _ => case.images[other] = images[one].clone(),
                }
            }
            Deed::Blank => case.images[one] = Image::new(sizes[one]),
        }
        Some(case)
    }

    fn resize(&mut self, drive: usize, size: u64) {
        self.sizes[drive] = size;
        self.images[drive] = self.images[drive].resized(size);
    }
}

/// Labels of a drive of `size` bytes are those of another image of it.
fn give_labels(image: &mut Image, other: &Image, size: u64) {
    for offset in label_offsets(size) {
        let first = offset / BLOCK as u64;
        for block in first..first + LABEL_SIZE / BLOCK as u64 {
            image.set(block, other.get(block).cloned());
        }
    }
}
