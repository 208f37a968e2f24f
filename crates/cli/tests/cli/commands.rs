//! The program as scripts use it.

use crate::scripted::{Scripted, command, convect, copy_program, ended};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

const FRONT_ENDS: &str = r#"{"items":[{"name":"nbd","about":"x","parameters":[
    {"name":"listen","about":"where","required":true}]}]}"#;
const EXPORT: &str = r#"{"name":"e","pool":"tank","volume":"v","kind":"nbd",
    "parameters":{"listen":"unix:/n"},"state":"online","address":"unix:/n",
    "hints":["nbdinfo nbd+unix:///e?socket=/n"],"sessions":0,"error":null}"#;

fn job(state: &str, percent: f64) -> String {
    format!(
        r#"{{"id":3,"kind":"delete","subject":"tank/v","state":"{state}","done":1,"total":2,
        "percent":{percent},"rate":1048576,"seconds_left":61,"message":"why"}}"#
    )
}

#[test]
fn missing_daemon_error_says_how_to_start_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none");
    let said = convect(&format!("--socket {} pool list", path.display()));
    let expected = format!(
        "error: no daemon responds at {}: start it with `convect serve` or specify its socket with \
         --socket\n",
        path.display()
    );
    assert_eq!((said.code, said.error), (7, expected));
}

#[test]
fn response_of_another_server_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let thread = std::thread::spawn(move || {
        use std::io::Write;
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"220 mail.example\r\n").unwrap();
    });
    let said = convect(&format!("--socket {} pool list", path.display()));
    thread.join().unwrap();
    assert_eq!(said.code, 7, "{said:?}");
    assert!(said.error.starts_with("error: "), "{said:?}");
}

#[test]
fn wrong_usage_exits_with_2_and_sends_nothing() {
    let daemon = Scripted::new();
    daemon.is_never_asked(&[
        "",
        "pool",
        "pool make x",
        "pool create tank",
        "pool create tank /dev/sda",
        "volume create v --size 1G",
        "volume create tank/v --size lots",
        "volume create tank/v",
        "pool iostat --watch 0",
        "drive show sda",
        "completions tcsh",
        "send tank/v",
        "send tank/v@b --from a --resume 00",
        "receive tank/v --force --status",
    ]);
}

#[test]
fn refusal_is_one_line_and_exits_with_1() {
    let daemon = Scripted::new().on(
        "POST /v1/volumes",
        409,
        r#"{"code":"no_space","message":"the pool is full: add a drive"}"#,
    );
    let said = daemon.convect("volume create tank/v --size 1G");
    assert_eq!(said.code, 1);
    assert_eq!(said.error, "error: the pool is full: add a drive\n");
    assert_eq!(said.out, "");
}

#[test]
fn destructive_commands_require_confirmation() {
    let daemon = Scripted::new();
    for arguments in [
        "pool destroy tank",
        "pool remove tank 2",
        "pool online tank /dev/sdb --force",
        "pool replace tank /dev/sda /dev/sdb --force",
        "pool create tank slow /dev/sda --force",
        "volume delete tank/v",
        "volume resize tank/v 1G --shrink",
        "export delete e",
    ] {
        let said = daemon.convect(arguments);
        assert_eq!(said.code, 6, "{arguments}: {said:?}");
        assert!(said.error.contains("add --yes"), "{arguments}: {said:?}");
    }
    assert_eq!(daemon.asked(), []);
}

#[test]
fn force_and_the_pool_of_an_export_are_sent_to_the_daemon() {
    let closed = "POST /v1/pools/tank/export?force=true";
    let disabled = "POST /v1/exports/e/disable?pool=tank&force=true";
    let enabled = "POST /v1/exports/e/enable";
    let daemon = Scripted::new()
        .on(closed, 204, "")
        .on(disabled, 200, EXPORT)
        .on(enabled, 200, EXPORT);
    for (arguments, asked) in [
        ("pool export tank --force", closed),
        ("export disable tank/e --force", disabled),
        ("export enable e", enabled),
    ] {
        let said = daemon.convect(arguments);
        assert_eq!(said.code, 0, "{arguments}: {said:?}");
        assert_eq!(daemon.asked().pop().unwrap().0, asked);
    }
}

#[test]
fn json_output_is_the_daemons_response() {
    let text = r#"{"items":[],"absent":[],"later":1}"#;
    let daemon = Scripted::new().on("GET /v1/pools", 200, text);
    for arguments in ["--json pool list", "pool list --json"] {
        let said = daemon.convect(arguments);
        let read: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(
            read,
            serde_json::from_str::<serde_json::Value>(text).unwrap()
        );
    }
}

