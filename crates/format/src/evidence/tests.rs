//! One case per line: the labels of a pool's drives, and the verdict.

use super::*;
use crate::label::tests::label;
use crate::{VdriveConfig, data_end};
use units::DriveId;

const SIZE: u64 = 64 << 20;
const NEWEST: u64 = 20;

fn id(number: usize) -> String {
    DriveId(number as u128).to_string()
}

fn part(drive: usize, offset_mib: u64, mib: u64) -> PartConfig {
    PartConfig {
        drive: id(drive),
        offset: offset_mib << 20,
        blocks: (mib << 20) / BLOCK as u64,
        out: false,
        out_since: 0,
        out_why: String::new(),
        stale: String::new(),
    }
}

/// Metadata and a fast mirror on drives 1 and 2, a slow stripe over 3 and 4, a slow mirror of 5 and 6.
fn pool() -> PoolConfig {
    let mut config = label().config;
    let drive = |number| DriveConfig {
        id: id(number),
        spec: format!("ram:{number}"),
        size: SIZE,
        offline: false,
        labelled: 0,
        wear: Default::default(),
    };
    config.drives = (1..=6).map(drive).collect();
    config.meta.parts = vec![part(1, 2, 10), part(2, 2, 10)];
    let vdrive = |id, layout, parts| VdriveConfig {
        id,
        tier: crate::TierConfig::Slow,
        layout,
        parts,
        evacuating: false,
    };
    let stripe = LayoutConfig::Stripe { chunk_blocks: 16 };
    config.vdrives = vec![
        vdrive(
            1,
            LayoutConfig::Mirror,
            vec![part(1, 12, 50), part(2, 12, 50)],
        ),
        vdrive(2, stripe, vec![part(3, 2, 60), part(4, 2, 60)]),
        vdrive(
            3,
            LayoutConfig::Mirror,
            vec![part(5, 2, 60), part(6, 2, 60)],
        ),
    ];
    config
}

/// The drives with these labels (0: missing) of a pool: which are old, those alone that no other is in for.
fn judged(
    labels: [u64; 6],
    change: impl FnOnce(&mut PoolConfig),
) -> (Vec<usize>, Vec<usize>, PoolConfig) {
    let mut config = pool();
    change(&mut config);
    let own = |generation, number| Label {
        drive: DriveId(number as u128),
        generation,
        config: pool(),
        ..label()
    };
    let all = labels.iter().zip(1..);
    let here = all.filter(|(generation, _)| **generation > 0);
    let labels: Vec<Label> = here
        .map(|(generation, number)| own(*generation, number))
        .collect();
    let drives: Vec<_> = labels
        .iter()
        .map(|label| DriveEvidence {
            spec: "drive",
            size: SIZE,
            label,
        })
        .collect();
    let evidence = config.judge(NEWEST, &drives);
    let numbers = |alone: bool| {
        let old = evidence.old.iter().filter(|old| old.alone == alone);
        old.map(|old| old.drive.parse::<DriveId>().unwrap().0 as usize)
            .collect()
    };
    (numbers(true), numbers(false), config)
}

#[test]
fn a_drive_is_old_when_the_newest_label_says_that_it_had_a_newer_one() {
    for (labels, alone, beside) in [
        ([20, 20, 20, 20, 20, 20], vec![], vec![]),
        // Everything may be one generation behind: the last label was being written.
        ([20, 19, 19, 19, 19, 19], vec![], vec![]),
        ([20, 20, 18, 20, 20, 20], vec![3], vec![]),
        ([20, 20, 5, 7, 20, 20], vec![3, 4], vec![]),
        ([20, 18, 20, 20, 20, 20], vec![], vec![2]),
        ([20, 20, 20, 20, 3, 20], vec![], vec![5]),
        // All members of a mirror: the newest of them counts.
        ([20, 20, 20, 20, 3, 3], vec![5, 6], vec![]),
        ([20, 20, 20, 20, 3, 4], vec![6], vec![5]),
        ([20, 20, 20, 20, 3, 0], vec![5], vec![]),
        ([3, 4, 20, 20, 20, 20], vec![2], vec![1]),
    ] {
        let (is_alone, is_beside, config) = judged(labels, |_| {});
        assert_eq!((is_alone, is_beside.clone()), (alone, beside), "{labels:?}");
        for (_, part) in config.parts() {
            let number = part.drive.parse::<DriveId>().unwrap().0 as usize;
            assert_eq!(part.out, is_beside.contains(&number), "{labels:?} {number}");
            assert_eq!(part.out, part.stale == "all");
        }
    }
}

#[test]
fn a_drive_that_gets_labels_later_may_have_the_one_that_is_named() {
    let labelled = |config: &mut PoolConfig| config.drives[2].labelled = 11;
    assert!(judged([20, 20, 11, 20, 20, 20], labelled).0.is_empty());
    assert_eq!(judged([20, 20, 10, 20, 20, 20], labelled).0, [3]);
}

#[test]
fn a_drive_that_is_out_is_not_old() {
    let out = |config: &mut PoolConfig| {
        let part = &mut config.vdrives[2].parts[0];
        (part.out, part.out_since) = (true, 8);
    };
    let (alone, beside, config) = judged([20, 20, 20, 20, 7, 20], out);
    assert!(alone.is_empty() && beside.is_empty());
    assert_eq!(
        config.vdrives[2].parts[0].stale, "",
        "its label is the one before it went out"
    );
    let (_, _, config) = judged([20, 20, 20, 20, 6, 20], out);
    assert_eq!(config.vdrives[2].parts[0].stale, "all");
}

#[test]
fn a_drive_that_lacks_bytes_is_short_and_stands_in_for_nobody() {
    let own = Label {
        drive: DriveId(5),
        generation: NEWEST,
        config: pool(),
        ..label()
    };
    for (size, cut) in [
        (SIZE - 1, Some(false)),
        (data_end(SIZE), Some(false)),
        (data_end(SIZE) - 1, Some(true)),
        (SIZE, None),
        (SIZE + (1 << 20), None),
    ] {
        let spec = "file:/x";
        let drive = DriveEvidence {
            spec,
            size,
            label: &own,
        };
        let evidence = pool().judge(NEWEST, &[drive]);
        let found = evidence.short.first();
        assert_eq!(found.map(|short| short.cut), cut, "{size}");
        assert_eq!(
            found.map_or(0, |short| short.missing),
            SIZE.saturating_sub(size)
        );
        assert_eq!(evidence.is_cut(&id(5)), cut == Some(true));
    }
    // The old member of a mirror is alone where the other one is cut.
    let old = Label {
        drive: DriveId(6),
        generation: 3,
        ..own.clone()
    };
    let drives = [
        DriveEvidence {
            spec: "five",
            size: 8 << 20,
            label: &own,
        },
        DriveEvidence {
            spec: "six",
            size: SIZE,
            label: &old,
        },
    ];
    let evidence = pool().judge(NEWEST, &drives);
    let lost: Vec<_> = evidence.lost().map(|old| &old.spec[..]).collect();
    assert_eq!(lost, ["six"]);
}
