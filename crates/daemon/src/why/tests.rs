//! Made-up situations, each with the cause that has to come first.

use super::*;
use api::v1::{EventCode, Why, WhyCause, WhyFinding, WhyVerdict};
use engine::Tier;

const GIB: f64 = (1u64 << 30) as f64;
const MS: f64 = 1e6;
const US: f64 = 1e3;

/// A busy volume: 1,000 reads of 4 KiB a second, 0.2 ms each, a half from RAM and a half from the
/// fast tier; no writes.
fn load() -> Load {
    Load {
        seconds: 300.0,
        reads: 1000.0,
        writes: 0.0,
        bytes: 4_096_000.0,
        read_ns: 200.0 * US,
        write_ns: 0.0,
        read_p99_ns: Some(900.0 * US),
        write_p99_ns: None,
        read_from: [2_048_000.0, 2_048_000.0, 0.0, 0.0],
        limit_wait: Some(0.0),
        share_wait: Some(0.0),
        promoted: 0.0,
    }
}

/// The same with a share of its reads from disks, 8 ms each.
fn missing(share: f64) -> Load {
    let all = 4_096_000.0;
    Load {
        read_ns: share * 8.0 * MS + (1.0 - share) * 100.0 * US,
        read_p99_ns: Some(30.0 * MS),
        read_from: [0.0, (1.0 - share) * all, share * all, 0.0],
        ..load()
    }
}

fn tier(read_ns: f64, write_ns: f64) -> TierLoad {
    TierLoad {
        reads: 2000.0,
        writes: 500.0,
        bytes: 40e6,
        read_ns,
        write_ns,
        capacity: 100.0 * GIB,
        used: Some(95.0 * GIB),
        dirty: Some(5.0 * GIB),
    }
}

/// Now, a pool of flash and disks.
fn site(load: Load) -> Evidence {
    Evidence {
        pool: "tank".to_owned(),
        volume: "vm7".to_owned(),
        window: (1_000, 1_300),
        is_live: true,
        load: Some(load),
        usual_ns: Some(load.read_ns),
        fast: Some(tier(100.0 * US, 50.0 * US)),
        slow: Some(TierLoad {
            dirty: None,
            ..tier(8.0 * MS, 4.0 * MS)
        }),
        pool_iops: 1000.0,
        placement: Some(PlacementSeen::default()),
        ..Evidence::default()
    }
}

fn drive(spec: &str, tier: Tier, read_ns: f64) -> DriveLoad {
    DriveLoad {
        spec: spec.to_owned(),
        vdrive: 2,
        tier,
        reads: 100.0,
        writes: 0.0,
        read_ns,
        write_ns: 0.0,
        errors: 0.0,
        is_slow: false,
    }
}

#[track_caller]
fn first(why: &Why, cause: WhyCause) -> WhyFinding {
    assert_eq!(why.verdict, WhyVerdict::Slow, "{why:#?}");
    let first = why.findings.first().expect("a finding");
    assert_eq!(first.cause, cause, "{why:#?}");
    assert!(why.headline.contains(&first.title), "{}", why.headline);
    first.clone()
}

fn commands(finding: &WhyFinding) -> String {
    let commands = finding
        .actions
        .iter()
        .filter_map(|action| action.command.as_deref());
    commands.collect::<Vec<_>>().join("\n")
}

fn said(finding: &WhyFinding) -> String {
    finding.evidence.join("\n")
}

#[test]
fn quiet_flash_volume_is_not_slow() {
    let why = answer(&site(load()));
    assert_eq!(why.verdict, WhyVerdict::NotSlow);
    assert_eq!(
        why.headline,
        "tank/vm7 is not slow: 200 µs an I/O, p99 900 µs."
    );
    assert_eq!(why.load.as_ref().map(|load| load.mean_us), Some(200.0));
}

#[test]
fn nothing_recorded_cannot_be_told() {
    let why = answer(&Evidence {
        load: None,
        ..site(load())
    });
    assert_eq!(why.verdict, WhyVerdict::Unknown);
    assert!(
        why.headline.contains("nothing is recorded"),
        "{}",
        why.headline
    );
    assert!(why.findings.is_empty() && why.load.is_none());
}

#[test]
fn few_operations_cannot_be_told() {
    let why = answer(&site(Load {
        reads: 0.05,
        ..missing(1.0)
    }));
    assert_eq!(why.verdict, WhyVerdict::Unknown);
    assert!(
        why.headline.contains("completed 15 reads and writes"),
        "{}",
        why.headline
    );
    assert!(why.findings.is_empty());
}

