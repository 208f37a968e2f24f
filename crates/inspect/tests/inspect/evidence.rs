//! Drives of a pool that were restored to an earlier state, truncated, copied, swapped or given other labels, at random: nothing old is served
//! without a word, nothing good is destroyed, and what the engine reads the tools read as well.

use crate::support::client::{SHAPES, made};
use crate::support::history::{BLOCK, BLOCKS, Moment, Stamps, Volume, engine, lived, stamp_of};
use crate::support::image::{Image, Random};
use engine::{Engine, ImportOptions, MissingDrives};
use format::{LABEL_SIZE, data_end, label_offsets};
use inspect::{
    Inspection, Mode, Options, Pool, Report, Verdict, inspect_drives, renew_identity,
    restore_volume,
};
use reactor::{Handle, Reactor};
use std::collections::BTreeMap;
use std::rc::Rc;

fn run<T: 'static>(work: impl AsyncFnOnce(Handle) -> T + 'static) -> T {
    let reactor = Reactor::new(1).unwrap();
    let handle = reactor.handle().clone();
    reactor.block_on(work(handle)).unwrap()
}

fn copies(images: &[Image]) -> Vec<Image> {
    images.iter().map(Image::copy).collect()
}

fn look(images: &[Image], mode: Mode) -> Report {
    let drives: Vec<_> = images.iter().map(Image::drive).collect();
    run(async move |handle| {
        let options = Options { data: true };
        inspect_drives(&handle, &drives, mode, options, &|_| ())
            .await
            .unwrap()
    })
}

/// What can be copied out of the volume `v`.
struct Rescued {
    /// When each block was written; none where nothing was read.
    stamps: Vec<Option<u64>>,
    /// Anything may be older than what was written last, and that was said.
    doubtful: bool,
}

/// None where no pool is on these drives.
fn rescue(images: &[Image]) -> Option<Rescued> {
    let drives: Vec<_> = images.iter().map(Image::drive).collect();
    run(async move |handle| {
        let pool = Pool::open(&handle, &drives).await.ok()?;
        let inspection = Inspection::new(&pool, Mode::Look, false, &|_| ());
        let mut stamps = vec![Some(0); BLOCKS];
        let mut sink = |offset: u64, bytes: &[u8]| {
            let block = offset as usize / BLOCK;
            stamps[block] = stamp_of(block, bytes);
            Ok(())
        };
        let restored = restore_volume(&inspection, "v", &mut sink).await.ok()?;
        for range in restored.volume.lost.iter().chain(&restored.perhaps_older) {
            let first = range.offset as usize / BLOCK;
            stamps[first..first + range.len as usize / BLOCK].fill(None);
        }
        let verdict = inspection.report.borrow().verdict;
        let cut = !restored.journals_cut.is_empty();
        Some(Rescued {
            stamps,
            doubtful: cut || !restored.put_back.is_empty() || verdict == Verdict::Lost,
        })
    })
}

/// Generation of the newest label; 0 where there is none.
fn generation(images: &[Image]) -> u64 {
    let drives: Vec<_> = images.iter().map(Image::drive).collect();
    run(async move |handle| {
        let pool = Pool::open(&handle, &drives).await;
        pool.map_or(0, |pool| pool.label.generation)
    })
}

/// Labels of a drive are those of another image of it from here on.
fn give_labels(image: &Image, other: &Image) {
    let size = image.blocks() * BLOCK as u64;
    for offset in label_offsets(size) {
        let first = offset / BLOCK as u64;
        for block in first..first + LABEL_SIZE / BLOCK as u64 {
            if other.is_used(block) || image.is_used(block) {
                image.set_block(block, other.block(block));
            }
        }
    }
}