#[test]
fn export_is_created_with_the_parameters_of_its_protocol() {
    let daemon = Scripted::new().on("GET /v1/frontends", 200, FRONT_ENDS).on(
        "POST /v1/exports",
        201,
        EXPORT,
    );
    let said = daemon.convect("export create e tank/v nbd --listen unix:/n");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out.contains("nbdinfo nbd+unix:///e?socket=/n"),
        "{said:?}"
    );
    let (_, body) = daemon.asked().pop().unwrap();
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["parameters"]["listen"], "unix:/n");
    assert_eq!(body.get("initiator"), None);

    for words in [
        "--initiator backup e tank/v nbd --listen unix:/n",
        "e tank/v nbd --listen unix:/n --initiator backup",
        "e tank/v nbd --initiator=backup --listen unix:/n",
    ] {
        daemon.convect(&format!("export create {words}"));
        let (_, body) = daemon.asked().pop().unwrap();
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let asked = (&body["initiator"], &body["parameters"]["listen"]);
        assert_eq!((asked.0, asked.1), (&"backup".into(), &"unix:/n".into()));
        assert_eq!(body["parameters"].as_object().unwrap().len(), 1);
    }

    assert_eq!(body.get("writable"), None);
    for words in [
        "--writable e tank/v@s nbd --listen unix:/n",
        "e tank/v@s nbd --listen unix:/n --writable",
    ] {
        daemon.convect(&format!("export create {words}"));
        let (_, body) = daemon.asked().pop().unwrap();
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["writable"], true);
        assert_eq!(body["parameters"].as_object().unwrap().len(), 1);
    }

    let said = daemon.convect("export create e tank/v nbd --listen unix:/n --json");
    assert!(said.out.starts_with('{'), "{said:?}");
    for (arguments, why) in [
        (
            "export create e tank/v scsi --listen a",
            "choose one of nbd",
        ),
        ("export create e tank/v nbd", "requires --listen"),
        (
            "export create --initiator a e tank/v nbd --listen a --initiator b",
            "--initiator is given twice",
        ),
        (
            "export create e tank/v nbd --listen a --initiator",
            "--initiator has no value",
        ),
        ("export create e tank/v nbd --port 1", "no parameter --port"),
    ] {
        let before = daemon.asked().len();
        let said = daemon.convect(arguments);
        assert_eq!(said.code, 2, "{arguments}");
        assert!(said.error.contains(why), "{arguments}: {said:?}");
        assert_eq!(
            daemon.asked().len(),
            before + 1,
            "only the protocols were requested"
        );
    }
}

#[test]
fn equal_export_names_are_distinguished_by_pool() {
    let daemon = Scripted::new().on("GET /v1/exports/e?pool=tank", 200, EXPORT);
    let said = daemon.convect("export show tank/e");
    assert!(said.out.contains("tank/v"), "{said:?}");
}

#[test]
fn delete_waits_for_its_job() {
    let daemon = Scripted::new()
        .on("DELETE /v1/volumes/tank/v", 202, r#"{"job":3}"#)
        .on("GET /v1/jobs/3", 200, &job("running", 50.0))
        .on("GET /v1/jobs/3", 200, &job("done", 100.0));
    let said = daemon.convect("volume delete tank/v --yes");
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "volume tank/v deleted\n")
    );
    assert_eq!(daemon.asked().len(), 3);
}

#[test]
fn failed_job_is_an_error_with_its_reason() {
    for (state, why) in [
        ("failed", "job 3 failed: why"),
        ("cancelled", "job 3 was cancelled"),
    ] {
        let daemon = Scripted::new().on("GET /v1/jobs/3", 200, &job(state, 50.0));
        let said = daemon.convect("job wait 3");
        assert_eq!((said.code, said.error), (1, format!("error: {why}\n")));
    }
}

