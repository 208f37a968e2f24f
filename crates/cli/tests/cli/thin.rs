//! Fill levels, overcommit, quotas and promotion of clones.

use crate::scripted::Scripted;

/// A nearly full, overcommitted pool.
const POOL: &str = r#"{"id":"1","name":"tank","state":"online",
    "messages":["its space is 91.0 % full"],"policy":"slow_first","shards":1,"capacity":1000,
    "used":910,"reserved":0,"promised":2500,"promised_percent":250,"warn_at":[80,90],
    "fills":[
      {"part":"space","used":910,"capacity":1000,"percent":91,"level":90,"trend":"filling",
        "seconds_to_full":10800,"trend_s":600},
      {"part":"metadata","used":10,"capacity":100,"percent":10,"level":null,"trend":"steady",
        "seconds_to_full":null,"trend_s":null},
      {"part":"slow","used":10,"capacity":100,"percent":10,"level":null,"trend":"unknown",
        "seconds_to_full":null,"trend_s":null}],
    "fast_capacity":0,"fast_dirty":0,"fast_shadow":0,"vdrives":[],"volumes":1,
    "promotion_held":false,"map_bytes":0,"ram_bytes":0}"#;

#[test]
fn pool_shows_fill_levels_and_forecast() {
    let list = format!(r#"{{"items":[{POOL}],"absent":[]}}"#);
    let daemon =
        Scripted::new()
            .on("GET /v1/pools", 200, &list)
            .on("GET /v1/pools/tank", 200, POOL);
    let listed = daemon.convect("pool list").out;
    for words in ["91.0 %", " 3 h ", "2.50×", "note: pool tank: its space is"] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    let shown = daemon.convect("pool status tank").out;
    for words in [
        "full in about 3 h at the rate of the last 10 min\n",
        "2.4 KiB (2.50× overcommit)\n",
        "10 B of 100 B (10.0 %), not growing\n",
        "10 B of 100 B (10.0 %), no trend yet\n",
        "at 80, 90 %\n",
        "note: its space is 91.0 % full\n",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("dirty:"), "{shown}");
    assert_eq!(daemon.convect("pool show tank").out, shown);
}

#[test]
fn warning_levels_are_numbers_or_off() {
    let daemon = Scripted::new().on("PUT /v1/pools/tank/warnings", 200, POOL);
    daemon.is_never_asked(&[
        "pool warn tank",
        "pool warn tank --at many",
        "pool warn tank --at 300",
        "pool warn tank --at 80 --off",
    ]);
    for (words, asked) in [
        ("--at 80,90", r#"{"at":[80,90]}"#),
        ("--off", r#"{"at":[]}"#),
    ] {
        let said = daemon.convect(&format!("pool warn tank {words}"));
        assert_eq!(said.code, 0, "{said:?}");
        assert_eq!(daemon.asked().last().unwrap().1, asked);
    }
}

/// A volume with a quota of 3 MiB and a reservation of 2 MiB, which with its snapshots uses 1.5
/// MiB.
const VOLUME: &str = r#"{"id":1,"name":"v","pool":"tank","size":8388608,"lba_size":512,
    "thick":false,"mapped":1048576,"held":1572864,"quota":3145728,"reservation":2097152,
    "reserved":524288,"serial":"s","state":"online",
    "exports":[]}"#;

#[test]
fn quota_is_a_size_or_none() {
    let daemon = Scripted::new()
        .on("PUT /v1/volumes/tank/v", 200, VOLUME)
        .on("POST /v1/volumes", 201, VOLUME);
    daemon.is_never_asked(&[
        "volume set tank/v",
        "volume set tank/v --quota much",
        "volume set tank/v --quota 0",
        "volume set v --quota none",
        "volume create tank/v --size 8M --quota 99999999T",
    ]);
    let set = daemon.convect("volume set tank/v --quota 3M").out;
    for words in ["1.5 MiB with its snapshots\n", "3 MiB (50.0 % used)\n"] {
        assert!(set.contains(words), "{words}: {set}");
    }
    assert!(!set.contains("note:"), "{set}");
    assert_eq!(daemon.asked().last().unwrap().1, r#"{"quota":3145728}"#);
    let set = daemon.convect("volume set tank/v --quota 3145727").out;
    let note = "note: quota rounded up to a multiple of 4 KiB: 3145728 bytes\n";
    assert!(set.ends_with(note), "{set}");
    let json = daemon
        .convect("--json volume set tank/v --quota 3145727")
        .out;
    assert!(!json.contains("note"), "{json}");
    daemon.convect("volume set tank/v --quota none");
    assert_eq!(daemon.asked().last().unwrap().1, r#"{"quota":0}"#);
    daemon.convect("volume create tank/v --size 8M --quota 3M");
    let asked = daemon.asked().last().unwrap().1.clone();
    assert!(asked.contains(r#""quota":3145728"#), "{asked}");
}

#[test]
fn reservation_is_a_size_or_none() {
    let daemon = Scripted::new()
        .on("PUT /v1/volumes/tank/v", 200, VOLUME)
        .on("POST /v1/volumes", 201, VOLUME);
    daemon.is_never_asked(&[
        "volume set tank/v --reservation much",
        "volume set tank/v --quota 1M --reservation 0",
        "volume create tank/v --size 8M --reservation 99999999T",
    ]);
    let set = daemon
        .convect("volume set tank/v --reservation 2097151")
        .out;
    for words in [
        "2 MiB (512 KiB unused)\n",
        "note: reservation rounded up to a multiple of 4 KiB: 2097152 bytes\n",
    ] {
        assert!(set.contains(words), "{words}: {set}");
    }
    let asked = || daemon.asked().last().unwrap().1.clone();
    assert_eq!(asked(), r#"{"reservation":2097151}"#);
    daemon.convect("volume set tank/v --reservation none --quota 3M");
    assert_eq!(asked(), r#"{"quota":3145728,"reservation":0}"#);
    daemon.convect("volume create tank/v --size 8M --reservation 2M");
    assert!(asked().contains(r#""reservation":2097152"#), "{}", asked());
}

/// A volume with every placement setting.
const PLACED: &str = r#"{"id":1,"name":"v","pool":"tank","size":8388608,"lba_size":512,
    "thick":false,"mapped":1048576,"held":1048576,"fast":65536,"serial":"s","state":"online","exports":[],
    "placement":{"promotion":false,"pins":[{"offset":0,"length":65536,"tier":"fast"},
        {"offset":65536,"tier":"slow"}],"fast_floor":65536,"fast_ceiling":131072,"reaction":"thrifty",
        "write_budget":{"daily":1048576,"used":4096,"left":0},
        "bypass":{"initiators":["backup","veeam"],"reads":12,"writes":3,"blocks":400}}}"#;

#[test]
fn placement_options_are_parsed_and_shown() {
    let daemon = Scripted::new().on("PUT /v1/volumes/tank/v", 200, PLACED);
    daemon.is_never_asked(&[
        "volume set tank/v --pin tape",
        "volume set tank/v --pin fast:0",
        "volume set tank/v --pin fast:0:0",
        "volume set tank/v --pin fast:much:1M",
        "volume set tank/v --promotion perhaps",
        "volume set tank/v --reaction quick",
        "volume set tank/v --fast-floor 0",
        "volume set tank/v --bypass backup,none",
        "volume set tank/v --bypass backup,,veeam",
    ]);
    let said = daemon.convect("volume set tank/v --bypass a,");
    let expected = "'a,' is not a list of initiators: a name is empty; write comma-separated names";
    assert!(said.error.contains(expected), "{said:?}");
    let asked = |words: &str| {
        let said = daemon.convect(&format!("volume set tank/v {words}"));
        assert_eq!(said.code, 0, "{said:?}");
        daemon.asked().last().unwrap().1.clone()
    };
    for (words, expected) in [
        ("--promotion off", r#"{"promotion":false}"#),
        ("--pin fast", r#"{"pins":[{"offset":0,"to":"fast"}]}"#),
        (
            "--pin slow --pin none:1M:64K",
            r#"{"pins":[{"offset":0,"to":"slow"},{"offset":1048576,"length":65536,"to":"none"}]}"#,
        ),
        (
            "--fast-floor 1M --fast-ceiling none",
            r#"{"fast_floor":1048576,"fast_ceiling":0}"#,
        ),
        ("--reaction eager", r#"{"reaction":"eager"}"#),
        (
            "--bypass backup,iqn.2026-01.com.example:veeam",
            r#"{"bypass":["backup","iqn.2026-01.com.example:veeam"]}"#,
        ),
        ("--bypass none", r#"{"bypass":[]}"#),
        (
            "--write-budget 1G --quota none",
            r#"{"quota":0,"write_budget":1073741824}"#,
        ),
    ] {
        assert_eq!(asked(words), expected);
    }
    let shown = daemon.convect("volume set tank/v --promotion off").out;
    for words in [
        "fast: 64 KiB at 0 B, slow: from 64 KiB\n",
        "1 MiB per day (4 KiB written so far, 0 B available now)\n",
        "thrifty\n",
        "backup, veeam (12 reads and 3 writes so far, of 400 blocks)\n",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn promoted_clone_lists_its_snapshots() {
    let daemon = Scripted::new().on(
        "POST /v1/volumes/tank/copy/promote",
        200,
        r#"{"parent":"vm1","snapshots":["sunday","monday"]}"#,
    );
    let said = daemon.convect("volume promote tank/copy");
    let expected = "volume tank/copy promoted: it now has the snapshots sunday, monday of \
                    tank/vm1\n";
    assert_eq!((said.code, said.out.as_str()), (0, expected), "{said:?}");
    assert_eq!(daemon.convect("volume promote copy").code, 2);
}

/// The pool with a protection and vdrives.
fn with_protection(survives: u32, by_design: u32) -> String {
    let protection =
        format!(r#""protection":{{"survives_failures":{survives},"by_design":{by_design}}}"#);
    let vdrive = format!(
        r#""vdrives":[{{"id":2,"tier":"slow","layout":{{"kind":"concat"}},"state":"online",
            "capacity":9,"used":0,{protection},"drives":[]}}]"#
    );
    let pool = POOL.replace(r#""vdrives":[]"#, &vdrive);
    pool.replacen('{', &format!("{{{protection},"), 1)
}

#[test]
fn pool_without_redundancy_is_never_only_online() {
    let bare = with_protection(0, 0);
    let list = format!(r#"{{"items":[{bare}],"absent":[]}}"#);
    let daemon = Scripted::new()
        .on("POST /v1/pools", 201, &bare)
        .on("GET /v1/pools", 200, &list)
        .on("GET /v1/pools/tank", 200, &bare);
    let shown = daemon.convect("pool status tank").out;
    assert!(shown.contains("online, no redundancy\n"), "{shown}");
    assert!(
        shown.contains("the failure of a drive loses data\n"),
        "{shown}"
    );
    let warning = "vdrive 2 of pool tank has no redundancy";
    let listed = daemon.convect("pool list").out;
    assert!(listed.contains(&format!("note: {warning}")), "{listed}");
    let made = daemon.convect("pool create tank slow /dev/sda");
    assert!(
        made.error.contains(&format!("warning: {warning}")),
        "{made:?}"
    );

    let mirrored = with_protection(1, 1);
    let daemon = Scripted::new().on("POST /v1/pools", 201, &mirrored);
    let made = daemon.convect("pool create tank slow mirror /dev/sda /dev/sdb");
    assert_eq!((made.code, made.error.as_str()), (0, ""));
    assert!(
        made.out.contains("survives the failure of any drive\n"),
        "{made:?}"
    );
}