/// The drives of a random combination, what was done to them, and one more that is a copy of one of them.
fn combined(
    moments: &[Moment],
    newest: usize,
    random: &mut Random,
) -> (Vec<Image>, Vec<String>, Option<Image>) {
    let (mut images, mut told, mut twin) = (Vec::new(), Vec::new(), None);
    for (index, drive) in moments[newest].drives.iter().enumerate() {
        let older = random.below(newest as u64) as usize;
        let old = moments[older].drives[index].copy();
        let (here, size) = (drive.copy(), drive.blocks() * BLOCK as u64);
        let (image, what) = match random.below(24) {
            0..3 => (old, format!("put back to moment {older}")),
            3 => (here.resized(size - BLOCK as u64), "without a block".into()),
            4 => (
                here.resized(data_end(size)),
                "without its last labels".into(),
            ),
            5 => {
                let size = size / 4096 * (256 + random.below(3500));
                (
                    here.resized(size / BLOCK as u64 * BLOCK as u64),
                    format!("cut to {size}"),
                )
            }
            6 => (here.resized(size + (4 << 20)), "grown".into()),
            7 => {
                told.push(format!("{index} is missing"));
                continue;
            }
            8 => {
                (0..512).for_each(|block| here.set_block(block, vec![0; BLOCK]));
                (here, "without its first labels".into())
            }
            9 => {
                give_labels(&old, &here);
                (
                    old,
                    format!("put back to moment {older} but for its labels"),
                )
            }
            10 => {
                give_labels(&here, &old);
                (here, format!("with labels of moment {older}"))
            }
            11 => {
                twin = Some(old.named("mem:twin"));
                (here, format!("beside a copy of moment {older}"))
            }
            _ => (here, String::new()),
        };
        if !what.is_empty() {
            told.push(format!("{index} {what}"));
        }
        images.push(image.named(&format!("mem:{index}")));
    }
    if images.len() > 1 && random.below(6) == 0 {
        let (one, other) = (images[0].named("mem:1"), images[1].named("mem:0"));
        (images[0], images[1]) = (one, other);
        told.push("0 and 1 swapped".into());
    }
    (images, told, twin)
}

/// What came of opening the pool.
struct Opened {
    /// When each block was written; none where a read fails.
    stamps: Vec<Option<u64>>,
    /// The outdated state was reported.
    told: bool,
}

fn open(engine: &Engine, images: &[&Image], options: ImportOptions) -> Result<Opened, String> {
    let specs: Vec<String> = images.iter().map(|image| image.spec().to_owned()).collect();
    for image in images {
        let image = image.named(image.spec());
        drives::give(
            image.spec(),
            Some(Rc::new({
                let image = image.named(image.spec());
                move || image.drive()
            })),
        );
    }
    let imported = engine.pool_import(&specs, "tank", options);
    for spec in &specs {
        drives::give(spec, None);
    }
    let status = imported.map_err(|failed| failed.to_string())?;
    let read = match engine.volume_open("tank", "v", None) {
        Ok(device) => Volume(device).read(),
        // The volume was not made yet when the newest label that is left was written.
        Err(_) => vec![None; BLOCKS],
    };
    let stamps = read.iter().enumerate().map(|(block, bytes)| {
        let bytes = bytes.as_ref()?;
        let stamp = stamp_of(block, bytes);
        Some(stamp.expect("what is read was once written"))
    });
    let stamps = stamps.collect();
    let told = !engine.pool_status("tank").unwrap().old.is_empty() || !status.old.is_empty();
    let _ = engine.pool_export("tank");
    Ok(Opened { stamps, told })
}

#[derive(Default, Debug)]
struct Tally {
    opened: usize,
    degraded: usize,
    accepted: usize,
    refused: usize,
    old_served: usize,
}

/// Whether a block that is read is older than it was.
fn is_old(read: &[Option<u64>], right: &Stamps) -> bool {
    let mut pairs = read.iter().zip(right);
    pairs.any(|(read, right)| read.is_some_and(|read| read != *right))
}

fn has_all(more: &[Option<u64>], of: &[Option<u64>], right: &Stamps) -> Option<usize> {
    let is_right = |block: usize, read: &[Option<u64>]| read[block] == Some(right[block]);
    (0..right.len()).find(|block| is_right(*block, of) && !is_right(*block, more))
}

