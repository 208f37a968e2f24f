//! A scan by a bypassed initiator leaves all placement statistics unchanged, and one by another
//! else does not.

use super::*;
use crate::tiering::access_stats::extent_of;

/// MiB of each volume.
const MIBS: u64 = 8;

/// An extent in RAM: its volume and number, its valid and touched blocks, and whether the hand spares it.
type InRam = (u32, u64, u16, u16, bool);

/// What placement goes by.
#[derive(PartialEq)]
struct Seen {
    ram: Vec<Option<InRam>>,
    /// Uses of each extent, and when it was used last, of one volume after the other.
    heat: Vec<(u8, u64)>,
    promotions: usize,
    fast: [u64; 2],
    moves: String,
    what_if: String,
    prefetching: usize,
}

fn seen(probe: &Probe) -> Seen {
    let shard = &probe.shard;
    let holders = BTreeMap::from([(probe.volume, probe.volume), (OTHER, OTHER)]);
    let what_if = format!("{:?}", shard.what_if(&holders));
    let state = shard.state.borrow();
    let in_ram = |slot| {
        let extent = state.ram.get(slot)?;
        let name = extent.name();
        let marks = (extent.valid, extent.touched, extent.referenced);
        Some((name.volume, name.number, marks.0, marks.1, marks.2))
    };
    let mut heat = Vec::new();
    for volume in [probe.volume, OTHER] {
        for chunk in 0..MIBS as u32 {
            let of = (0..16).map(|at| {
                state
                    .access
                    .explain(extent_of((volume, chunk), at))
                    .unwrap()
            });
            heat.extend(of.map(|heat| (heat.uses, heat.idle_blocks)));
        }
    }
    Seen {
        ram: (0..16).map(in_ram).collect(),
        heat,
        promotions: state.promotions.of(probe.volume) + state.promotions.of(OTHER),
        fast: [probe.volume, OTHER].map(|volume| fast(probe, volume)),
        moves: format!("{:?}", state.ledger.counts().collect::<Vec<_>>()),
        what_if,
        prefetching: shard.fills.ahead(),
    }
}

/// Two volumes on the slow tier, one of which fills RAM with what it uses often.
async fn warm(handle: &Handle, name: &str) -> Probe {
    let probe = cold(handle, name, MIBS).await;
    probe.shard.look_at_sizes();
    for _ in 0..4 {
        read_all(&probe, By::read(OTHER), 0..1, 4 << 10).await;
    }
    settle(&probe).await;
    probe
}

/// What is fetched ahead has come.
async fn settle(probe: &Probe) {
    while probe.shard.fills.ahead() > 0 {
        probe.shard.handle.sleep(1_000_000).await;
    }
}

/// Reads some MiB from the first byte to the last, `step` bytes at a time; all of it is 7.
async fn read_all(probe: &Probe, by: By, mib: Range<u64>, step: usize) {
    let shard = &probe.shard;
    for offset in (mib.start * MIB..mib.end * MIB).step_by(step) {
        let mut buf = IoBuf::zeroed(step);
        shard.look_and_read(by, offset, &mut buf).await.unwrap();
        let bytes = buf.into_bytes().unwrap();
        assert!(bytes.iter().all(|byte| *byte == 7), "at {offset}");
    }
}

#[test]
fn a_bypassed_scan_leaves_ram_heat_and_forecasts_as_they_were() {
    run(|handle| async move {
        let probe = warm(&handle, "bypassed").await;
        let before = seen(&probe);
        assert!(before.ram.iter().flatten().all(|extent| extent.0 == OTHER));
        assert!(before.ram.iter().flatten().count() > 0);
        let scan = By::read(probe.volume);
        // In single blocks, in extents, and in more than a chunk at a time; and what is in RAM.
        for step in [4 << 10, 64 << 10, 2 << 20] {
            read_all(&probe, scan.bypassed(true), 0..MIBS, step).await;
            read_all(&probe, By::read(OTHER).bypassed(true), 0..1, 4 << 10).await;
            settle(&probe).await;
            assert!(seen(&probe) == before, "{step}");
        }
        // The same scan by another initiator.
        read_all(&probe, scan, 0..MIBS, 64 << 10).await;
        settle(&probe).await;
        let after = seen(&probe);
        assert!(after.ram.iter().flatten().any(|extent| extent.0 != OTHER));
        assert!(after.heat[..MIBS as usize * 16] != before.heat[..MIBS as usize * 16]);
        assert_ne!(after.what_if, before.what_if);
        assert_ne!(after.moves, before.moves);
    });
}