#[test]
fn background_job_can_be_found_again() {
    let daemon = Scripted::new()
        .on("DELETE /v1/volumes/tank/v", 202, r#"{"job":3}"#)
        .on("GET /v1/jobs/3", 200, &job("running", 50.0));
    let said = daemon.convect("volume delete tank/v --yes --background");
    assert_eq!(said.out, "job 3 started; see `convect job show 3`\n");
    let said = daemon.convect("job show 3");
    assert!(said.out.contains("50.0 %"), "{said:?}");
    assert!(said.out.contains("1 min 1 s"), "{said:?}");
}

#[test]
fn job_is_paused_and_resumed() {
    let daemon =
        Scripted::new()
            .on("POST /v1/jobs/3/pause", 204, "")
            .on("POST /v1/jobs/3/resume", 204, "");
    let said = daemon.convect("job pause 3");
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "job 3 paused; resume it with `convect job resume 3`\n")
    );
    let said = daemon.convect("job resume 3");
    assert_eq!((said.code, said.out.as_str()), (0, "job 3 resumed\n"));
}

#[test]
fn interrupted_wait_leaves_the_job_running() {
    let daemon = Scripted::new().on("GET /v1/jobs/3", 200, &job("running", 50.0));
    let arguments = format!("--socket {} job wait 3", daemon.socket().display());
    let mut child = command(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(300);
    while daemon.asked().is_empty() {
        assert!(std::time::Instant::now() < deadline, "no request was sent");
        std::thread::yield_now();
    }
    let process = child.id().to_string();
    let kill = std::process::Command::new("kill")
        .args(["-INT", &process])
        .status();
    assert!(kill.unwrap().success());
    while child.try_wait().unwrap().is_none() {
        if std::time::Instant::now() > deadline {
            child.kill().unwrap();
        }
        std::thread::yield_now();
    }
    let said = ended(child.wait_with_output().unwrap());
    assert_eq!(said.code, 130, "{said:?}");
    assert_eq!(said.error, "job 3 continues; see `convect job show 3`\n");
}

#[test]
fn map_without_terminal_has_no_colour() {
    let daemon = Scripted::new().on(
        "GET /v1/volumes/tank/v/map?cells=2",
        200,
        r#"{"size":8192,"cells":[{"ram":4096,"fast":0,"slow":0,"empty":0},
            {"ram":0,"fast":0,"slow":4096,"empty":0}]}"#,
    );
    let said = daemon.convect("map tank/v --cells 2");
    assert!(said.out.starts_with("      0 B RS\n"), "{said:?}");
    assert!(!said.out.contains('\x1b'), "{said:?}");
}

#[test]
fn states_have_colours_on_request_only() {
    let jobs = format!(
        r#"{{"items":[{},{}]}}"#,
        job("failed", 50.0),
        job("running", 1.0)
    );
    let daemon = Scripted::new().on("GET /v1/jobs", 200, &jobs);
    let red = "\x1b[31mfailed\x1b[0m";
    for (arguments, coloured) in [
        ("job list", false),
        ("job list --color never", false),
        ("job list --color auto", false),
        ("job list --color always", true),
        ("job list --color always --json", false),
    ] {
        let said = daemon.convect(arguments);
        assert_eq!(said.code, 0, "{said:?}");
        assert_eq!(said.out.contains(red), coloured, "{said:?}");
        assert_eq!(said.out.contains('\x1b'), coloured, "{said:?}");
    }
    let plain = daemon.convect("job list").out;
    let coloured = daemon.convect("job list --color always").out;
    assert_eq!(coloured.replace(red, "failed"), plain);
}

#[test]
fn diff_is_paged_and_merged() {
    let path = "GET /v1/volumes/tank/copy/diff?from=v%40a&start=";
    let daemon = Scripted::new()
        .on(
            &format!("{path}0&limit=4096&to=b"),
            200,
            r#"{"size":1048576,"ranges":[{"offset":0,"len":4096,"data":false},
                {"offset":8192,"len":4096,"data":true}],"next":12288}"#,
        )
        .on(
            &format!("{path}12288&limit=4096&to=b"),
            200,
            r#"{"size":1048576,"ranges":[{"offset":12288,"len":4096,"data":true}]}"#,
        );
    let said = daemon.convect("snapshot diff tank/v@a tank/copy@b");
    let lines: Vec<Vec<&str>> = said
        .out
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0], ["OFFSET", "LENGTH", "NOW"], "{said:?}");
    assert_eq!(lines[1], ["0", "4096", "zeroes"]);
    assert_eq!(lines[2], ["8192", "8192", "data"]);
    let total = "12 KiB changed in 2 ranges of 1 MiB: 8 KiB data, 4 KiB zeroes\n";
    assert!(said.out.ends_with(total), "{said:?}");
    let said = daemon.convect("--json snapshot diff tank/v@a tank/copy@b");
    assert_eq!(said.out.lines().count(), 2, "{said:?}");
}

