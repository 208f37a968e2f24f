//! Copies of a pool's drives that become pools of their own.

use crate::support::client::{SHAPES, changed_since_a_snapshot, made};
use crate::support::image::{Image, Random};
use engine::EngineConfig;
use engine::harness::Harness;
use format::crc32c;
use inspect::{
    Inspection, Mode, Options, Pool, Renewed, Result, Verdict, inspect_drives, renew_identity,
    restore_volume,
};
use reactor::{Handle, Reactor};
use std::collections::{BTreeMap, BTreeSet};
use units::{DriveId, PoolId};

fn run<T: 'static>(work: impl AsyncFnOnce(Handle) -> T + 'static) -> T {
    let reactor = Reactor::new(1).unwrap();
    let handle = reactor.handle().clone();
    reactor.block_on(work(handle)).unwrap()
}

fn copies(images: &[Image]) -> Vec<Image> {
    images.iter().map(Image::copy).collect()
}

fn renew(images: &[Image], name: Option<&'static str>, seed: u64) -> Result<Renewed> {
    let drives: Vec<_> = images.iter().map(Image::drive).collect();
    run(async move |handle| {
        let mut random = Random(seed);
        let mut id = || Ok(u128::from(random.next()) << 64 | u128::from(random.next()));
        renew_identity(&handle, &drives, name, &mut id).await
    })
}

/// The pool's id, its drives', and of its volumes and snapshots the checksums of blocks that hold something.
type Seen = (
    PoolId,
    BTreeSet<DriveId>,
    BTreeMap<String, BTreeMap<u64, u32>>,
);

fn see(images: &[Image]) -> Seen {
    let drives: Vec<_> = images.iter().map(Image::drive).collect();
    run(async move |handle| {
        let pool = Pool::open(&handle, &drives).await.unwrap();
        let ids = pool.disks.iter().filter_map(|disk| disk.newest());
        let ids = ids.map(|label| label.drive).collect();
        let config = pool.config();
        let volumes = config.volumes.iter().map(|volume| volume.name.clone());
        let mut names: Vec<String> = volumes.collect();
        for snapshot in &config.snapshots {
            names.push(config.layer_name(snapshot.layer));
        }
        let mut content = BTreeMap::new();
        for name in names {
            let inspection = Inspection::new(&pool, Mode::Look, false, &|_| ());
            let mut blocks = BTreeMap::new();
            let mut sink = |offset: u64, more: &[u8]| {
                for (block, bytes) in (offset / 4096..).zip(more.chunks(4096)) {
                    blocks.insert(block, crc32c(bytes));
                }
                Ok(())
            };
            restore_volume(&inspection, &name, &mut sink).await.unwrap();
            content.insert(name, blocks);
        }
        (pool.id, ids, content)
    })
}

/// The pool is whole, and an engine opens it.
fn opens(images: &[Image]) {
    let drives: Vec<_> = images.iter().map(Image::drive).collect();
    run(async move |handle| {
        let options = Options { data: true };
        let report = inspect_drives(&handle, &drives, Mode::Look, options, &|_| ()).await;
        let report = report.unwrap();
        assert_eq!(report.verdict, Verdict::Whole, "{:?}", report.findings);
        let pool = Pool::open(&handle, &drives).await.unwrap();
        let members = pool.disks.iter().zip(&drives);
        let members: Vec<_> = members
            .map(|(disk, drive)| (disk.newest().unwrap().drive, drive.clone()))
            .collect();
        let memory = EngineConfig::default();
        Harness::open(&handle, pool.id, pool.config(), &members, &memory)
            .await
            .unwrap();
    });
}

#[test]
fn a_copy_is_the_same_pool_with_other_identities() {
    for shape in [SHAPES[0], SHAPES[3]] {
        let made = made(shape, 3);
        let before = see(&made.drives);
        let images = copies(&made.drives);
        let renewed = renew(&images, Some("copy"), 1).unwrap();
        assert_eq!((renewed.old, renewed.name.as_str()), (before.0, "copy"));
        let after = see(&images);
        assert_eq!(after.0, renewed.new);
        assert_ne!(after.0, before.0);
        assert!(after.1.is_disjoint(&before.1) && after.1.len() == before.1.len());
        assert_eq!(after.2, before.2);
        opens(&images);
    }
}

#[test]
fn snapshots_of_a_copy_are_known_as_the_originals() {
    let made = changed_since_a_snapshot();
    let (old, before) = {
        let seen = see(&made.drives);
        (seen.0, seen.2)
    };
    let images = copies(&made.drives);
    renew(&images, None, 1).unwrap();
    assert_eq!(see(&images).2, before);
    let drives: Vec<_> = images.iter().map(Image::drive).collect();
    let origins: Vec<String> = run(async move |handle| {
        let pool = Pool::open(&handle, &drives).await.unwrap();
        let snapshots = pool.config().snapshots.iter();
        snapshots.map(|known| known.origin.clone()).collect()
    });
    assert_eq!(origins.len(), 1);
    assert!(origins[0].starts_with(&old.to_string()), "{origins:?}");
    opens(&images);
}

#[test]
fn what_was_interrupted_anywhere_is_ended_by_the_same_call() {
    let made = made(SHAPES[1], 5);
    let before = see(&made.drives);
    for after in (0..).step_by(3) {
        let images = copies(&made.drives);
        images.iter().for_each(|image| image.fail_after(after));
        let failed = renew(&images, Some("copy"), 1).is_err();
        images.iter().for_each(Image::work_again);
        // The second run would choose other ids.
        let renewed = renew(&images, Some("copy"), 2).unwrap();
        let seen = see(&images);
        assert_eq!((seen.0, &seen.2), (renewed.new, &before.2), "after {after}");
        assert!(seen.1.is_disjoint(&before.1));
        opens(&images);
        if !failed {
            return;
        }
    }
}

#[test]
fn a_copy_that_is_not_all_there_is_refused() {
    let made = made(SHAPES[0], 5);
    let images = copies(&made.drives);
    let said = renew(&images[1..], None, 1).unwrap_err().to_string();
    assert!(said.contains("specify all drives"), "{said}");
    assert!(images.iter().all(|image| image.written().is_empty()));
}
