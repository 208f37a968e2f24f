//! The base pools of forgeries: they contain every kind of on-disk structure.

use super::disk::Disk;
use super::life::{Life, MIB, POOL};
use crate::image::Image;
use block::{BlockDevice, IoBuf, OpKind};
use engine::{LayoutSpec, PoolSpec, SpacePolicy, Tier, VdriveSpec, VolumeSpec};
use std::sync::Arc;

/// How a pool is made.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Both tiers are mirrors; else one fast drive and a stripe of two slow ones.
    pub mirrored: bool,
    /// It was exported; else it was in use, with records in its journals.
    pub exported: bool,
}

/// Every shape.
pub const SHAPES: [Shape; 3] = [
    Shape {
        mirrored: false,
        exported: true,
    },
    Shape {
        mirrored: false,
        exported: false,
    },
    Shape {
        mirrored: true,
        exported: false,
    },
];

fn specs(mirrored: bool) -> (Vec<Disk>, Vec<VdriveSpec>) {
    let disk = |name: &str, mib: u64| Disk::new(name, mib * MIB, Image::new(mib * MIB));
    let vdrive = |tier, layout, disks: &[Disk]| VdriveSpec {
        tier,
        layout,
        drives: disks.iter().map(|disk| disk.spec().to_owned()).collect(),
    };
    let fast = [disk("sim:fast0", 32), disk("sim:fast1", 32)];
    let slow = [disk("sim:slow0", 24), disk("sim:slow1", 24)];
    let (layouts, fasts) = match mirrored {
        true => ([LayoutSpec::Mirror, LayoutSpec::Mirror], 2),
        false => (
            [LayoutSpec::Concat, LayoutSpec::Stripe { chunk: 64 << 10 }],
            1,
        ),
    };
    let [above, below] = layouts;
    let vdrives = vec![
        vdrive(Tier::Fast, above, &fast[..fasts]),
        vdrive(Tier::Slow, below, &slow),
    ];
    let disks = fast.into_iter().take(fasts).chain(slow);
    (disks.collect(), vdrives)
}

/// Creates a pool of a shape and returns its drives.
///
/// # Panics
/// If a request to the engine fails.
pub fn make(shape: Shape) -> Vec<Disk> {
    let (disks, vdrives) = specs(shape.mirrored);
    let life = Life::new(&disks, 1);
    let spec = PoolSpec {
        name: POOL.into(),
        vdrives,
        policy: SpacePolicy::SlowFirst,
        shards: 2,
        force: false,
        accept_unmirrored: true,
    };
    life.ask().pool_create(&spec).expect("a pool");
    let mut opened: Vec<Arc<dyn BlockDevice>> = Vec::new();
    // The second spans two regions, and so both shards.
    for (name, size) in [("v", 8), ("w", 300)] {
        let spec = VolumeSpec {
            name: name.into(),
            size: size * MIB,
            lba_size: 512,
            thick: false,
            quota: 0,
            reservation: 0,
        };
        life.ask().volume_create(POOL, &spec).expect("a volume");
        opened.push(
            life.ask()
                .volume_open(POOL, name, None)
                .expect("the volume"),
        );
    }
    for device in &opened {
        life.write(device, 0, 2 * MIB, 1);
        life.write(device, 3 * MIB, 40 << 10, 2);
    }
    life.write(&opened[1], 256 * MIB, MIB, 1);
    life.ask().pool_cool(POOL).expect("all sinks");
    let names = ["v".to_owned(), "w".to_owned()];
    life.ask()
        .snapshot_create(POOL, &names, "a", 1)
        .expect("a snapshot");
    for device in &opened {
        // Some come back to the fast tier, some are otherwise, some are gone.
        for _ in 0..3 {
            let buf = IoBuf::zeroed(256 << 10);
            life.run(device, OpKind::Read, (0, 256 << 10), buf);
        }
        life.write(device, MIB, 200 << 10, 4);
        life.run(
            device,
            OpKind::Discard,
            (64 << 10, 64 << 10),
            IoBuf::empty(),
        );
    }
    life.ask()
        .snapshot_create(POOL, &names[..1], "b", 2)
        .expect("another");
    life.ask()
        .snapshot_clone(POOL, "v", "a", "c")
        .expect("a clone");
    let clone = life.ask().volume_open(POOL, "c", None).expect("the clone");
    life.write(&clone, 2 * MIB, 64 << 10, 5);
    life.rest(20_000);
    opened.push(clone);
    // Checkpoints: what follows is in the journals alone.
    life.ask().pool_export(POOL).expect("an export");
    if !shape.exported {
        let specs: Vec<String> = disks.iter().map(|disk| disk.spec().to_owned()).collect();
        life.ask()
            .pool_import(&specs, POOL, false)
            .expect("an import");
        for name in ["v", "w", "c"] {
            let device = life.ask().volume_open(POOL, name, None).expect("a volume");
            life.write(&device, MIB / 2, 80 << 10, 6);
            life.run(&device, OpKind::Discard, (0, 32 << 10), IoBuf::empty());
            life.run(&device, OpKind::Flush, (0, 0), IoBuf::empty());
            life.write(&device, 5 * MIB, 8 << 10, 7);
        }
    }
    disks.iter().map(Disk::copy).collect()
}
