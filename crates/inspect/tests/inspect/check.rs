//! The results of `check` on intact pools, and on damaged ones.

use crate::support::client::{Made, SHAPES, Shape, made};
use crate::support::image::{Image, Random};
use inspect::{Mode, Options, Report, Verdict, inspect_drives};
use reactor::Reactor;

fn look(images: &[Image], mode: Mode, data: bool) -> Report {
    let drives: Vec<_> = images.iter().map(Image::drive).collect();
    let reactor = Reactor::new(1).unwrap();
    let handle = reactor.handle().clone();
    let looked = reactor.block_on(async move {
        inspect_drives(&handle, &drives, mode, Options { data }, &|_| ()).await
    });
    looked.unwrap().unwrap()
}

#[test]
fn a_whole_pool_is_whole_however_it_ended() {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let made = made(shape, seed as u64);
        let report = look(&made.drives, Mode::Look, true);
        assert_eq!(report.verdict, Verdict::Whole, "{shape:?}: {report:#?}");
        for volume in &report.volumes {
            let blocks = made.volumes[&volume.name].1.len() as u64;
            assert_eq!(volume.blocks, blocks, "{shape:?} {}", volume.name);
        }
    }
}

const MIRRORED: Shape = SHAPES[0];

/// Blocks of a drive between its labels that hold something.
fn used(image: &Image) -> Vec<u64> {
    let labels = 512;
    (labels..image.blocks() - labels)
        .filter(|block| image.is_used(*block))
        .collect()
}

fn flip(image: &Image, block: u64, random: &mut Random) {
    let mut bytes = image.block(block);
    bytes[random.below(4096) as usize] ^= 1 << random.below(8);
    image.set_block(block, bytes);
}

/// Damages one drive of a mirrored pool and repairs it.
fn mends(made: &Made, damage: impl FnOnce(&[Image])) {
    let images = made.copy();
    damage(&images);
    let before = look(&images, Mode::Look, true);
    assert_eq!(before.verdict, Verdict::Repairable, "{before:#?}");
    let plan = images.iter().map(Image::written).collect::<Vec<_>>();
    look(&images, Mode::Look, true);
    assert_eq!(
        plan,
        images.iter().map(Image::written).collect::<Vec<_>>(),
        "a check wrote"
    );
    let mended = look(&images, Mode::Mend, true);
    assert_eq!(mended.mends, before.mends, "it does what it said");
    let after = look(&images, Mode::Look, true);
    assert_eq!(after.verdict, Verdict::Whole, "{after:#?}");
}

#[test]
fn any_damage_to_one_leg_is_found_and_mended() {
    let made = made(MIRRORED, 7);
    for leg in 0..4 {
        mends(&made, |images| {
            let mut random = Random(leg as u64);
            for block in used(&images[leg]) {
                if random.below(3) == 0 {
                    flip(&images[leg], block, &mut random);
                }
            }
        });
        mends(&made, |images| {
            for block in used(&images[leg]) {
                images[leg].set_block(block, vec![0; 4096]);
            }
        });
        mends(&made, |images| {
            // Both labels at the start, as a partitioning tool leaves a drive.
            (0..512).for_each(|block| images[leg].set_block(block, vec![7; 4096]));
        });
    }
}

#[test]
fn a_block_without_a_second_copy_is_lost_alone_and_named() {
    let made = made(SHAPES[2], 9);
    let (_, content) = &made.volumes["small"];
    let (number, bytes) = content.iter().next_back().unwrap();
    let images = made.copy();
    let mut random = Random(1);
    for image in &images {
        for block in used(image) {
            if image.block(block) == *bytes {
                flip(image, block, &mut random);
            }
        }
    }
    assert_eq!(
        look(&images, Mode::Look, false).verdict,
        Verdict::Whole,
        "data is not read"
    );
    let report = look(&images, Mode::Look, true);
    assert_eq!(report.verdict, Verdict::Lost);
    let small = report
        .volumes
        .iter()
        .find(|volume| volume.name == "small")
        .unwrap();
    assert_eq!(
        (small.lost[0].offset, small.lost_bytes),
        (number * 4096, 4096)
    );
    let wide = report
        .volumes
        .iter()
        .find(|volume| volume.name == "wide")
        .unwrap();
    assert_eq!(wide.lost_bytes, 0);
}
