//! Options of lists: columns, scripts, order, names; and how lists fit a terminal.

use crate::scripted::{Scripted, command};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

const POOL: &str = r#""state":"online","messages":[],"policy":"slow_first","shards":1,
    "capacity":1000000,"used":910000,"reserved":0,"promised":2500000,"promised_percent":250,
    "warn_at":[80],"fills":[],"fast_capacity":0,"fast_dirty":0,"fast_shadow":0,"volumes":1,
    "promotion_held":false,"map_bytes":0,"ram_bytes":0"#;

fn pool(name: &str, vdrives: &str) -> String {
    format!(r#"{{"id":"1","name":"{name}",{POOL},"vdrives":[{vdrives}]}}"#)
}

fn export(name: &str, volume: &str, sessions: u64, address: &str) -> String {
    format!(
        r#"{{"name":"{name}","pool":"tank","volume":"{volume}","kind":"nbd","parameters":{{}},
        "state":"online","address":"{address}","hints":[],"sessions":{sessions}}}"#
    )
}

fn daemon() -> Scripted {
    let address = format!("unix:/run/convect/{}.sock", "long".repeat(20));
    let exports = [
        export("a", "vm1", 20, &address),
        export("b", "vm2", 3, "unix:/b"),
        export("c", "db", 100, "unix:/c"),
    ];
    let exports = format!(r#"{{"items":[{}]}}"#, exports.join(","));
    let drive = format!(
        r#"{{"id":"1","spec":"file:/dev/disk/by-id/{}","size":1000000,"state":"online",
        "reads":0,"writes":0,"read_bytes":0,"write_bytes":0,"errors":0,"repaired":0,"timeouts":0,
        "slow":false,"why":"","synced_percent":null,
        "wear":{{"since_s":null,"total":0,"hosts":0,"promotion":0,"upkeep":0,"metadata":0,
        "daily":null,"daily_since_start":null}}}}"#,
        "x".repeat(70)
    );
    let vdrive = format!(
        r#"{{"id":0,"tier":"slow","layout":{{"kind":"concat"}},"state":"online",
        "capacity":1000000,"used":1,"drives":[{drive}]}}"#
    );
    let (tank, ice) = (pool("tank", &vdrive), pool("ice", ""));
    let pools = format!(r#"{{"items":[{tank},{ice}],"absent":[]}}"#);
    Scripted::new()
        .on("GET /v1/exports", 200, &exports)
        .on("GET /v1/pools", 200, &pools)
        .on("GET /v1/pools/tank", 200, &tank)
}

fn out(daemon: &Scripted, arguments: &str) -> String {
    let said = daemon.convect(arguments);
    assert_eq!(
        (said.code, said.error.as_str()),
        (0, ""),
        "{arguments}: {said:?}"
    );
    said.out
}

#[test]
fn scripts_get_chosen_exact_sorted_columns() {
    let daemon = daemon();
    for (arguments, expected) in [
        (
            "export list -H -o name,sessions --sort sessions",
            "b\t3\na\t20\nc\t100\n",
        ),
        ("export list -H -o name --sort -sessions", "c\na\nb\n"),
        ("export list -H -o volume vm*", "tank/vm1\ntank/vm2\n"),
        ("export list -H -o volume,initiator b", "tank/vm2\t-\n"),
        (
            "pool list -Hp -o name,size,fill,fast ta*",
            "tank\t1000000\t91\t0\n",
        ),
        ("pool list -H -o name,size ice", "ice\t976.6 KiB\n"),
    ] {
        assert_eq!(out(&daemon, arguments), expected, "{arguments}");
    }
    let shown = out(&daemon, "export list -o name,state");
    assert!(
        shown.starts_with("EXPORT  STATE\na       online\n"),
        "{shown}"
    );
}

#[test]
fn wrong_columns_and_absent_names_are_told_with_the_known_ones() {
    let daemon = daemon();
    let said = daemon.convect("export list -o name,colour");
    assert_eq!(said.code, 2, "{said:?}");
    let columns = "export, volume, protocol, initiator, state, sessions, address";
    assert!(
        said.error.contains("'colour'") && said.error.contains(columns),
        "{said:?}"
    );
    daemon.is_never_asked(&["export list --sort -colour", "export list -H --json"]);
    assert_eq!(daemon.convect("export list x").code, 3);
    assert_eq!(daemon.convect("export list x*").code, 0);
}

#[test]
fn json_is_limited_to_names_and_otherwise_unchanged() {
    let daemon = daemon();
    let items = |arguments: &str| {
        let value: serde_json::Value = serde_json::from_str(&out(&daemon, arguments)).unwrap();
        value["items"].as_array().unwrap().len()
    };
    assert_eq!(items("export list --json"), 3);
    assert_eq!(items("export list vm* --json"), 2);
    assert_eq!(items("pool list --json"), 2);
    assert_eq!(items("pool status --json"), 2);
}

#[test]
fn pool_status_without_a_name_shows_every_pool() {
    let daemon = daemon();
    let all = out(&daemon, "pool status");
    assert_eq!(all.matches("policy:").count(), 2, "{all}");
    assert!(all.contains(" tank\n") && all.contains(" ice\n"), "{all}");
    let one = out(&daemon, "pool status tank");
    assert!(all.starts_with(&one), "{all}");
    assert_eq!(out(&daemon, "pool status ta*"), one);
    let none = Scripted::new().on("GET /v1/pools", 200, r#"{"items":[],"absent":[]}"#);
    assert!(out(&none, "pool status").starts_with("no pools: "));
}

/// The lines that the program prints on a terminal with this many columns.
fn on_terminal(daemon: &Scripted, arguments: &str, columns: u16) -> Vec<String> {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let size = Winsize {
        ws_row: 24,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&terminal, size).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let path = std::path::PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes()));
    let own = File::options().read(true).write(true).open(path).unwrap();
    let line = format!(
        "--socket {} --color never {arguments}",
        daemon.socket().display()
    );
    let mut line = command(&line);
    let mut child = line.stdout(own).spawn().unwrap();
    // Closes the terminal's own end here, so that reading ends with the child.
    drop(line);
    let mut text = Vec::new();
    // Linux reports the end as EIO.
    let _ = File::from(terminal).read_to_end(&mut text);
    assert!(child.wait().unwrap().success(), "{arguments}");
    let text = String::from_utf8(text).unwrap();
    text.lines()
        .map(|line| line.trim_end_matches('\r').to_owned())
        .collect()
}

#[test]
fn no_line_is_wider_than_the_terminal_but_nothing_is_cut_elsewhere() {
    let daemon = daemon();
    for arguments in [
        "export list",
        "pool list",
        "pool status",
        "export list -o all",
    ] {
        for columns in [80, 60] {
            let lines = on_terminal(&daemon, arguments, columns);
            assert!(lines.len() > 2, "{arguments}: {lines:?}");
            for line in lines {
                let width = line.chars().count();
                assert!(
                    width <= usize::from(columns),
                    "{arguments}, {columns}: {line}"
                );
            }
        }
    }
    let lines = on_terminal(&daemon, "export list", 80);
    assert!(lines.iter().any(|line| line.contains('…')), "{lines:?}");
    let piped = out(&daemon, "export list");
    assert!(
        piped.contains(&"long".repeat(20)) && !piped.contains('…'),
        "{piped}"
    );
}