fn one(engine: &Engine, moments: &[Moment], random: &mut Random, tally: &mut Tally) {
    let newest = moments.len() - 1 - random.below(2) as usize;
    let right = &moments[newest].stamps;
    let (images, done, twin) = combined(moments, newest, random);
    if images.is_empty() {
        return;
    }
    if generation(&images) < generation(&moments[newest].drives) {
        // No drive that is left knows that there was anything newer.
        return;
    }
    let before = rescue(&images);
    if let Some(before) = &before {
        assert!(
            before.doubtful || !is_old(&before.stamps, right),
            "restore, {done:?}"
        );
    }
    let refuse = ImportOptions::default();
    let degraded = ImportOptions::from(true);
    let gone = ImportOptions {
        missing: MissingDrives::Gone,
        ..refuse
    };
    let accept = ImportOptions {
        accept_old: true,
        ..degraded
    };
    if let Some(twin) = &twin {
        let all: Vec<&Image> = images.iter().chain([twin]).collect();
        assert!(open(engine, &all, accept).is_err(), "a copy, {done:?}");
    }
    let mut count = 0;
    let refused = copies(&images);
    for options in [refuse, gone, degraded, accept] {
        let all: Vec<&Image> = refused.iter().collect();
        let Ok(opened) = open(engine, &all, options) else {
            continue;
        };
        count += 1;
        match options {
            _ if options == refuse => tally.opened += 1,
            _ if options == accept => tally.accepted += 1,
            _ => tally.degraded += 1,
        }
        let old = is_old(&opened.stamps, right);
        tally.old_served += usize::from(old);
        assert!(!old || opened.told, "opened with {options:?}, {done:?}");
        assert!(options.accept_old || !opened.told, "{options:?}, {done:?}");
        if let Some(before) = &before {
            let lost = has_all(&before.stamps, &opened.stamps, right);
            assert_eq!(
                lost, None,
                "the engine reads a block that restore does not, {options:?}, {done:?}"
            );
        }
        break;
    }
    tally.refused += usize::from(count == 0);
    if let (0, Some(before), Some(after)) = (count, &before, rescue(&refused)) {
        let gone = has_all(&after.stamps, &before.stamps, right);
        assert_eq!(gone, None, "refused, {done:?}");
    }
    if let Some(before) = before {
        let images = copies(&images);
        look(&images, Mode::Mend);
        let after = rescue(&images).expect("it was a pool before");
        let lost = has_all(&after.stamps, &before.stamps, right);
        assert_eq!(lost, None, "repair, {done:?}");
        // What was said before is said still: repair made nothing look new.
        assert!(
            after.doubtful || !is_old(&after.stamps, right),
            "after repair, {done:?}"
        );
        let all: Vec<&Image> = images.iter().collect();
        if let Ok(opened) = open(engine, &all, refuse) {
            assert!(
                !is_old(&opened.stamps, right),
                "opened after repair, {done:?}"
            );
        }
    }
}

/// Combinations that are tried: `CONVECT_EVIDENCE` in all, from the seed `CONVECT_EVIDENCE_SEED` on, of the drives of pools that
/// `CONVECT_EVIDENCE_POOL` is the seed of.
fn asked(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn no_combination_of_drives_serves_anything_old_without_a_word() {
    let brief = std::env::var_os("CONVECT_BRIEF").is_some();
    let count = asked("CONVECT_EVIDENCE", if brief { 50 } else { 200 });
    let from = asked("CONVECT_EVIDENCE_SEED", 1);
    let pool = asked("CONVECT_EVIDENCE_POOL", 1);
    let pools = [lived(false, pool), lived(true, pool + 1)];
    let engine = engine();
    let mut tally = Tally::default();
    for seed in from..from + count {
        let moments = &pools[seed as usize % 2];
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut random = Random(seed);
            one(&engine, moments, &mut random, &mut tally);
        }));
        if let Err(panic) = outcome {
            eprintln!(
                "seed {seed}: CONVECT_EVIDENCE=1 CONVECT_EVIDENCE_SEED={seed} repeats the combination"
            );
            std::panic::resume_unwind(panic);
        }
    }
    println!("{tally:?}");
    if count >= 50 {
        let Tally {
            opened,
            degraded,
            accepted,
            refused,
            old_served,
        } = tally;
        let all = [opened, degraded, accepted, refused, old_served];
        assert!(all.iter().all(|count| *count > 0), "{tally:?}");
    }
    engine.shutdown();
}

