//! Values computed from a status.

use super::*;
use crate::metrics::Format;

/// All values of a page, by name and labels.
fn values(page: &Page) -> BTreeMap<String, String> {
    let text = page.text(Format::Prometheus);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parts = lines.map(|line| line.rsplit_once(' ').expect("a value"));
    parts
        .map(|(series, value)| (series.to_owned(), value.to_owned()))
        .collect()
}

#[track_caller]
fn told(values: &BTreeMap<String, String>, all: &[(&str, &str)]) {
    for (series, value) in all {
        let known = values.get(*series).map(String::as_str);
        assert_eq!(known, Some(*value), "{series}");
    }
    assert_eq!(values.len(), all.len(), "{values:?}");
}

fn counters() -> v1::Counters {
    v1::Counters {
        reads: 1,
        writes: 2,
        read_bytes: 3,
        write_bytes: 4,
        flushes: 5,
        blocks_ram: 6,
        blocks_fast: 7,
        blocks_slow: 8,
        blocks_zero: 9,
        bypassed_reads: 10,
        bypassed_writes: 11,
        bypassed_blocks: 12,
        promoted_bytes: 13,
        demoted_bytes: 14,
        read_ns: 1_500_000_000,
        write_ns: 2_000_000_001,
    }
}

#[test]
fn pool_and_volume_counters_have_names_and_base_units() {
    let mut page = Page::default();
    pool_counters(&mut page, "p", &counters());
    let pool = [
        ("convect_pool_reads_total{pool=\"p\"}", "1"),
        ("convect_pool_writes_total{pool=\"p\"}", "2"),
        ("convect_pool_read_bytes_total{pool=\"p\"}", "3"),
        ("convect_pool_written_bytes_total{pool=\"p\"}", "4"),
        ("convect_pool_flushes_total{pool=\"p\"}", "5"),
        (
            "convect_pool_served_bytes_total{pool=\"p\",tier=\"ram\"}",
            "24576",
        ),
        (
            "convect_pool_served_bytes_total{pool=\"p\",tier=\"fast\"}",
            "28672",
        ),
        (
            "convect_pool_served_bytes_total{pool=\"p\",tier=\"slow\"}",
            "32768",
        ),
        (
            "convect_pool_served_bytes_total{pool=\"p\",tier=\"none\"}",
            "36864",
        ),
        ("convect_pool_bypassed_reads_total{pool=\"p\"}", "10"),
        ("convect_pool_bypassed_writes_total{pool=\"p\"}", "11"),
        ("convect_pool_bypassed_bytes_total{pool=\"p\"}", "49152"),
        ("convect_pool_promoted_bytes_total{pool=\"p\"}", "13"),
        ("convect_pool_demoted_bytes_total{pool=\"p\"}", "14"),
        ("convect_pool_read_seconds_total{pool=\"p\"}", "1.5"),
        (
            "convect_pool_write_seconds_total{pool=\"p\"}",
            "2.000000001",
        ),
    ];
    told(&values(&page), &pool);
    let mut page = Page::default();
    volume_counters(&mut page, &["p", "v"], &counters());
    let volume: Vec<_> = pool
        .iter()
        .filter(|(series, _)| {
            !["bypassed", "moted"]
                .iter()
                .any(|word| series.contains(word))
        })
        .map(|(series, value)| {
            let series = series.replace("convect_pool_", "convect_volume_");
            (
                series.replace("pool=\"p\"", "pool=\"p\",volume=\"v\""),
                *value,
            )
        })
        .collect();
    let volume: Vec<_> = volume
        .iter()
        .map(|(series, value)| (series.as_str(), *value))
        .collect();
    told(&values(&page), &volume);
}

