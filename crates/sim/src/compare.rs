//! Comparing what an opening finds with the oracle.
//!
//! Mostly by where the map says that a block lies, and what is known of the block there: its checksum and whose content
//! it is were found out once for all states that have it. What does not fit is read, and some states are read anyway,
//! as a host would.

use crate::check::{Checker, LONGEST};
use crate::content::{SECTOR, SECTORS};
use crate::openings::{Held, Opened};
use crate::oracle::{Oracle, Wrong};
use block::IoBuf;
use engine::harness::{Harness, Located};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use units::{BLOCK, CHUNK_BLOCKS};

/// Blocks that are compared where everything is: of more (each snapshot has all of its volume) a part.
const PLENTY: u64 = 2048;
/// The same where they are read.
const READ: u64 = 512;

/// Scope and method of comparing a state.
#[derive(Clone, Copy)]
pub struct Look {
    /// Everything that was ever written, not only what may be lost.
    pub whole: bool,
    /// As a host reads.
    pub by_reading: bool,
}

/// Blocks of a volume: by which number it is read, and the oracle's; first, count.
type Range = ((u32, u32), u64, u64);

impl Checker {
    /// Examines what `look` says, and makes a `digest` of it where one is wanted.
    pub(crate) fn compare_volumes(
        &self,
        opened: &Opened,
        oracle: &Oracle,
        look: Look,
        mut digest: Option<&mut u64>,
    ) -> Result<(), Wrong> {
        // What is right in one state of a moment is so in the others that have the same there.
        let brief = !look.whole && !look.by_reading && digest.is_none();
        if brief && opened.right.borrow().holds(self.moment(), &opened.drives) {
            return Ok(());
        }
        let right = RefCell::new(brief.then(Vec::new));
        let blocks: u64 = oracle
            .volumes
            .keys()
            .map(|volume| oracle.blocks(*volume))
            .sum();
        let plenty = if look.by_reading { READ } else { PLENTY };
        let one_in = if digest.is_none() { blocks / plenty } else { 0 };
        let all = look.whole && one_in < 2;
        let takes = || all || self.random.borrow_mut().one_in(one_in);
        let longest = match look.by_reading {
            true => LONGEST,
            false => CHUNK_BLOCKS as u64,
        };
        opened.run(async move {
            for (number, known) in &oracle.volumes {
                let found = crate::snapshots::find(&opened.label.config, *number, known);
                let Some((reader, has)) = found else {
                    return Err(Wrong(format!("volume {number} is not there")));
                };
                if has < known.size {
                    let wants = known.size;
                    return Err(Wrong(format!("volume {number} has {has} bytes of {wants}")));
                }
                let mut ranges = match all {
                    true => Vec::new(),
                    false => oracle.young(*number, longest),
                };
                if look.whole {
                    let known = oracle.ranges(*number, longest);
                    ranges.extend(known.into_iter().filter(|_| takes()));
                }
                for (first, count) in ranges {
                    let range = ((reader, *number), first, count);
                    let digest = &mut digest;
                    if look.by_reading
                        || !self.lies_right(opened, oracle, range, digest, &right).await
                    {
                        right.take();
                        self.compare_by_reading(opened, oracle, range, digest)
                            .await?;
                    }
                }
            }
            if let Some(found) = right.take() {
                opened.right.borrow_mut().set(self.moment(), found);
            }
            Ok(())
        })
    }

    /// Whether all blocks are where the map says, with content that they may have; what they hold goes into the digest
    /// then, and where they lie to what is `right`, as far as a crash left it there.
    async fn lies_right(
        &self,
        opened: &Opened,
        oracle: &Oracle,
        ((reader, number), first, count): Range,
        digest: &mut Option<&mut u64>,
        known: &RefCell<Option<Vec<Held>>>,
    ) -> bool {
        let mut found = self.located.take();
        found.clear();
        let range = (first, count);
        let located = opened.harness.locate(reader, range, &mut found).await;
        found.sort_unstable_by_key(|(block, ..)| *block);
        let chunk = first / CHUNK_BLOCKS as u64 * CHUNK_BLOCKS as u64;
        let sum = Cell::new(digest.as_deref().copied());
        let right = located.is_ok()
            && found.len() as u64 == count
            && found
                .iter()
                .all(|at| is_right(opened, oracle, (number, chunk), at, (&sum, known)));
        self.located.replace(found);
        if let (true, Some(digest), Some(sum)) = (right, digest.as_deref_mut(), sum.get()) {
            *digest = sum;
        }
        right
    }

