//! The effect of each setting on a full fast tier, compared with none.

use super::*;
use crate::io::discard::WhenFull;
use crate::maintenance::upkeep::WritebackRate;
use crate::shard::probe::{Probe, run};
use crate::tiering::access_stats::By;
use crate::tiering::writeback;
use block::IoBuf;
use format::PinConfig;
use reactor::Handle;
use std::sync::atomic::Ordering;
use units::CHUNK_BLOCKS;

mod bypass;
mod pool_budget;

const MIB: u64 = 1 << 20;
const CHUNK: u64 = CHUNK_BLOCKS as u64;
/// A second volume, beside the probe's own.
const OTHER: u32 = 77;

fn config(id: u32, settings: KnobsConfig) -> VolumeConfig {
    VolumeConfig {
        id,
        name: format!("v{id}"),
        size: 1 << 30,
        lba_size: 512,
        thick: false,
        deleting: false,
        live: 0,
        next: 0,
        quota: 0,
        reservation: 0,
        knobs: settings,
        targets: format::TargetsConfig::default(),
        policy: 0,
        group: 0,
    }
}

/// Sets the settings of a volume alone, as a pool does; returns them.
fn set(probe: &Probe, volume: u32, settings: KnobsConfig) -> Arc<VolumeSettings> {
    let daily = settings.write_budget;
    let budget = (daily > 0).then(|| Arc::new(Budget::new(daily)));
    let settings = Arc::new(VolumeSettings::new(
        &config(volume, settings),
        PolicyHints::default(),
        budget,
    ));
    probe
        .shard
        .set_settings(&BTreeMap::from([(volume, settings.clone())]));
    settings
}

fn pinned(tier: TierConfig, mib: Range<u64>) -> KnobsConfig {
    KnobsConfig {
        pins: vec![PinConfig {
            offset: mib.start * MIB,
            length: (mib.end - mib.start) * MIB,
            tier,
        }],
        ..KnobsConfig::default()
    }
}

/// A shard with two volumes, `mib` of each of which is on both tiers.
async fn both(handle: &Handle, name: &str, mib: u64) -> Probe {
    let probe = Probe::open(handle, name).await;
    let shard = &probe.shard;
    shard.set_volume(OTHER, OTHER);
    shard.begin_policy();
    shard.shared.space.set_capacity(1 << 16);
    let buf = IoBuf::from_bytes(vec![7; MIB as usize].into());
    for at in 0..mib {
        for volume in [probe.volume, OTHER] {
            shard
                .write(By::write(volume), at * MIB, &buf)
                .await
                .unwrap();
        }
    }
    demote_all(&probe).await;
    probe
}

/// Everything that is newer on the fast tier goes down; copies stay.
async fn demote_all(probe: &Probe) {
    let shard = &probe.shard;
    while shard.state.borrow().tier_index.has_ready() {
        let demoted = shard.demote_batch(0, writeback::BATCH, true).await.unwrap();
        assert!(demoted.blocks > 0 || !shard.state.borrow().tier_index.has_ready());
    }
}

/// Blocks of a volume on the fast tier.
fn fast(probe: &Probe, volume: u32) -> u64 {
    let state = probe.shard.state.borrow();
    state.volumes.get(&volume).unwrap().fast() as u64
}

/// Blocks of some MiB of the probe's volume that are on the fast tier.
async fn fast_of(probe: &Probe, mib: Range<u64>) -> u64 {
    let mut sum = 0;
    for chunk in mib {
        let map_page = probe
            .shard
            .map_page(probe.volume, chunk as u32, false)
            .await;
        if let Some(map_page) = map_page.unwrap() {
            let counts = probe.shard.count(&map_page.page.borrow());
            sum += counts.fast + counts.clean;
        }
    }
    sum
}

async fn evict(probe: &Probe, blocks: u64) -> u64 {
    let mut left = 0;
    while left < blocks {
        match probe.shard.evict(blocks - left).await.unwrap() {
            0 => break,
            more => left += more,
        }
    }
    left
}

/// Reads all of some MiB from the slow tier, often enough to be hot, and lets it leave RAM again. Returns what
/// was queued for promotion.
async fn read_hot(probe: &Probe, volume: u32, mib: Range<u64>) -> usize {
    let shard = &probe.shard;
    for _ in 0..3 {
        for at in mib.clone() {
            for part in 0..16 {
                let mut buf = IoBuf::zeroed(16 << 10);
                let offset = at * MIB + part * (64 << 10);
                let by = By::read(volume);
                shard.look_and_read(by, offset, &mut buf).await.unwrap();
            }
        }
    }
    queued(probe, volume)
}