#[test]
fn diff_without_progress_is_an_error() {
    let daemon = Scripted::new().on(
        "GET /v1/volumes/tank/v/diff?from=v%40a&start=0&limit=4096",
        200,
        r#"{"size":8192,"ranges":[],"next":0}"#,
    );
    let said = daemon.convect("snapshot diff tank/v@a");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.error.contains("continues at 0"), "{said:?}");
    let said = daemon.convect("snapshot diff tank/v@a pond/v");
    assert_eq!(said.code, 2, "{said:?}");
}

#[test]
fn iostat_prints_the_load_of_each_period() {
    let counters = |reads: u64| {
        format!(
            r#"{{"reads":{reads},"writes":0,"read_bytes":0,"write_bytes":0,"flushes":0,
            "blocks_ram":{reads},"blocks_fast":0,"blocks_slow":0,"blocks_zero":0,
            "promoted_bytes":0,"demoted_bytes":0,"read_ns":0,"write_ns":0}}"#
        )
    };
    let daemon = Scripted::new()
        .on("GET /v1/pools/tank/counters", 200, &counters(0))
        .on("GET /v1/pools/tank/counters", 200, &counters(5))
        .on("GET /v1/pools/tank/counters", 200, &counters(5));
    let said = daemon.convect("pool iostat tank --watch 0.1 --count 2");
    let lines: Vec<Vec<&str>> = said
        .out
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert_eq!(lines.len(), 3, "{said:?}");
    assert_ne!(lines[1][1], "0");
    assert_eq!(lines[1][7], "100.0");
    assert_eq!(lines[2][1], "0");
}

#[test]
fn absent_pool_is_listed_with_advice() {
    let daemon = Scripted::new().on(
        "GET /v1/pools",
        200,
        r#"{"items":[],"absent":[{"id":"1","name":"tank","drives":[],
            "message":"pool tank is not open: its drive x is missing"}]}"#,
    );
    let said = daemon.convect("pool list");
    assert!(said.out.contains("absent"), "{said:?}");
    assert!(said.out.contains("its drive x is missing"), "{said:?}");
}

#[test]
fn import_searches_the_block_devices_of_the_host_unless_it_is_told_where() {
    let listed = r#"{"items":[{"id":"1","name":"tank","found":["file:/dev/disk/by-id/a"],"missing":[]}],
        "passed_over":["drive /dev/disk/by-id/b is in use"]}"#;
    let daemon = Scripted::new().on("POST /v1/importable", 200, listed);
    let said = daemon.convect("pool import");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("tank"), "{said:?}");
    assert!(
        said.error
            .contains("skipped: drive /dev/disk/by-id/b is in use"),
        "{said:?}"
    );
    daemon.convect("pool import -d /a --dir /b");
    daemon.convect("pool import --drive /dev/sda");
    let bodies: Vec<String> = daemon.asked().into_iter().map(|(_, body)| body).collect();
    let expected = [
        r#"{"drives":[],"folders":["/dev/disk/by-id"]}"#,
        r#"{"drives":[],"folders":["/a","/b"]}"#,
        r#"{"drives":["file:/dev/sda"],"folders":[]}"#,
    ];
    assert_eq!(bodies, expected);
}

#[test]
fn closed_output_is_not_an_error() {
    let mut child = command("completions bash")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn completions_and_manual_pages_cover_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let said = convect(&format!("completions {shell}"));
        assert!(said.out.contains("hold-promotion"), "{shell}");
    }
    let folder = tempfile::tempdir().unwrap();
    let said = convect(&format!("man {}", folder.path().display()));
    assert_eq!(said.code, 0, "{said:?}");
    for page in ["convect.1", "convect-pool-create.1", "convect-serve.1"] {
        assert!(folder.path().join(page).exists(), "{page}");
    }
}

