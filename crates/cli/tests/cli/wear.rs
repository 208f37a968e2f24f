//! Wear tables: bytes written to drives, and the write budget of promotion.

use crate::scripted::Scripted;

/// A pool with a drive of 1,000 bytes of which much was written, and a budget that is used up.
const POOL: &str = r#"{"id":"1","name":"tank","state":"online","messages":[],"policy":"slow_first",
    "shards":1,"capacity":1000,"used":0,"reserved":0,"fast_capacity":0,"fast_dirty":0,"fast_shadow":0,
    "vdrives":[{"id":1,"tier":"fast","layout":{"kind":"concat"},"state":"online","capacity":1000,
        "used":0,"drives":[{"id":"2","spec":"file:/dev/sda","size":1000,"state":"online","reads":0,
        "writes":0,"read_bytes":0,"write_bytes":0,"errors":0,"repaired":0,
        "wear":{"since_s":5,"total":15360,"hosts":1024,"promotion":2048,"upkeep":4096,"metadata":8192,
            "daily":345}}]}],
    "volumes":1,"promotion_held":false,"map_bytes":0,"ram_bytes":0,
    "promotion_budget":{"daily":1048576,"today":4096,"left":0}}"#;

#[test]
fn pool_shows_the_wear_of_its_drives() {
    let daemon = Scripted::new().on("GET /v1/pools/tank", 200, POOL);
    let shown = daemon.convect("pool show tank").out;
    let line = shown.lines().find(|line| line.starts_with("file:/dev/sda"));
    let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
    let expected = [
        "file:/dev/sda",
        "15",
        "KiB",
        "1",
        "KiB",
        "2",
        "KiB",
        "4",
        "KiB",
        "8",
        "KiB",
        "0.345",
        "-",
    ];
    assert_eq!(words, expected, "{shown}");
    let budget =
        "1 MiB per day (4 KiB written in the last 24 h, 0 B available now; promotion paused)\n";
    assert!(shown.contains(budget), "{shown}");
}

#[test]
fn budget_is_a_size_or_none() {
    let daemon = Scripted::new().on("PUT /v1/pools/tank", 200, POOL);
    daemon.is_never_asked(&[
        "pool set tank",
        "pool set tank --promotion-budget",
        "pool set tank --promotion-budget much",
        "pool set tank --promotion-budget 0",
        "pool set tank --promotion-budget -5G",
    ]);
    for (words, asked) in [
        ("500G", r#"{"promotion_budget":536870912000}"#),
        ("none", r#"{"promotion_budget":0}"#),
    ] {
        let said = daemon.convect(&format!("pool set tank --promotion-budget {words}"));
        assert_eq!(said.code, 0, "{said:?}");
        assert_eq!(daemon.asked().last().unwrap().1, asked);
    }
    let wrong = daemon.convect("pool set tank --promotion-budget 0").error;
    let sentence = "'0' is not a limit: write a size, or none to remove the limit";
    assert!(wrong.contains(sentence), "{wrong}");
}