fn queued(probe: &Probe, volume: u32) -> usize {
    probe.shard.state.borrow().promotions.of(volume)
}

async fn promote_all(probe: &Probe) {
    while let Some(candidate) = probe.shard.next_candidate() {
        probe.shard.promote(&candidate).await.unwrap();
    }
}

/// A shard whose RAM holds 16 extents.
fn small_ram(probe: &Probe) {
    let shard = &probe.shard;
    shard.shared.ram_bytes.store(1 << 20, Ordering::Relaxed);
    assert!(!shard.state.borrow_mut().ram.fit(1 << 20, 0));
}

/// One whose volumes are on the slow tier alone.
async fn cold(handle: &Handle, name: &str, mib: u64) -> Probe {
    let probe = both(handle, name, mib).await;
    small_ram(&probe);
    probe.shard.moves.note_looked_over();
    evict(&probe, 2 * mib * CHUNK).await;
    assert_eq!(fast(&probe, probe.volume) + fast(&probe, OTHER), 0);
    probe
}

#[test]
fn pins_are_found_by_chunk() {
    let mut settings = KnobsConfig::default();
    settings
        .pin(MIB - (64 << 10), 128 << 10, Some(TierConfig::Fast))
        .unwrap();
    settings
        .pin(MIB + (128 << 10), 64 << 10, Some(TierConfig::Slow))
        .unwrap();
    settings.pin(7 * MIB, 0, Some(TierConfig::Slow)).unwrap();
    let settings = VolumeSettings::new(&config(1, settings), PolicyHints::default(), None);
    let of = |chunk| {
        let pinned = settings.pinned(chunk);
        (pinned.fast, pinned.slow)
    };
    assert_eq!([0, 1, 2].map(of), [(1 << 15, 0), (1, 0b100), (0, 0)]);
    assert_eq!(
        [6, 7, u32::MAX].map(of),
        [(0, 0), (0, u16::MAX), (0, u16::MAX)]
    );
}

#[test]
fn without_promotion_nothing_read_comes_to_the_fast_tier_until_it_is_on_again() {
    run(|handle| async move {
        let probe = cold(&handle, "off", 4).await;
        let off = KnobsConfig {
            promotion_off: true,
            ..KnobsConfig::default()
        };
        set(&probe, probe.volume, off);
        assert_eq!(read_hot(&probe, probe.volume, 0..4).await, 0);
        assert!(read_hot(&probe, OTHER, 0..4).await > 0);
        set(&probe, probe.volume, KnobsConfig::default());
        assert!(read_hot(&probe, probe.volume, 0..4).await > 0);
        // What was queued before does not come afterwards.
        let off = KnobsConfig {
            promotion_off: true,
            ..KnobsConfig::default()
        };
        set(&probe, probe.volume, off);
        promote_all(&probe).await;
        assert_eq!(fast(&probe, probe.volume), 0);
        assert!(fast(&probe, OTHER) > 0);
    });
}

#[test]
fn what_is_pinned_to_the_fast_tier_stays_there_until_it_is_not_pinned_any_more() {
    run(|handle| async move {
        let probe = both(&handle, "stays", 16).await;
        set(&probe, probe.volume, pinned(TierConfig::Fast, 4..8));
        let wanted = 2 * 16 * CHUNK;
        assert_eq!(evict(&probe, wanted).await, wanted - 4 * CHUNK);
        assert_eq!(fast_of(&probe, 4..8).await, 4 * CHUNK);
        assert!(!probe.shard.state.borrow().has_victims());
        probe.shard.set_settings(&BTreeMap::new());
        assert!(probe.shard.state.borrow().has_victims());
        assert_eq!(evict(&probe, wanted).await, 4 * CHUNK);
    });
}

#[test]
fn blocks_that_are_pinned_are_not_packed_onto_the_slow_tier() {
    run(|handle| async move {
        let probe = both(&handle, "packed", 1).await;
        let block = IoBuf::zeroed(BLOCK);
        for at in [100, 101] {
            probe
                .shard
                .write(By::write(probe.volume), at * MIB, &block)
                .await
                .unwrap();
        }
        set(&probe, probe.volume, pinned(TierConfig::Fast, 100..101));
        probe
            .shard
            .demote_batch(0, writeback::BATCH, true)
            .await
            .unwrap();
        assert_eq!(fast_of(&probe, 100..101).await, 1);
        assert_eq!(fast_of(&probe, 101..102).await, 0);
        probe.shard.set_settings(&BTreeMap::new());
        probe.shard.state.borrow_mut().tier_index.recall();
        probe
            .shard
            .demote_batch(0, writeback::BATCH, true)
            .await
            .unwrap();
        assert_eq!(fast_of(&probe, 100..101).await, 0);
    });
}