#[test]
fn jobs_are_counted_by_kind() {
    let job = |kind: &str, state, done| v1::Job {
        id: 1,
        kind: kind.to_owned(),
        subject: String::new(),
        state,
        done,
        total: 10,
        percent: 0.0,
        rate: 0,
        seconds_left: None,
        message: String::new(),
        began_s: 0,
        ended_s: None,
    };
    let mut page = Page::default();
    let all = [
        job("scrub", v1::JobState::Running, 3),
        job("scrub", v1::JobState::Running, 12),
        job("scrub", v1::JobState::Failed, 1),
        job("delete", v1::JobState::Done, 10),
    ];
    jobs(&mut page, &all);
    told(
        &values(&page),
        &[
            ("convect_jobs{kind=\"scrub\",state=\"running\"}", "2"),
            ("convect_jobs{kind=\"scrub\",state=\"failed\"}", "1"),
            ("convect_jobs{kind=\"delete\",state=\"done\"}", "1"),
            ("convect_jobs_left_bytes{kind=\"scrub\"}", "7"),
        ],
    );
}

#[test]
fn drive_metrics_have_their_own_families() {
    let known = v1::Drive {
        id: "x".to_owned(),
        spec: "file:/a".to_owned(),
        size: 1,
        state: "online".to_owned(),
        reads: 2,
        writes: 3,
        read_bytes: 4,
        write_bytes: 5,
        errors: 6,
        repaired: 7,
        timeouts: 8,
        slow: true,
        why: String::new(),
        synced_percent: None,
        health: None,
        wear: v1::Wear {
            hosts: 9,
            promotion: 10,
            upkeep: 11,
            metadata: 12,
            ..v1::Wear::default()
        },
    };
    let mut page = Page::default();
    drive(&mut page, ["p", "fast", "2", "file:/a"], &known);
    let of = "pool=\"p\",tier=\"fast\",vdrive=\"2\",drive=\"file:/a\"";
    let values = values(&page);
    for (family, value) in [
        ("size_bytes", "1"),
        ("reads_total", "2"),
        ("writes_total", "3"),
        ("read_bytes_total", "4"),
        ("written_bytes_total", "5"),
        ("errors_total", "6"),
        ("repaired_blocks_total", "7"),
        ("timeouts_total", "8"),
        ("slow", "1"),
    ] {
        let series = format!("convect_drive_{family}{{{of}}}");
        assert_eq!(
            values.get(&series).map(String::as_str),
            Some(value),
            "{series}"
        );
    }
    for (purpose, value) in [
        ("hosts", "9"),
        ("promotion", "10"),
        ("upkeep", "11"),
        ("metadata", "12"),
    ] {
        let ends = format!("{{{of},purpose=\"{purpose}\"}}");
        let mut found = values.iter().filter(|(series, _)| series.ends_with(&ends));
        assert!(found.any(|(_, told)| told == value), "{purpose}");
    }
}

#[test]
fn unknown_states_are_exported_and_drives_at_one_path_are_distinguished() {
    let drive = |id: &str| v1::Drive {
        id: id.to_owned(),
        spec: "file:/a".to_owned(),
        size: 1,
        state: "missing".to_owned(),
        reads: 0,
        writes: 0,
        read_bytes: 0,
        write_bytes: 0,
        errors: 0,
        repaired: 0,
        timeouts: 0,
        slow: false,
        why: String::new(),
        synced_percent: Some(25),
        health: None,
        wear: v1::Wear::default(),
    };
    let vdrive = v1::Vdrive {
        id: 2,
        tier: v1::Tier::Fast,
        layout: v1::Layout::Mirror,
        state: "dreaming".to_owned(),
        capacity: 1,
        used: 1,
        protection: None,
        drives: vec![drive("x"), drive("y")],
    };
    let mut page = Page::default();
    let mut times = BTreeMap::new();
    let mut spread = engine::IoSpread::default();
    spread.writes.times[1] = 7;
    let ns = [0, 500_000_000];
    times.insert("y".to_owned(), Times { ns, spread });
    vdrives(&mut page, "p", &[vdrive], &times);
    let values = values(&page);
    let of = "pool=\"p\",tier=\"fast\",vdrive=\"2\"";
    for (series, value) in [
        (
            format!("convect_vdrive_state{{{of},state=\"dreaming\"}}"),
            "1",
        ),
        (
            format!("convect_vdrive_state{{{of},state=\"online\"}}"),
            "0",
        ),
        (
            format!("convect_drive_synced_ratio{{{of},drive=\"file:/a\"}}"),
            "0.25",
        ),
        (
            format!("convect_drive_synced_ratio{{{of},drive=\"file:/a y\"}}"),
            "0.25",
        ),
        (
            format!("convect_drive_write_latency_seconds_count{{{of},drive=\"file:/a y\"}}"),
            "7",
        ),
        (
            format!("convect_drive_write_latency_seconds_sum{{{of},drive=\"file:/a y\"}}"),
            "0.5",
        ),
        (
            format!("convect_drive_read_latency_seconds_count{{{of},drive=\"file:/a y\"}}"),
            "0",
        ),
    ] {
        assert_eq!(
            values.get(&series).map(String::as_str),
            Some(value),
            "{series}"
        );
    }
}