#[test]
fn what_is_in_ram_serves_who_is_bypassed_and_leaves_first_all_the_same() {
    run(|handle| async move {
        let probe = warm(&handle, "young").await;
        let referenced = |mark: Option<bool>| {
            let mut state = probe.shard.state.borrow_mut();
            let slots = (0..16).filter(|slot| state.ram.get(*slot).is_some());
            let slots: Vec<u32> = slots.collect();
            for slot in &slots {
                let extent = state.ram.get_mut(*slot).unwrap();
                extent.referenced = mark.unwrap_or(extent.referenced);
            }
            let referenced = slots
                .iter()
                .filter(|slot| state.ram.get(**slot).unwrap().referenced);
            referenced.count()
        };
        assert_eq!(referenced(Some(false)), 0);
        let hits = || probe.shard.state.borrow().stats.totals().blocks_ram;
        let before = hits();
        read_all(&probe, By::read(OTHER).bypassed(true), 0..1, 4 << 10).await;
        assert_eq!((hits() - before, referenced(None)), (256, 0));
        read_all(&probe, By::read(OTHER), 0..1, 4 << 10).await;
        assert_eq!(referenced(None), 16);
    });
}

#[test]
fn bypassed_writes_are_kept_and_note_no_heat() {
    run(|handle| async move {
        let probe = warm(&handle, "writes").await;
        let by = By::write(probe.volume).bypassed(true);
        let before = seen(&probe);
        let buf = IoBuf::from_bytes(vec![7; 64 << 10].into());
        let part = IoBuf::from_bytes(vec![7; 512].into());
        for at in 0..16 {
            let shard = &probe.shard;
            shard.write(by, at * (64 << 10), &buf).await.unwrap();
            // A part of a block, which is read first.
            shard.write(by, 2 * MIB + at * 1024, &part).await.unwrap();
        }
        probe
            .shard
            .trim(by, 3 * MIB + 512, 1024, WhenFull::Refuse)
            .await
            .unwrap();
        let after = seen(&probe);
        assert_eq!(after.fast, [CHUNK + 5, 0]);
        let told = |seen: &Seen| (seen.heat.clone(), seen.ram.clone());
        assert!(told(&after) == told(&before));
        read_all(
            &probe,
            By::read(probe.volume).bypassed(true),
            0..3,
            64 << 10,
        )
        .await;
        let by = By::write(probe.volume);
        probe.shard.write(by, 0, &buf).await.unwrap();
        assert!(told(&seen(&probe)) != told(&before));
    });
}

#[test]
fn what_lies_in_the_layers_of_snapshots_is_bypassed_too() {
    run(|handle| async move {
        let probe = warm(&handle, "layers").await;
        let shard = &probe.shard;
        let next = OTHER + 1;
        let layer = |id, parent, epoch| format::LayerConfig {
            id,
            parent,
            root: probe.volume,
            epoch,
        };
        shard.set_layers(&[layer(probe.volume, 0, 1), layer(next, probe.volume, 2)]);
        shard.switch_layers(&[(probe.volume, next)]);
        let writes = By::write(probe.volume).bypassed(true);
        let buf = IoBuf::from_bytes(vec![7; 64 << 10].into());
        for at in 0..8 {
            shard
                .write(writes, at * MIB + (64 << 10), &buf)
                .await
                .unwrap();
        }
        let before = seen(&probe);
        let reader = 1 << 31;
        shard.set_reader(reader, Some(probe.volume));
        for volume in [probe.volume, reader] {
            read_all(&probe, By::read(volume).bypassed(true), 0..MIBS, 256 << 10).await;
            settle(&probe).await;
            assert!(seen(&probe) == before);
        }
        read_all(&probe, By::read(reader), 0..MIBS, 256 << 10).await;
        settle(&probe).await;
        assert!(seen(&probe) != before);
    });
}