#[test]
fn what_is_cold_and_pinned_comes_up_in_the_background() {
    run(|handle| async move {
        let probe = cold(&handle, "up", 8).await;
        let block = IoBuf::zeroed(BLOCK);
        probe
            .shard
            .write(By::write(probe.volume), 100 * MIB, &block)
            .await
            .unwrap();
        probe
            .shard
            .demote_batch(0, writeback::BATCH, true)
            .await
            .unwrap();
        // Some of it is at home, some in slots of the slow tier.
        assert_eq!(fast_of(&probe, 0..101).await, 0);
        set(&probe, probe.volume, pinned(TierConfig::Fast, 4..101));
        while probe.shard.pin_promoter.is_promoting() {
            handle.sleep(1_000_000).await;
        }
        assert_eq!(fast_of(&probe, 0..4).await, 0);
        assert_eq!(fast_of(&probe, 4..101).await, 4 * CHUNK + 1);
        assert_eq!(fast(&probe, OTHER), 0);
    });
}

#[test]
fn what_is_pinned_to_the_slow_tier_goes_there_and_does_not_come_up() {
    run(|handle| async move {
        let probe = both(&handle, "down", 4).await;
        small_ram(&probe);
        let block = IoBuf::zeroed(BLOCK);
        probe
            .shard
            .write(By::write(probe.volume), 2 * MIB, &block)
            .await
            .unwrap();
        probe
            .shard
            .write(By::write(probe.volume), 9 * MIB, &block)
            .await
            .unwrap();
        set(&probe, probe.volume, pinned(TierConfig::Slow, 2..10));
        let mut writeback_rate = WritebackRate::default();
        // What was just written settles first.
        for _ in 0..10_000 {
            if fast_of(&probe, 2..10).await == 0 {
                break;
            }
            probe.shard.mover_round(&mut writeback_rate).await.unwrap();
            handle.sleep(1_000_000).await;
        }
        assert_eq!(fast_of(&probe, 2..10).await, 0);
        assert_eq!(fast_of(&probe, 0..2).await, 2 * CHUNK);
        assert_eq!(fast(&probe, OTHER), 4 * CHUNK);
        assert_eq!(read_hot(&probe, probe.volume, 2..4).await, 0);
        probe.shard.set_settings(&BTreeMap::new());
        assert!(read_hot(&probe, probe.volume, 2..4).await > 0);
    });
}

#[test]
fn a_volume_below_its_floor_gives_way_last() {
    run(|handle| async move {
        let probe = both(&handle, "floor", 16).await;
        let floor = KnobsConfig {
            fast_floor: 6 * MIB,
            ..KnobsConfig::default()
        };
        set(&probe, probe.volume, floor);
        assert_eq!(evict(&probe, 24 * CHUNK).await, 24 * CHUNK);
        let (own, other) = (fast(&probe, probe.volume), fast(&probe, OTHER));
        assert!(own >= 6 * CHUNK - 16, "{own} and {other}");
        // And nevertheless when there is nothing else.
        assert_eq!(evict(&probe, 8 * CHUNK).await, 8 * CHUNK);
    });
}

#[test]
fn a_volume_above_its_ceiling_gives_way_first() {
    run(|handle| async move {
        for (ceiling, goes_first) in [(4 * MIB, true), (0, false)] {
            let name = format!("ceiling-{ceiling}");
            let probe = both(&handle, &name, 16).await;
            probe.shard.moves.note_looked_over();
            let settings = KnobsConfig {
                fast_ceiling: ceiling,
                ..KnobsConfig::default()
            };
            set(&probe, probe.volume, settings);
            evict(&probe, 8 * CHUNK).await;
            let left = 16 * CHUNK - fast(&probe, OTHER);
            assert_eq!(left == 0, goes_first, "{left} blocks of the other left");
        }
    });
}