/// An unmirrored pool whose drive of this number was restored to an earlier state.
fn with_an_old_drive(index: usize) -> (Vec<Image>, Stamps) {
    let moments = lived(false, 7);
    let mut images = moments[5]
        .drives
        .iter()
        .map(Image::copy)
        .collect::<Vec<_>>();
    images[index] = moments[1].drives[index].copy();
    (images, moments[5].stamps.clone())
}

#[test]
fn repair_leaves_an_old_drive_as_it_is_and_check_says_what_is_old() {
    for index in 0..3 {
        let (images, _) = with_an_old_drive(index);
        let report = look(&images, Mode::Look);
        assert_eq!(report.verdict, Verdict::Lost);
        assert_eq!(report.drives[index].state, "old");
        let spec = images[index].spec();
        let mut texts = report.findings.iter();
        let told =
            texts.any(|found| found.text.contains(spec) && found.text.contains("earlier state"));
        assert!(told, "{:?}", report.findings);
        let before = images[index].written();
        look(&images, Mode::Mend);
        assert!(
            images[index].written() == before,
            "repair wrote to an old drive"
        );
        assert_eq!(look(&images, Mode::Look).drives[index].state, "old");
        let rescued = rescue(&images).unwrap();
        assert!(rescued.doubtful);
        let drives: Vec<_> = images.iter().map(Image::drive).collect();
        let renewed = run(async move |handle| {
            let mut id = || Ok(7);
            renew_identity(&handle, &drives, None, &mut id)
                .await
                .is_ok()
        });
        assert!(!renewed, "a copy of drives of two moments got one identity");
    }
}

#[test]
fn an_old_member_of_a_mirror_is_told_of_and_keeps_its_label() {
    let moments = lived(true, 8);
    let mut images = moments[5]
        .drives
        .iter()
        .map(Image::copy)
        .collect::<Vec<_>>();
    images[1] = moments[1].drives[1].copy();
    let report = look(&images, Mode::Look);
    assert_eq!(
        (report.verdict, report.drives[1].state),
        (Verdict::Repairable, "old")
    );
    let before = images[1].written();
    look(&images, Mode::Mend);
    assert!(
        images[1].written() == before,
        "repair wrote to an old drive"
    );
    let rescued = rescue(&images).unwrap();
    assert!(!rescued.doubtful && !is_old(&rescued.stamps, &moments[5].stamps));
}

#[test]
fn a_short_drive_gives_every_block_that_it_has() {
    let made = made(SHAPES[2], 60);
    let whole: BTreeMap<String, usize> = made
        .volumes
        .iter()
        .map(|(name, (_, content))| (name.clone(), content.len()))
        .collect();
    let images = made.copy();
    let size = images[1].blocks() * BLOCK as u64;
    // Nothing of the pool is in the last MiB before the labels.
    let cut = data_end(size) - LABEL_SIZE;
    let short: Vec<Image> = vec![images[0].copy(), images[1].resized(cut), images[2].copy()];
    let used =
        (cut / BLOCK as u64..data_end(size) / BLOCK as u64).any(|block| images[1].is_used(block));
    assert!(!used, "choose another cut");
    let before = short[1].written();
    for mode in [Mode::Look, Mode::Mend] {
        let report = look(&short, mode);
        assert_eq!(report.verdict, Verdict::Repairable, "{:?}", report.findings);
        assert_eq!(report.drives[1].state, "short");
        for volume in &report.volumes {
            assert_eq!(
                (volume.lost_bytes, volume.blocks as usize),
                (0, whole[&volume.name])
            );
        }
    }
    assert!(
        short[1].written() == before,
        "repair wrote to a short drive"
    );
}