    /// Reads blocks and compares them; those that were hit may fail.
    async fn compare_by_reading(
        &self,
        opened: &Opened,
        oracle: &Oracle,
        range: Range,
        digest: &mut Option<&mut u64>,
    ) -> Result<(), Wrong> {
        let mut bufs = self.bufs.take();
        let read = read_and_compare(opened, oracle, range, &mut bufs, digest).await;
        self.bufs.replace(bufs);
        read
    }

    /// Received data equals the sent data: all of it if it has the snapshot's name, and as far as
    /// the label says before.
    pub(crate) fn compare_copy(&self, opened: &Opened, oracle: &Oracle) -> Result<(), Wrong> {
        let Some(copying) = &oracle.copying else {
            return Ok(());
        };
        let config = &opened.label.config;
        let mut snapshots = config.snapshots.iter();
        let mut receiving = config.receiving.iter();
        let taken = snapshots.find(|of| of.volume == copying.volume && of.name == copying.name);
        let part = receiving.find(|of| of.volume == copying.volume);
        let (reader, end) = match (taken, part) {
            (Some(taken), None) => (Harness::reader(taken.layer), u64::MAX),
            (None, Some(part)) if (copying.done.0..=copying.done.1).contains(&part.done) => {
                (copying.volume, part.done)
            }
            _ => {
                let what = format!("{taken:?} and {part:?} of {:?}", copying.done);
                return Err(Wrong(format!("a volume that is received has {what}")));
            }
        };
        let mut buf = IoBuf::zeroed(BLOCK);
        opened.run(async {
            for number in [copying.of, copying.volume] {
                for (block, _) in oracle.ranges(number, 1) {
                    if block * (BLOCK as u64) < end {
                        let at = ((reader, copying.of), block, 1);
                        let read =
                            compare_range(&opened.harness, oracle, at, &mut buf, &mut None).await;
                        read.map_err(|Wrong(what)| Wrong(format!("what was received: {what}")))?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Snapshots that were being taken: the label names all of them or none, and they are of one moment.
    pub(crate) fn compare_group(&self, opened: &Opened, oracle: &Oracle) -> Result<(), Wrong> {
        let Some(taking) = &oracle.taking else {
            return Ok(());
        };
        let mut snapshots = opened.label.config.snapshots.iter();
        if !snapshots.any(|of| of.name == taking.name) {
            return Ok(());
        }
        let Some((mut wanted, taking)) = oracle.being_taken() else {
            return Ok(());
        };
        let mut buf = IoBuf::zeroed(BLOCK);
        for (number, known) in &taking.before {
            let mut of = opened.label.config.snapshots.iter();
            let Some(named) = of.find(|of| of.volume == *number && of.name == taking.name) else {
                let what = format!("a snapshot is named, and that of volume {number} is not");
                return Err(Wrong(what));
            };
            if named.size < known.size {
                return Err(Wrong(format!("a snapshot has {} bytes", named.size)));
            }
            let reader = Harness::reader(named.layer);
            for (block, _) in wanted.ranges(*number, 1) {
                let offset = block * BLOCK as u64;
                let read = opened.run(opened.harness.read(reader, offset, &mut buf));
                match read {
                    Err(_) if oracle.is_hit(*number, block) => continue,
                    Err(failed) => {
                        return Err(Wrong(format!("a snapshot, block {block}: {failed}")));
                    }
                    Ok(()) => {}
                }
                let bytes = buf.as_bytes().expect("private memory");
                let settled = wanted.settle_live(*number, offset, bytes, &BTreeMap::new());
                settled.map_err(|Wrong(what)| Wrong(format!("a snapshot of {what}")))?;
            }
        }
        if oracle.hits.is_empty() && oracle.state_hits.is_empty() && !oracle.wild {
            let same = taking.before.keys().map(|number| (*number, *number));
            wanted.check_order(&taking.given, &same.collect())?;
            self.groups
                .set(self.groups.get() + u64::from(taking.before.len() > 1));
        }
        Ok(())
    }
}

/// Whether a block has what the map and the oracle say; that goes to a digest, and to what is `known` of the drives.
fn is_right(
    opened: &Opened,
    oracle: &Oracle,
    (number, chunk): (u32, u64),
    (block, place, crc): &Located,
    (sum, known): (&Cell<Option<u64>>, &RefCell<Option<Vec<Held>>>),
) -> bool {
    let block = chunk + *block as u64;
    if place.is_none() {
        sum.set(sum.get().map(|sum| mixed(sum, [0; SECTORS])));
        return oracle.fits_zeroes(number, block);
    }
    opened.harness.any_copy(*place, |drive, byte| {
        let mut drives = opened.drives.iter();
        let Some(index) = drives.position(|(id, _)| *id == drive) else {
            return false;
        };
        let (drive, at) = (&opened.drives[index].1, byte / BLOCK as u64);
        let right = drive.has(at, *crc, |sectors| {
            let fits = oracle.fits(number, block, sectors);
            if let (true, Some(before)) = (fits, sum.get()) {
                sum.set(Some(mixed(before, sectors.heads())));
            }
            fits
        });
        let mut known = known.borrow_mut();
        if let (true, Some(found)) = (right, known.as_mut()) {
            match drive.left(at) {
                Some(content) => found.push((index, at, content)),
                // What the opening wrote is the same for all whose opening it is.
                None if drive.is_written(at) => {}
                None => *known = None,
            }
        }
        right
    })
}

/// Reads and compares blocks of a range, with memory to read into by number of blocks.
async fn read_and_compare(
    opened: &Opened,
    oracle: &Oracle,
    ((reader, number), first, count): Range,
    bufs: &mut [IoBuf],
    digest: &mut Option<&mut u64>,
) -> Result<(), Wrong> {
    let hit = |block| oracle.is_hit(number, block);
    let mut at = first;
    while at < first + count {
        let some = LONGEST.min(first + count - at);
        let buf = &mut bufs[some as usize];
        let range = ((reader, number), at, some);
        let read = compare_range(&opened.harness, oracle, range, buf, digest).await;
        if let Err(wrong) = read {
            if !(at..at + some).any(hit) {
                return Err(wrong);
            }
            // Only what was hit may fail.
            let buf = &mut bufs[1];
            for block in (at..at + some).filter(|block| !hit(*block)) {
                let range = ((reader, number), block, 1);
                compare_range(&opened.harness, oracle, range, buf, digest).await?;
            }
        }
        at += some;
    }
    Ok(())
}

/// Reads blocks (by which number the volume is read, and the oracle's; first, count) and compares
/// them; adds them to the digest.
async fn compare_range(
    harness: &Harness,
    oracle: &Oracle,
    ((reader, number), first, count): Range,
    buf: &mut IoBuf,
    digest: &mut Option<&mut u64>,
) -> Result<(), Wrong> {
    let offset = first * BLOCK as u64;
    let read = harness.read(reader, offset, buf).await;
    read.map_err(|failed| Wrong(format!("volume {number}, block {first}+{count}: {failed}")))?;
    let bytes = buf.as_bytes().expect("private memory");
    oracle.check_crashed(number, offset, bytes)?;
    if let Some(digest) = digest.as_deref_mut() {
        let head = |sector: &[u8]| u64::from_le_bytes(sector[..8].try_into().expect("8 bytes"));
        *digest = mixed(*digest, bytes.chunks_exact(SECTOR).map(head));
    }
    Ok(())
}

/// A digest with the first eight bytes of further sectors.
fn mixed(digest: u64, heads: impl IntoIterator<Item = u64>) -> u64 {
    let heads = heads.into_iter();
    heads.fold(digest, |digest, head| reactor::mix(digest ^ head))
}