#[test]
fn reads_bring_a_volume_to_its_ceiling_and_no_further() {
    run(|handle| async move {
        let probe = cold(&handle, "beyond", 8).await;
        let ceiling = KnobsConfig {
            fast_ceiling: 40 * BLOCK as u64,
            ..KnobsConfig::default()
        };
        let settings = set(&probe, probe.volume, ceiling);
        for _ in 0..4 {
            read_hot(&probe, probe.volume, 0..8).await;
            promote_all(&probe).await;
        }
        let has = fast(&probe, probe.volume);
        assert!((32..=40).contains(&has), "{has}");
        assert_eq!(settings.fast(), has as i64);
        set(&probe, probe.volume, KnobsConfig::default());
        read_hot(&probe, probe.volume, 0..8).await;
        promote_all(&probe).await;
        assert!(fast(&probe, probe.volume) > 40);
    });
}

#[test]
fn promotion_pauses_when_its_budget_is_used_up() {
    run(|handle| async move {
        let probe = cold(&handle, "budget", 4).await;
        let budget = KnobsConfig {
            write_budget: 4096,
            ..KnobsConfig::default()
        };
        // It begins empty.
        let settings = set(&probe, probe.volume, budget.clone());
        assert_eq!(read_hot(&probe, probe.volume, 0..4).await, 0);
        let budget = settings.budget.as_ref().unwrap();
        budget.give_back(40 * BLOCK as u64);
        assert!(read_hot(&probe, probe.volume, 0..4).await > 0);
        promote_all(&probe).await;
        let has = fast(&probe, probe.volume);
        assert!((25..=40).contains(&has), "{has}");
        assert_eq!(budget.left(), (40 - has) * BLOCK as u64);
    });
}

#[test]
fn what_a_volume_has_on_the_fast_tier_is_counted_whatever_happens_to_it() {
    run(|handle| async move {
        let probe = both(&handle, "counted", 8).await;
        let ceiling = KnobsConfig {
            fast_ceiling: MIB,
            ..KnobsConfig::default()
        };
        let settings = set(&probe, probe.volume, ceiling.clone());
        let right = || assert_eq!(settings.fast() as u64, fast(&probe, probe.volume));
        right();
        let buf = IoBuf::zeroed(5 * BLOCK);
        probe
            .shard
            .write(By::write(probe.volume), 20 * MIB, &buf)
            .await
            .unwrap();
        right();
        probe
            .shard
            .write(By::write(probe.volume), MIB / 2, &buf)
            .await
            .unwrap();
        demote_all(&probe).await;
        right();
        probe
            .shard
            .trim(By::write(probe.volume), 2 * MIB, 3 * MIB, WhenFull::Refuse)
            .await
            .unwrap();
        right();
        evict(&probe, 3 * CHUNK).await;
        right();
        // Others take their place with existing data.
        let next = set(&probe, probe.volume, ceiling);
        assert_eq!(next.fast() as u64, fast(&probe, probe.volume));
        assert_eq!(settings.fast(), 0);
        assert!(next.fast() > 0);
    });
}

#[test]
fn what_is_written_after_a_snapshot_goes_by_the_same_settings() {
    run(|handle| async move {
        let probe = both(&handle, "snapshot", 2).await;
        let shard = &probe.shard;
        let settings = set(&probe, probe.volume, pinned(TierConfig::Fast, 0..2));
        let next = OTHER + 1;
        shard.set_layers(&[format::LayerConfig {
            id: next,
            parent: probe.volume,
            root: probe.volume,
            epoch: 1,
        }]);
        shard.switch_layers(&[(probe.volume, next)]);
        let buf = IoBuf::zeroed(MIB as usize);
        for at in 0..4 {
            shard
                .write(By::write(probe.volume), at * MIB, &buf)
                .await
                .unwrap();
        }
        demote_all(&probe).await;
        let has = [probe.volume, next].map(|layer| fast(&probe, layer));
        assert_eq!(has, [2 * CHUNK, 4 * CHUNK]);
        assert_eq!(settings.fast() as u64, has.iter().sum::<u64>());
        assert_eq!(settings.live(), next);
        // What is written twice is in both layers: what is a snapshot's alone is not held.
        evict(&probe, 100 * CHUNK).await;
        assert_eq!(
            [probe.volume, next].map(|layer| fast(&probe, layer)),
            [0, 2 * CHUNK]
        );
        assert_eq!(settings.fast() as u64, 2 * CHUNK);
    });
}