#[test]
fn policy_limit_is_the_wait_at_the_gate() {
    let mut evidence = site(Load {
        limit_wait: Some(8.0),
        ..load()
    });
    evidence.policy = Some(PolicySeen {
        name: "bronze".to_owned(),
        max_iops: 1000,
        ..PolicySeen::default()
    });
    let why = answer(&evidence);
    let found = first(&why, WhyCause::PolicyLimit);
    // 8 of 8.2 I/Os in flight wait: 8 ms each.
    assert_eq!(
        (found.explained_us, found.share_percent),
        (Some(8000.0), Some(97.6))
    );
    assert!(
        said(&found).contains("1000 IOPS of at most 1000"),
        "{found:?}"
    );
    assert_eq!(
        commands(&found),
        "convect qos policy set tank/bronze --max-iops 2000"
    );
}

#[test]
fn limit_of_a_built_in_policy_cannot_be_raised() {
    let mut evidence = site(Load {
        limit_wait: Some(8.0),
        ..load()
    });
    evidence.policy = Some(PolicySeen {
        name: "non-critical".to_owned(),
        is_built_in: true,
        ..PolicySeen::default()
    });
    let found = first(&answer(&evidence), WhyCause::PolicyLimit);
    assert_eq!(
        commands(&found),
        "convect volume set tank/vm7 --policy none"
    );
}

#[test]
fn volumes_served_first_are_named() {
    let mut evidence = site(Load {
        share_wait: Some(5.0),
        ..load()
    });
    evidence.policy = Some(PolicySeen {
        name: "silver".to_owned(),
        held_for: vec![("backup".to_owned(), 63)],
        ..PolicySeen::default()
    });
    let found = first(&answer(&evidence), WhyCause::OtherVolumes);
    assert!(
        said(&found).contains("served meanwhile: backup (63 %)"),
        "{found:?}"
    );
    assert!(commands(&found).contains("convect qos check tank"));
}

#[test]
fn misses_explain_reads_from_disks() {
    let mut evidence = site(missing(0.4));
    evidence.placement = Some(PlacementSeen {
        working_set: Some(300 << 30),
        hits: Some((0.6, 0.85)),
        ..PlacementSeen::default()
    });
    let why = answer(&evidence);
    let found = first(&why, WhyCause::SlowTierReads);
    // 400 of 1,000 reads take 8 ms.
    assert_eq!(found.explained_us, Some(3200.0));
    let told = said(&found);
    assert!(told.contains("slow 40 %, fast 60 %"), "{told}");
    assert!(
        told.contains("300 GiB, larger than its fast tier of 100 GiB"),
        "{told}"
    );
    assert!(told.contains("85 % hits instead of 60 %"), "{told}");
    assert!(commands(&found).contains("convect pool add tank fast"));
    assert!(commands(&found).contains("convect volume set tank/vm7 --pin fast"));
}

#[test]
fn reason_of_misses_decides_what_to_do() {
    let with = |alter: fn(&mut Evidence)| {
        let mut evidence = site(missing(0.4));
        alter(&mut evidence);
        commands(&first(&answer(&evidence), WhyCause::SlowTierReads))
    };
    assert_eq!(
        with(|evidence| {
            evidence.placement = Some(PlacementSeen {
                is_held: true,
                ..PlacementSeen::default()
            });
        }),
        "convect pool hold-promotion tank off"
    );
    assert_eq!(
        with(|evidence| {
            evidence.placement = Some(PlacementSeen {
                is_off: true,
                ..PlacementSeen::default()
            });
        }),
        "convect volume set tank/vm7 --promotion on"
    );
    assert_eq!(
        with(|evidence| {
            evidence.placement = Some(PlacementSeen {
                ceiling: 1 << 30,
                fast: 1 << 30,
                ..PlacementSeen::default()
            });
        }),
        "convect volume set tank/vm7 --fast-ceiling none"
    );
    assert!(
        with(|evidence| {
            if let Some(fast) = &mut evidence.fast {
                fast.used = Some(GIB);
            }
        })
        .starts_with("convect pool moves tank --watch")
    );
    assert_eq!(
        with(|evidence| evidence.fast = None),
        "convect pool add tank fast mirror DRIVE DRIVE"
    );
}