#[test]
fn failed_start_is_reported_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let write = |name: &str, text: &str| {
        std::fs::write(path(name), text).unwrap();
        path(name)
    };
    let unknown = write("unknown.toml", "threads = 1\nram = '1G'\n");
    let huge = write("huge.toml", "ram_tier = '900T'\nmap_cache = '900T'\n");
    let plain = write("plain", "");
    let state = path("state");
    let long = format!("{}/{}", folder.path().display(), "x".repeat(120));
    for (arguments, said) in [
        (format!("serve --config {}", path("none.toml")), "none.toml"),
        (
            format!("serve --config {unknown}"),
            "unknown.toml:2: unknown field `ram`",
        ),
        (
            format!("serve --config {huge} --state-dir {state}"),
            "reduce them",
        ),
        (
            format!("serve --socket {long} --state-dir {state}"),
            "choose a shorter one",
        ),
        (
            format!("serve --socket {}/s --state-dir {state}", plain),
            "cannot create the socket",
        ),
        (
            format!("serve --state-dir {plain}/state"),
            "cannot create the state folder",
        ),
    ] {
        let ended = convect(&arguments);
        assert_eq!(ended.code, 1, "{arguments}: {ended:?}");
        assert!(ended.error.starts_with("error: "), "{arguments}: {ended:?}");
        assert!(ended.error.contains(said), "{arguments}: {ended:?}");
        assert_eq!(ended.error.lines().count(), 1, "{arguments}: {ended:?}");
        assert_eq!(ended.out, "", "{arguments}");
    }
}

#[test]
fn socket_without_permission_is_reported() {
    let daemon = Scripted::new();
    let folder = daemon.socket().parent().unwrap().to_owned();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(daemon.socket(), std::fs::Permissions::from_mode(0o600)).unwrap();
    let arguments = format!("--socket {} pool list", daemon.socket().display());
    let mut asking = command(&arguments);
    // Root may use any socket, so root runs a copy as nobody; other users own this socket and
    // remove its permissions.
    if std::fs::metadata("/proc/self").is_ok_and(|meta| {
        use std::os::unix::fs::MetadataExt;
        meta.uid() != 0
    }) {
        std::fs::set_permissions(daemon.socket(), std::fs::Permissions::from_mode(0o0)).unwrap();
    } else {
        use std::os::unix::process::CommandExt;
        let copy = folder.join("convect");
        copy_program(env!("CARGO_BIN_EXE_convect").as_ref(), &copy);
        asking = std::process::Command::new(copy);
        asking
            .args(arguments.split_whitespace())
            .uid(65_534)
            .gid(65_534);
    }
    let said = ended(asking.output().unwrap());
    assert_eq!(said.code, 7, "{said:?}");
    assert!(said.error.contains("permission denied for"), "{said:?}");
    assert!(daemon.asked().is_empty());
}

const SCHEDULE: &str = r#"{"name":"hourly","pool":"tank","volumes":["a","b"],"every_s":3600,
    "keep":24,"since_s":1735689600,"last_s":null,"next_s":1735693200,"missed":2,
    "missed_since_s":1735696800,"error":"no drive takes the label","error_s":1735700400}"#;

#[test]
fn schedule_of_a_group_is_set_and_shown_with_its_error() {
    let daemon = Scripted::new()
        .on("POST /v1/schedules", 200, SCHEDULE)
        .on(
            "GET /v1/schedules?pool=tank&volume=b",
            200,
            &format!(r#"{{"items":[{SCHEDULE}]}}"#),
        )
        .on("DELETE /v1/schedules/tank/b/hourly", 204, "");
    for wrong in [
        "tank/a@hourly other/b@hourly --every 1h --keep 24",
        "tank/a@hourly tank/b@daily --every 1h --keep 24",
        "tank/a --every 1h --keep 24",
        "tank/a@hourly --every 1 --keep 24",
        "tank/a@hourly --keep 24",
    ] {
        let said = daemon.convect(&format!("snapshot schedule set {wrong}"));
        assert_eq!(said.code, 2, "{wrong}: {said:?}");
    }
    assert_eq!(daemon.asked(), []);
    let said =
        daemon.convect("snapshot schedule set tank/a@hourly tank/b@hourly --every 60m --keep 24");
    let expected = "tank/a@hourly, tank/b@hourly: every 1h, keep 24; next at \
                    2025-01-01 01:00 UTC\n";
    assert_eq!((said.code, said.out.as_str()), (0, expected), "{said:?}");
    let asked: serde_json::Value = serde_json::from_str(&daemon.asked()[0].1).unwrap();
    let request = serde_json::json!({
        "pool": "tank", "volumes": ["a", "b"], "name": "hourly", "every_s": 3600, "keep": 24
    });
    assert_eq!(asked, request);
    let said = daemon.convect("snapshot schedule list tank/b");
    for words in [
        " 1h ",
        "2 since 2025-01-01 02:00 UTC",
        "a, b",
        "tank, hourly: failed at 2025-01-01 03:00 UTC: no drive takes the label\n",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    let said = daemon.convect("snapshot schedule remove tank/b@hourly");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("its snapshots are kept"), "{said:?}");
}
