//! `convect explain` and `convect pool moves`.

use crate::scripted::Scripted;

/// A block with a clean copy on the fast tier, promoted at 2023-11-14 22:13:20 UTC; the time of its
/// write-back is unknown.
const TOLD: &str = r#"{"lba":2056,"offset":1052672,"extent":1048576,"inherited":true,
    "snapshot":"vm1@sunday","places":[
      {"tier":"fast","kind":"copy","vdrive":1,"drives":[{"drive":"ram:a","byte":8192}],
        "came":{"at_s":1700000000,"from":"ram","to":"fast","dropped":false,"reason":"worth",
          "about":"it left RAM and was worth a place","blocks":[1,2,3,7],"worth":0.5,
          "wanted":0.25,"displaced":{"volume":"vm2","offset":65536}},"log_since_s":1},
      {"tier":"slow","kind":"home","vdrive":2,"drives":[{"drive":"ram:b","byte":4096},
        {"drive":"ram:c","byte":4096}],"log_since_s":1699999990}],
    "heat":{"uses":3,"idle_bytes":2097152,"worth":0.3,"bar":0.1,"wanted":0.6},
    "moves":[
      {"at_s":1700000000,"from":"ram","to":"fast","dropped":false,"reason":"worth",
        "about":"it left RAM and was worth a place","blocks":[1,2,3,7],"worth":0.5,"wanted":0.25},
      {"at_s":1699999999,"from":"fast","to":"slow","dropped":true,"reason":"cooled",
        "about":"the pool's fast tier was flushed and dropped","blocks":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]}],
    "log_since_s":2,"log_is_whole":false}"#;

const VOLUME: &str = r#"{"id":1,"name":"vm1","pool":"tank","size":8388608,"lba_size":512,
    "thick":false,"mapped":0,"serial":"s","state":"online","exports":[]}"#;

fn has(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn explain_describes_location_and_moves() {
    let daemon = Scripted::new().on("GET /v1/volumes/tank/vm1/explain?lba=2056", 200, TOLD);
    let told = daemon.convect("explain tank/vm1 2056");
    assert_eq!(told.code, 0, "{told:?}");
    has(
        &told.out,
        &[
            "257 of tank/vm1, bytes 1052672 to 1056767\n",
            "16, bytes 1048576 to 1114111\n",
            "shared with snapshot vm1@sunday\n",
            "3 accesses, last 2 MiB of other I/O ago; value 3.00× that of recent evictions, \
             0.50× the promotion threshold\n",
            "Location: fast tier (clean copy)\n    vdrive 1: ram:a at byte 8192\n",
            "since 2023-11-14 22:13:20 UTC: it left RAM and was worth a place (value 2.00× \
             the promotion threshold)\n",
            "the extent at 64 KiB of vm2\n",
            "slow tier (home location)\n    vdrive 2: ram:b at byte 4096\n    vdrive 2: ram:c",
            "since before 2023-11-14 22:13:10 UTC, the oldest log entry\n",
        ],
    );
    let rows: Vec<&str> = told.out.lines().rev().take(2).collect();
    has(rows[1], &["2023-11-14 22:13:20 UTC", "1-3,7"]);
    has(
        rows[0],
        &[
            "slow (copy dropped)",
            "all",
            "the pool's fast tier was flushed and dropped",
        ],
    );
    let json = daemon.convect("--json explain tank/vm1 2056").out;
    let same: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        same,
        serde_json::from_str::<serde_json::Value>(TOLD).unwrap()
    );
}

#[test]
fn explain_of_a_hole_shows_zeroes() {
    let zeroes = r#"{"lba":0,"offset":0,"extent":0,"inherited":false,"places":[],"moves":[
        {"at_s":1700000000,"from":"any","to":"nowhere","dropped":false,"reason":"discarded",
          "about":"a host discarded it","blocks":[0]}],
        "log_since_s":0,"log_is_whole":true}"#;
    let daemon = Scripted::new().on("GET /v1/volumes/tank/vm1/explain?lba=0", 200, zeroes);
    let told = daemon.convect("explain tank/vm1 0").out;
    has(
        &told,
        &[
            "Location: none: zeroes: a host discarded it at 2023-11-14 22:13:20 UTC\n",
            "not accessed since the pool was opened\n",
        ],
    );
}

#[test]
fn position_is_a_block_number_or_a_byte_offset() {
    let daemon = Scripted::new()
        .on("GET /v1/volumes/tank/vm1", 200, VOLUME)
        .on("GET /v1/volumes/tank/vm1/explain?lba=2056", 200, TOLD);
    let told = daemon.convect("explain tank/vm1 1028K");
    assert_eq!(told.code, 0, "{told:?}");
    let daemon = Scripted::new();
    daemon.is_never_asked(&[
        "explain tank/vm1",
        "explain vm1 0",
        "explain tank/vm1 here",
        "explain tank/vm1 1.5",
    ]);
}

#[test]
fn block_beyond_the_volume_is_an_error() {
    let beyond = "volume vm1 has logical blocks 0 to 9 of 512 bytes, not 99";
    let problem = format!(r#"{{"code":"invalid","message":"{beyond}"}}"#);
    let daemon = Scripted::new().on("GET /v1/volumes/tank/vm1/explain?lba=99", 422, &problem);
    let said = daemon.convect("explain tank/vm1 99");
    assert_eq!((said.code, said.error), (1, format!("error: {beyond}\n")));
}

#[test]
fn moves_are_counted_by_reason_without_zero_rows() {
    let counts = r#"{"items":[
        {"from":"host","to":"fast","dropped":false,"reason":"written","about":"a host wrote it",
          "moves":7,"bytes":65536},
        {"from":"ram","to":"fast","dropped":false,"reason":"room","about":"there was room",
          "moves":0,"bytes":0}]}"#;
    let daemon = Scripted::new().on("GET /v1/pools/tank/moves", 200, counts);
    let said = daemon.convect("pool moves tank").out;
    has(&said, &["MOVES", "7", "64 KiB", "a host wrote it"]);
    assert!(!said.contains("there was room"), "{said}");
}