#[test]
fn queue_of_the_slow_tier_is_told_from_its_drives() {
    // A read of a disk takes 8 ms, but hosts wait 40 ms for it; most I/O is of other volumes.
    let mut evidence = site(Load {
        read_ns: 40.0 * MS,
        ..missing(1.0)
    });
    evidence.usual_ns = Some(8.0 * MS);
    evidence.pool_iops = 10_000.0;
    let why = answer(&evidence);
    let found = first(&why, WhyCause::SlowTierQueue);
    assert_eq!(found.explained_us, Some(32_000.0));
    assert!(
        said(&found).contains("10 % of the pool's 10000 IOPS"),
        "{found:?}"
    );
    assert_eq!(why.findings[1].cause, WhyCause::SlowTierReads);
    assert!(
        why.headline.contains("8.00 ms is usual"),
        "{}",
        why.headline
    );
}

#[test]
fn measured_times_count_more_than_estimates() {
    // Bytes say that all came from flash; the clock says that a tenth waited for disks.
    let mut evidence = site(Load {
        read_ns: 2.0 * MS,
        ..load()
    });
    evidence.sources = Some(Sources {
        ram: (0.0, 0.0),
        fast: (2e9, 20_000.0),
        slow: (18e9, 2000.0),
        read_ns: 20e9,
    });
    let why = answer(&evidence);
    let found = first(&why, WhyCause::SlowTierReads);
    assert_eq!(found.explained_us, Some(1600.0));
    assert!(why.missing.is_empty(), "{:?}", why.missing);
}

#[test]
fn slow_drive_among_its_peers_takes_the_blame() {
    let mut evidence = site(missing(1.0));
    evidence.drives = vec![
        drive("file:/dev/sda", Tier::Slow, 4.0 * MS),
        drive("file:/dev/sdb", Tier::Slow, 80.0 * MS),
        drive("file:/dev/sdc", Tier::Slow, 4.0 * MS),
        drive("file:/dev/nvme0n1", Tier::Fast, 0.1 * MS),
    ];
    let found = first(&answer(&evidence), WhyCause::DriveSlow);
    assert!(found.title.contains("/dev/sdb"), "{found:?}");
    assert!(said(&found).contains("80.0 ms, those of its tier's other drives 4.00 ms"));
    assert!(commands(&found).contains("convect pool replace tank file:/dev/sdb NEW"));
    // 76 of 88 ms.
    assert_eq!(found.share_percent, Some(86.4));
}

#[test]
fn lonely_drive_reported_as_slow_takes_the_blame_once() {
    let mut evidence = site(missing(1.0));
    let sda = DriveLoad {
        is_slow: true,
        ..drive("file:/dev/sda", Tier::Slow, 80.0 * MS)
    };
    evidence.drives = vec![sda];
    evidence.alerts = vec![AlertSeen {
        code: EventCode::DriveSlow,
        subject: "file:/dev/sda".to_owned(),
        message: "slow".to_owned(),
        advice: String::new(),
    }];
    let why = answer(&evidence);
    first(&why, WhyCause::DriveSlow);
    let drives = why
        .findings
        .iter()
        .filter(|found| found.cause == WhyCause::DriveSlow);
    assert_eq!(drives.count(), 1, "{why:#?}");
}

#[test]
fn scrub_takes_the_share_of_the_bandwidth_that_it_uses() {
    let mut evidence = site(missing(1.0));
    // The drives move 80 MB/s, of which the scrub 60.
    evidence.work = vec![Work {
        job: 12,
        kind: "scrub".to_owned(),
        subject: "tank/pool".to_owned(),
        rate: 60e6,
        is_running: true,
    }];
    let found = first(&answer(&evidence), WhyCause::BackgroundWork);
    assert_eq!(found.share_percent, Some(75.0));
    assert!(commands(&found).starts_with("convect job pause 12"));
}

#[test]
fn writes_wait_for_a_fast_tier_full_of_dirty_data() {
    let mut evidence = site(Load {
        reads: 0.0,
        read_from: [0.0; 4],
        read_p99_ns: None,
        writes: 1000.0,
        write_ns: 12.0 * MS,
        write_p99_ns: Some(30.0 * MS),
        ..load()
    });
    evidence.usual_ns = None;
    let queued = answer(&evidence);
    first(&queued, WhyCause::WriteQueue);
    assert!(queued.missing.iter().any(|text| text.contains("usual")));
    if let Some(fast) = &mut evidence.fast {
        fast.dirty = Some(95.0 * GIB);
    }
    let found = first(&answer(&evidence), WhyCause::FastTierFull);
    assert!(
        said(&found).contains("95 % of the fast tier is dirty"),
        "{found:?}"
    );
}

