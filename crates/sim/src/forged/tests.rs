//! Some forged pools with every run of the tests; `sim --forged` has many.

use super::attempt::{campaign, is_whole};
use super::base::{SHAPES, make};
use super::disk::Disk;
use super::forge::Pool;
use super::life::{Life, MIB, POOL};
use block::{ErrorKind, IoBuf, OpKind};
use format::{DIRECTORY, PageKind, PagePtr, Record};
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Place, VdriveId};

/// Pools of one run; `CONVECT_FORGED` says how many else.
const POOLS: u64 = 500;
/// Pools that once ended something, by their seeds: a scrub trusted a page that had not been read before; a volume had number 0,
/// and its snapshots' layers made a circle.
const FAILED_ONCE: [u64; 2] = [919, 6405];
const LAST: u64 = (1 << Place::BLOCK_BITS) - 1;

#[test]
fn forged_pools_end_nothing() {
    let asked = std::env::var("CONVECT_FORGED").ok();
    let pools = asked.and_then(|asked| asked.parse().ok()).unwrap_or(POOLS);
    let tally = campaign(1, pools, 2).unwrap_or_else(|wrong| panic!("{}", wrong.join("\n")));
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    // They are forged, and not merely broken: some open, and most of what is wrong is seen.
    assert_eq!(of(&tally.pools), pools);
    assert!(of(&tally.opened) * 5 > pools, "{tally:?}");
    assert!(of(&tally.noticed) * 3 > pools, "{tally:?}");
}

#[test]
fn forged_pools_that_once_failed_end_nothing() {
    for seed in FAILED_ONCE {
        if let Err(wrong) = campaign(seed, 1, 1) {
            panic!("{}", wrong.join("\n"));
        }
    }
}

fn specs(disks: &[Disk]) -> Vec<String> {
    disks.iter().map(|disk| disk.spec().to_owned()).collect()
}

/// How a read of the first MiB of the volume `v` ends.
fn read(life: &Life) -> Result<(), ErrorKind> {
    let device = life.ask().volume_open(POOL, "v", None).unwrap();
    let buf = IoBuf::zeroed(MIB as usize);
    let ended = life.run(&device, OpKind::Read, (0, MIB), buf).unwrap();
    ended.result.map_err(|error| error.kind)
}

#[test]
fn a_map_with_places_beyond_every_vdrive_is_damaged() {
    let set = |bytes: &mut [u8], at: usize, place: Place, len: usize| {
        bytes[at..at + len].copy_from_slice(&place.bits().to_le_bytes()[..len]);
    };
    let at = |vdrive, block| Place::new(VdriveId(vdrive), block);
    let (slots, home, valid) = (128 + 4 * 256, 64, 72..104);
    for place in [
        at(2, LAST - 255),
        at(2, LAST - 256),
        at(2, 1 << 30),
        at(1, 256),
        at(0, 512),
        at(9, 0),
    ] {
        let disks = make(SHAPES[0]);
        assert!(is_whole(&disks).unwrap());
        let pool = Pool::of(&disks).unwrap();
        let changed = pool.change_all(PageKind::Chunk, |bytes| {
            bytes[slots..slots + 6 * 256].fill(0);
            bytes[valid.clone()].fill(0xff);
            set(bytes, home, place, 8);
        });
        assert!(changed > 0);
        assert!(!is_whole(&disks).unwrap(), "{place:?}");
        let life = Life::new(&disks, 1);
        life.ask().pool_import(&specs(&disks), POOL, false).unwrap();
        // The scrub reaches the page before it has been read.
        assert!(life.scrub().is_some_and(|lost| lost > 0), "{place:?}");
        assert_eq!(read(&life), Err(ErrorKind::Medium), "{place:?}");
    }
    for place in [
        at(1, LAST),
        at(1, 1 << 20),
        at(2, 1 << 20),
        at(0, 600),
        at(9, 7),
    ] {
        let disks = make(SHAPES[0]);
        let pool = Pool::of(&disks).unwrap();
        pool.change_all(PageKind::Chunk, |bytes| {
            set(bytes, slots + 6 * 255, place, 6)
        });
        assert!(!is_whole(&disks).unwrap(), "{place:?}");
        let life = Life::new(&disks, 1);
        life.ask().pool_import(&specs(&disks), POOL, false).unwrap();
        assert_eq!(read(&life), Err(ErrorKind::Medium), "{place:?}");
    }
}

#[test]
fn a_journal_that_frees_a_place_beyond_its_vdrive_is_refused() {
    for block in [LAST, 1 << 20] {
        let disks = make(SHAPES[0]);
        let record = Record::Trim {
            volume: 1,
            chunk: 0,
            first: 0,
            count: 1,
            old: std::iter::once(Place::new(VdriveId(1), block)).collect(),
        };
        Pool::of(&disks).unwrap().add_record(&record);
        assert!(!is_whole(&disks).unwrap());
        let life = Life::new(&disks, 1);
        let refused = life.ask().pool_import(&specs(&disks), POOL, false);
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("journal refers to a block"), "{said}");
    }
}

#[test]
fn a_directory_that_names_layer_0_is_refused() {
    // Layer 0 is the parent of those that have none: as a layer it would be its own parent.
    const LEVEL: usize = 5;
    const OWNER: usize = 8;
    const KEY: usize = 12;
    const BODY: usize = 64;
    const VOLUME: usize = 1;
    let disks = make(SHAPES[0]);
    let pool = Pool::of(&disks).unwrap();
    let pages = pool.change_all(PageKind::Volume, |bytes| {
        if usize::from(bytes[KEY]) == VOLUME {
            bytes[KEY] = 0;
        }
    });
    let nodes = pool.change_all(PageKind::Node, |bytes| {
        if bytes[OWNER..OWNER + 4] == DIRECTORY.to_le_bytes() && bytes[LEVEL] == 1 {
            let at = |volume: usize| BODY + volume * PagePtr::SIZE;
            bytes.copy_within(at(VOLUME)..at(VOLUME + 1), at(0));
            bytes[at(VOLUME)..at(VOLUME + 1)].fill(0);
        }
    });
    assert!(pages > 0 && nodes > 0);
    assert!(!is_whole(&disks).unwrap());
    let life = Life::new(&disks, 1);
    let refused = life.ask().pool_import(&specs(&disks), POOL, false);
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("the entry of volume 0"), "{said}");
}