#[test]
fn an_eager_volume_promotes_what_others_leave_and_a_thrifty_one_does_not() {
    let admission = |reaction| {
        let settings = KnobsConfig {
            reaction,
            ..KnobsConfig::default()
        };
        VolumeSettings::new(&config(1, settings), PolicyHints::default(), None).admission(
            (1, 0),
            0,
            1,
        )
    };
    assert_eq!(admission(ReactionConfig::Normal), Admission::ByWorth(1.0));
    let (eager, thrifty) = (
        admission(ReactionConfig::Eager),
        admission(ReactionConfig::Thrifty),
    );
    assert!(matches!(eager, Admission::ByWorth(factor) if factor < 1.0));
    assert!(matches!(thrifty, Admission::ByWorth(factor) if factor > 1.0));
}

/// What an extent has to be worth, in times of the margin, and what it counts for once it is there.
fn placed_by(level: Option<u8>, reaction: ReactionConfig) -> (f32, f32) {
    let settings = KnobsConfig {
        reaction,
        ..KnobsConfig::default()
    };
    let settings = VolumeSettings::new(&config(1, settings), PolicyHints::by_level(level), None);
    match settings.admission((1, 0), 0, 1) {
        Admission::ByWorth(reluctance) => (reluctance, settings.weight()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_service_level_says_what_is_kept_fast_unless_a_reaction_was_chosen() {
    let by_level = |level| placed_by(level, ReactionConfig::Normal);
    assert_eq!(by_level(None), (1.0, 1.0));
    assert_eq!(by_level(Some(3)), (1.0, 1.0));
    let levels: Vec<_> = (1..=5).map(|level| by_level(Some(level))).collect();
    assert!(levels.is_sorted_by(|(before, _), (after, _)| before < after));
    assert!(levels.is_sorted_by(|(_, before), (_, after)| before > after));
    let (reluctance, weight) = placed_by(Some(1), ReactionConfig::Thrifty);
    assert!(reluctance > 1.0 && weight == levels[0].1);
    units::mutation::switch(Some(units::mutation::Mutation::PlacementUndue));
    let ignored = by_level(Some(1));
    units::mutation::switch(None);
    assert_eq!(ignored, (1.0, 1.0));
}

#[test]
fn what_level_1_has_in_ram_stays_for_a_round_longer() {
    run(|handle| async move {
        let mut stayed = Vec::new();
        for level in [None, Some(1)] {
            let memory = crate::EngineConfig {
                ram_tier: 4 * EXTENT as u64,
                ..crate::EngineConfig::default()
            };
            let name = format!("ram-round-{}", level.is_some());
            let probe = Probe::open_with(&handle, &name, &memory).await;
            let (shard, volume) = (&probe.shard, probe.volume);
            // Far enough from one another not to be taken for one region.
            let places = (0..6).map(|place| place * 100);
            for chunk in places.clone() {
                let (by, buf) = (By::write(volume), IoBuf::zeroed(MIB as usize));
                shard.write(by, chunk * MIB, &buf).await.unwrap();
            }
            shard
                .demote_batch(0, writeback::BATCH, false)
                .await
                .unwrap();
            shard.evict(u64::MAX).await.unwrap();
            let settings = VolumeSettings::new(
                &config(volume, KnobsConfig::default()),
                PolicyHints::by_level(level),
                None,
            );
            shard.set_settings(&BTreeMap::from([(volume, Arc::new(settings))]));
            for chunk in places {
                if chunk == 200 {
                    // What comes from now on is as others' is.
                    shard.set_settings(&BTreeMap::new());
                }
                let mut buf = IoBuf::zeroed(BLOCK);
                let read = shard.look_and_read(By::read(volume), chunk * MIB, &mut buf);
                read.await.unwrap();
            }
            let mut there = 0;
            for chunk in [0, 100] {
                let map_page = shard.map_page(volume, chunk, false).await.unwrap().unwrap();
                there += usize::from(map_page.ram[0].get() != 0);
            }
            stayed.push(there);
        }
        assert_eq!(stayed, [0, 2]);
    });
}

#[test]
fn a_policy_guarantees_space_and_promotes_eagerly_unless_the_volume_says_otherwise() {
    let policy = format::QosPolicyConfig {
        id: format::QOS_OWN_FROM,
        name: "gold".to_owned(),
        reaction: ReactionConfig::Eager,
        fast_floor: 10 * MIB,
        ram_percent: 30,
        ..format::built_in_policies().nth(2).unwrap()
    };
    let group = format::QosGroupConfig {
        id: 50,
        name: "g".to_owned(),
        policy: format::QOS_OWN_FROM,
    };
    let qos = QosConfig {
        policies: vec![policy],
        next: format::QOS_OWN_FROM + 1,
        groups: vec![group],
    };
    let volume = |id, group| VolumeConfig {
        policy: format::QOS_OWN_FROM * u32::from(group == 0),
        group,
        ..config(id, KnobsConfig::default())
    };
    let volumes = vec![volume(1, 0), volume(2, 50), volume(3, 50), volume(4, 50)];
    let hints = |at: usize| PolicyHints::of(&qos, &volumes, &volumes[at]);
    assert!(hints(0).affect_placement());
    assert_eq!((hints(0).fast_floor, hints(0).ram_ppm), (10 * MIB, 300_000));
    // Volumes of a group have equal parts, in whole blocks.
    assert_eq!(
        (hints(1).fast_floor, hints(1).ram_ppm),
        (853 * 4096, 100_000)
    );
    let none = PolicyHints::of(&qos, &volumes, &config(9, KnobsConfig::default()));
    assert!(none == PolicyHints::default() && !none.affect_placement());
    let made = |settings| VolumeSettings::new(&config(1, settings), hints(0), None);
    let by_policy = made(KnobsConfig::default());
    assert_eq!(by_policy.floor as u64 * BLOCK as u64, 10 * MIB);
    assert_eq!(by_policy.admission((1, 0), 0, 1), Admission::ByWorth(EAGER));
    let by_itself = made(KnobsConfig {
        reaction: ReactionConfig::Thrifty,
        fast_floor: 20 * MIB,
        ..KnobsConfig::default()
    });
    assert_eq!(by_itself.floor as u64 * BLOCK as u64, 20 * MIB);
    assert_eq!(
        by_itself.admission((1, 0), 0, 1),
        Admission::ByWorth(THRIFTY)
    );
}

/// Reads a block of each of these MiB of a volume, one after the other.
async fn read_each(probe: &Probe, volume: u32, mib: impl Iterator<Item = u64>) {
    for at in mib {
        let mut buf = IoBuf::zeroed(BLOCK);
        let read = probe
            .shard
            .look_and_read(By::read(volume), at * MIB, &mut buf);
        read.await.unwrap();
    }
}

/// Which of these MiB of a volume have their first extent in RAM.
async fn in_ram(probe: &Probe, volume: u32, mib: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut there = Vec::new();
    for chunk in mib {
        let map_page = probe.shard.map_page(volume, chunk, false).await.unwrap();
        if map_page.is_some_and(|page| page.ram[0].get() != 0) {
            there.push(chunk);
        }
    }
    there
}

#[test]
fn a_volume_keeps_its_part_of_ram_while_another_one_reads_everything() {
    run(|handle| async move {
        let memory = crate::EngineConfig {
            ram_tier: 8 * EXTENT as u64,
            ..crate::EngineConfig::default()
        };
        let probe = Probe::open_with(&handle, "ram-part", &memory).await;
        let (shard, volume) = (&probe.shard, probe.volume);
        shard.set_volume(OTHER, OTHER);
        // Far enough from one another not to be taken for one region.
        let places = |count: u64| (0..count).map(|place| place * 100);
        for (volume, count) in [(volume, 4), (OTHER, 40)] {
            for at in places(count) {
                let buf = IoBuf::zeroed(MIB as usize);
                let write = shard.write(By::write(volume), at * MIB, &buf);
                write.await.unwrap();
            }
        }
        demote_all(&probe).await;
        shard.evict(u64::MAX).await.unwrap();
        read_each(&probe, volume, places(4)).await;
        let mine = async || {
            in_ram(&probe, volume, (0..4).map(|place| place * 100))
                .await
                .len()
        };
        assert_eq!(mine().await, 4);
        // Guaranteed when it is there already: three of eight extents.
        let hints = PolicyHints {
            ram_ppm: 375_000,
            ..PolicyHints::default()
        };
        let settings = Arc::new(VolumeSettings::new(
            &config(volume, KnobsConfig::default()),
            hints,
            None,
        ));
        shard.set_settings(&BTreeMap::from([(volume, settings)]));
        read_each(&probe, OTHER, places(40)).await;
        assert_eq!(mine().await, 3);
        // A smaller tier keeps the same part of it.
        while shard.state.borrow_mut().ram.fit(4 * EXTENT as u64, 1) {}
        read_each(&probe, OTHER, places(40)).await;
        assert_eq!(mine().await, 1);
        units::mutation::switch(Some(units::mutation::Mutation::PlacementUndue));
        read_each(&probe, OTHER, places(40)).await;
        units::mutation::switch(None);
        assert_eq!(mine().await, 0);
    });
}