#[test]
fn writes_to_disks_without_a_fast_tier() {
    let mut evidence = site(Load {
        reads: 0.0,
        read_from: [0.0; 4],
        read_p99_ns: None,
        writes: 100.0,
        write_ns: 4.0 * MS,
        write_p99_ns: Some(9.0 * MS),
        ..load()
    });
    evidence.fast = None;
    let found = first(&answer(&evidence), WhyCause::Writes);
    assert_eq!(found.share_percent, Some(100.0));
    assert!(found.title.contains("slow tier"), "{found:?}");
}

#[test]
fn failed_pool_comes_first_and_stops_a_volume_without_operations() {
    let alert = |code, subject: &str| AlertSeen {
        code,
        subject: subject.to_owned(),
        message: format!("{subject} has failed"),
        advice: "replace it".to_owned(),
    };
    let mut evidence = site(missing(0.4));
    evidence.alerts = vec![
        alert(EventCode::LegOut, "file:/dev/sda"),
        alert(EventCode::PoolFailed, "tank"),
    ];
    let why = answer(&evidence);
    first(&why, WhyCause::PoolFailed);
    let causes: Vec<WhyCause> = why.findings.iter().map(|found| found.cause).collect();
    assert_eq!(causes[1], WhyCause::SlowTierReads);
    assert_eq!(causes.last(), Some(&WhyCause::DriveFailing));
    evidence.load = Some(Load {
        reads: 0.0,
        ..load()
    });
    let stopped = answer(&evidence);
    assert_eq!(stopped.verdict, WhyVerdict::Slow);
    assert!(
        stopped.headline.contains("hardly any I/O"),
        "{}",
        stopped.headline
    );
}

#[test]
fn target_decides_what_is_slow() {
    // 3 ms a read are slow, but not below a target of 50 ms.
    let mut evidence = site(missing(0.4));
    evidence.target_ns = Some(50.0 * MS);
    assert_eq!(answer(&evidence).verdict, WhyVerdict::NotSlow);
    evidence.target_ns = Some(20.0 * MS);
    let why = answer(&evidence);
    assert_eq!(why.verdict, WhyVerdict::Slow);
    assert!(
        why.headline.contains("its target is 20.0 ms"),
        "{}",
        why.headline
    );
    // And 0.2 ms are not, unless its target is lower.
    let mut fast = site(load());
    fast.target_ns = Some(500.0 * US);
    assert_eq!(answer(&fast).verdict, WhyVerdict::Slow);
}

#[test]
fn twice_the_usual_latency_is_slow() {
    let mut evidence = site(Load {
        read_ns: 400.0 * US,
        ..load()
    });
    evidence.usual_ns = Some(150.0 * US);
    let why = answer(&evidence);
    first(&why, WhyCause::FastTierReads);
    assert!(why.headline.contains("150 µs is usual"), "{}", why.headline);
}

#[test]
fn past_says_what_was_not_recorded() {
    let mut evidence = site(Load {
        limit_wait: None,
        share_wait: None,
        ..missing(0.4)
    });
    evidence.is_live = false;
    evidence.placement = None;
    let why = answer(&evidence);
    first(&why, WhyCause::SlowTierReads);
    assert!(
        why.headline.starts_with("tank/vm7 was slow"),
        "{}",
        why.headline
    );
    for words in ["known for now only", "waits for policies", "estimated"] {
        assert!(
            why.missing.iter().any(|text| text.contains(words)),
            "{words}"
        );
    }
}

#[test]
fn small_causes_are_left_out_and_shares_sum_to_at_most_100() {
    let mut evidence = site(Load {
        writes: 10.0,
        write_ns: 60.0 * US,
        limit_wait: Some(0.5),
        ..missing(0.5)
    });
    evidence.sources = None;
    let why = answer(&evidence);
    let shares: Vec<f64> = why
        .findings
        .iter()
        .filter_map(|found| found.share_percent)
        .collect();
    assert!(shares.iter().all(|share| *share >= 5.0), "{shares:?}");
    assert!(shares.is_sorted_by(|one, next| one >= next), "{shares:?}");
    let sum: f64 = shares.iter().sum();
    assert!((90.0..=100.1).contains(&sum), "{shares:?}");
}

#[test]
fn no_figure_is_ever_not_a_number() {
    for load in [Load::default(), load()] {
        let mut evidence = site(Load {
            seconds: 100_000.0,
            ..load
        });
        evidence.drives = vec![drive("a", Tier::Slow, 0.0)];
        evidence.fast = None;
        evidence.slow = None;
        let text = format!("{:?}", answer(&evidence));
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
