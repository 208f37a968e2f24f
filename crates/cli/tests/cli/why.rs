//! `convect why`.

use crate::scripted::Scripted;

const TOLD: &str = r#"{"volume":"tank/vm7","from_s":1764601200,"to_s":1764601800,"live":false,
    "verdict":"slow","headline":"tank/vm7 was slow: 3.26 ms an I/O, p99 30.0 ms (1.10 ms is usual). 98 % of it: reads that miss RAM and the fast tier.",
    "load":{"iops":1000.0,"bandwidth":4096000.0,"mean_us":3260.0,"read_p99_us":30000.0,"usual_us":1100.0},
    "findings":[
      {"cause":"slow_tier_reads","title":"reads that miss RAM and the fast tier","share_percent":98.2,
        "explained_us":3200.0,"evidence":["reads by tier: slow 40 %, fast 60 %, RAM 0 %, never written 0 %"],
        "actions":[{"text":"enlarge the fast tier","command":"convect pool add tank fast mirror DRIVE DRIVE"}]},
      {"cause":"drive_failing","title":"the failing drive or mirror file:/dev/sda","evidence":
        ["since the pool was opened 12 requests to drive file:/dev/sda of pool tank have failed and 3 timed out"],
        "actions":[{"text":"check the cables"}]}],
    "missing":["read time by tier is estimated from bytes by tier and the latency of the drives"]}"#;

#[test]
fn answer_comes_first_and_fits_80_columns() {
    let daemon = Scripted::new().on("GET /v1/volumes/tank/vm7/why", 200, TOLD);
    let told = daemon.convect("why tank/vm7");
    assert_eq!(told.code, 0, "{told:?}");
    let text = &told.out;
    assert!(
        text.starts_with("tank/vm7 was slow: 3.26 ms an I/O"),
        "{text}"
    );
    for line in [
        "Time:  2025-12-01 15:00 UTC to 2025-12-01 15:10 UTC",
        "Load:  1000 IOPS, 3.9 MiB/s; mean 3.26 ms, usually 1.10 ms, read p99 30.00 ms",
        "1. reads that miss RAM and the fast tier: 98 %, 3.20 ms an I/O",
        "   - reads by tier: slow 40 %, fast 60 %, RAM 0 %, never written 0 %",
        "   > enlarge the fast tier",
        "       convect pool add tank fast mirror DRIVE DRIVE",
        "2. the failing drive or mirror file:/dev/sda",
        "   > check the cables",
        "Not examined",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let json = daemon.convect("--json why tank/vm7").out;
    let same: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        same,
        serde_json::from_str::<serde_json::Value>(TOLD).unwrap()
    );
}

#[test]
fn time_is_sent_in_seconds() {
    let request = "GET /v1/volumes/tank/vm7/why?from=1764600900&to=1764601500";
    let daemon = Scripted::new().on(request, 200, TOLD);
    let told = daemon.convect("why tank/vm7 --at 1764601200");
    assert_eq!(told.code, 0, "{told:?}");
    let request = "GET /v1/volumes/tank/vm7/why?from=1764597600&to=1764601200";
    let daemon = Scripted::new().on(request, 200, TOLD);
    let told = daemon.convect("why tank/vm7 --at 2025-12-01T15:00 --since 1h");
    assert_eq!(told.code, 0, "{told:?}");
    Scripted::new().is_never_asked(&[
        "why tank/vm7 --at noon",
        "why tank/vm7 --since long",
        "why vm7",
    ]);
}