#[test]
fn export_counters_come_from_its_volume_handle() {
    let export = |name: &str| v1::Export {
        pool: "p".to_owned(),
        volume: "v".to_owned(),
        name: name.to_owned(),
        kind: "nbd".to_owned(),
        state: "online".to_owned(),
        sessions: 2,
        parameters: BTreeMap::new(),
        initiator: None,
        address: None,
        hints: Vec::new(),
        error: None,
    };
    let mut look = engine::ExportLook::default();
    look.counters.reads = 3;
    look.counters.write_bytes = 8192;
    look.counters.read_ns = 250_000_000;
    look.spread.reads.times[0] = 3;
    let looks = BTreeMap::from([(("p", "door"), &look), (("q", "gate"), &look)]);
    let mut page = Page::default();
    exports(&mut page, &[export("door"), export("gate")], &looks);
    let values = values(&page);
    let of = |name: &str| format!("pool=\"p\",volume=\"v\",export=\"{name}\",kind=\"nbd\"");
    for (family, value) in [
        ("sessions", "2"),
        ("reads_total", "3"),
        ("written_bytes_total", "8192"),
        ("read_latency_seconds_count", "3"),
        ("read_latency_seconds_sum", "0.25"),
        ("write_latency_seconds_count", "0"),
    ] {
        let series = format!("convect_export_{family}{{{}}}", of("door"));
        assert_eq!(
            values.get(&series).map(String::as_str),
            Some(value),
            "{series}"
        );
    }
    let gate: Vec<_> = values
        .keys()
        .filter(|series| series.contains("gate"))
        .collect();
    assert_eq!(gate.len(), 3, "only up, disabled and sessions: {gate:?}");
}

#[test]
fn histograms_are_in_seconds_and_bytes() {
    let mut spread = engine::IoSpread::default();
    spread.reads.times[0] = 3;
    spread.reads.times[2] = 1;
    spread.writes.sizes[3] = 5;
    let mut page = Page::default();
    let volume = &["p", "v"];
    let families = [the::VOLUME_READ_SPREAD, the::VOLUME_WRITE_SPREAD];
    latencies(&mut page, volume, families, [1_500_000_000, 0], &spread);
    let families = [the::VOLUME_READ_SIZES, the::VOLUME_WRITE_SIZES];
    sizes(&mut page, volume, families, [0, 0], &spread);
    let of = "pool=\"p\",volume=\"v\"";
    let text = page.text(crate::Format::OpenMetrics);
    for line in [
        format!("convect_volume_read_latency_seconds_bucket{{{of},le=\"4.096e-6\"}} 3\n"),
        format!("convect_volume_read_latency_seconds_bucket{{{of},le=\"1.6384e-5\"}} 4\n"),
        format!("convect_volume_read_latency_seconds_bucket{{{of},le=\"8.589934592\"}} 4\n"),
        format!("convect_volume_read_latency_seconds_bucket{{{of},le=\"+Inf\"}} 4\n"),
        format!("convect_volume_read_latency_seconds_sum{{{of}}} 1.5\n"),
        format!("convect_volume_write_size_bytes_bucket{{{of},le=\"2048.0\"}} 0\n"),
        format!("convect_volume_write_size_bytes_bucket{{{of},le=\"4096.0\"}} 5\n"),
        format!("convect_volume_write_size_bytes_count{{{of}}} 5\n"),
        "# UNIT convect_volume_read_latency_seconds seconds\n".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}{text}");
    }
}
