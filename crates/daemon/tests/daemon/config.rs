//! Configuration: parsing, and one clear error for each invalid value.

use daemon::{
    Config, LogLevel, RemotePaths, ScrubSchedule, Span, StateDir, TlsFiles, check_memory,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(text, Path::new("/etc/c.toml")).map_err(|error| error.to_string())
}

#[test]
fn empty_file_gives_the_defaults() {
    assert_eq!(parse("").unwrap(), Config::default());
}

#[test]
fn every_key_is_parsed() {
    let config = parse(
        "socket = '/run/a.sock'\nmetrics = '[::]:9750'\nmetrics_anywhere = true\nlisten = '0.0.0.0:9443'\ntls_certificate = '/a.pem'\ntls_key = '/b.pem'\nstate_dir = '/var/a'\nthreads = 3\ncores = '1,4-5'\nram_tier = '1.5G'\n\
         map_cache = 67108864\nrequest_memory = '128M'\npool_ram = { tank = '4G' }\nhost_reserve = '1G'\njournal_memory = '/run/a'\nalerts_link_local = true\ndrives = ['file:/dev/sda']\ndrive_deadline = '2m'\ndrive_slow_factor = 20\nflash_daily_percent = 30\nlog_level = 'debug'\n\
         [scrub]\nevery = '7d'\nat = 4\nrate = '32M'\n[remote_paths]\nmounts = []\n[[alert_target]]\nname = 'a'\nto = { kind = 'webhook', url = 'https://a/' }\n",
    )
    .unwrap();
    let expected = Config {
        socket: "/run/a.sock".into(),
        metrics: Some(([0u16; 8], 9750).into()),
        metrics_anywhere: true,
        listen: Some(([0u8; 4], 9443).into()),
        tls: Some(TlsFiles {
            certificate: "/a.pem".into(),
            key: "/b.pem".into(),
        }),
        state_dir: "/var/a".into(),
        threads: 3,
        cores: reactor::Cores::Own(vec![1, 4, 5]),
        ram_tier: 3 << 29,
        pool_ram: BTreeMap::from([("tank".to_owned(), 4 << 30)]),
        host_reserve: Some(1 << 30),
        map_cache: 64 << 20,
        request_memory: 128 << 20,
        journal_memory: Some("/run/a".into()),
        drives: vec!["file:/dev/sda".to_owned()],
        drive_deadline: Span(Duration::from_secs(120)),
        drive_slow_factor: 20,
        flash_daily_percent: 30,
        alert_targets: vec![api::v1::TargetCreate {
            name: "a".to_owned(),
            severity: api::v1::Severity::Warning,
            to: api::v1::TargetTo::Webhook {
                url: api::Secret::new("https://a/"),
                secret: None,
            },
            ca: None,
        }],
        scrub: ScrubSchedule {
            every: Some(Span(Duration::from_secs(7 * 86_400))),
            at: 4,
            rate: 32 << 20,
        },
        remote_paths: RemotePaths {
            mounts: Vec::new(),
            ..RemotePaths::default()
        },
        alerts_link_local: true,
        log_level: LogLevel::Debug,
    };
    assert_eq!(config, expected);
}

#[test]
fn certificate_requires_its_key() {
    let error = parse("tls_certificate = '/a.pem'").unwrap_err();
    assert!(
        error.starts_with("/etc/c.toml: only one of tls_certificate and tls_key"),
        "{error}"
    );
}

#[test]
fn errors_name_line_and_remedy() {
    let long = format!("socket = '/{}'", "x".repeat(120));
    for (text, line, said) in [
        ("threads = ", 1, "correct the line"),
        ("\nsocket = /run/x", 2, "correct the line"),
        ("[pools]\nname = 1", 1, "unknown field `pools`"),
        (
            "threads = 1\nram_teir = '1G'",
            2,
            "unknown field `ram_teir`, expected one of",
        ),
        ("threads = 'two'", 1, "expected i64"),
        ("threads = -1", 1, "-1 threads are out of range"),
        ("threads = 100000", 1, "1 to 256"),
        ("cores = '4-1'", 1, "is not a list of cores"),
        ("ram_tier = '12Q'", 1, "'12Q' is not a size"),
        ("ram_tier = -5", 1, "a size cannot be negative"),
        ("ram_tier = true", 1, "a size like \"512M\""),
        (
            "ram_tier = 4096",
            1,
            "4 KiB is too small: set it to at least 16 MiB",
        ),
        ("pool_ram = { tank = '1M' }", 1, "1 MiB is too small"),
        ("host_reserve = 'much'", 1, "or \"off\""),
        ("\n\nmap_cache = '1M'", 3, "1 MiB is too small"),
        ("request_memory = '100M'", 1, "set it to at least 128 MiB"),
        ("journal_memory = 'shm'", 1, "not the absolute path"),
        ("drives = 'file:/a'", 1, "expected a sequence"),
        ("drives = [1]", 1, "expected a string"),
        ("drives = ['sda']", 1, "'sda' is not a drive"),
        (
            "drives = [\n'file:/a',\n'floppy:b']",
            1,
            "unknown kind of drive 'floppy'",
        ),
        ("drive_deadline = 30", 1, "expected a string"),
        ("drive_deadline = '30'", 1, "'30' is not a duration"),
        ("drive_deadline = '2d'", 1, "can be 1s to 1h"),
        ("drive_slow_factor = 1", 1, "write 2 to 1000"),
        ("flash_daily_percent = -1", 1, "write 1 to 10000"),
        (
            "[[alert_target]]\nname = 'a'\nto = { kind = 'pager' }",
            3,
            "unknown variant",
        ),
        ("[scrub]\nevery = '30'", 2, "'30' is not a duration"),
        ("[scrub]\nevery = '1m'", 2, "can be 1h to 3650d; or \"off\""),
        ("[scrub]\nat = 24", 2, "24 is not an hour: write 0 to 23"),
        ("[scrub]\nrate = '4K'", 2, "at least 1M"),
        (
            "listen = 'everywhere'",
            1,
            "'everywhere' is not an address and a port: write it like 127.0.0.1:9443 or [::1]:9443; or \"off\"",
        ),
        (
            "metrics = 'localhost:9750'",
            1,
            "'localhost:9750' is not an address and a port",
        ),
        ("log_level = 'loud'", 1, "unknown variant `loud`"),
        ("socket = 'convect.sock'", 1, "not absolute"),
        (long.as_str(), 1, "the system allows 107"),
        ("threads = 1\nthreads = 2", 2, "duplicate key"),
    ] {
        let error = parse(text).expect_err(text);
        let place = format!("/etc/c.toml:{line}: ");
        assert!(error.starts_with(&place), "{text}: {error}");
        assert!(error.contains(said), "{text}: {error}");
        assert!(!error.contains('\n'), "{text}: {error}");
    }
}

#[test]
fn missing_file_is_an_error_only_if_explicit() {
    let path = Path::new("/nonexistent/convect.toml");
    assert_eq!(Config::load(path, false).unwrap(), Config::default());
    let error = Config::load(path, true).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/convect.toml"), "{error}");
    assert!(error.contains("--config"), "{error}");
}

#[test]
fn folder_or_binary_is_not_a_configuration() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Config::load(folder.path(), false).is_err());
    let file = folder.path().join("c.toml");
    std::fs::write(&file, [0xff, 0xfe, 0]).unwrap();
    let error = Config::load(&file, false).unwrap_err().to_string();
    assert!(error.contains("must be a text file"), "{error}");
}

#[test]
fn socket_path_from_elsewhere_is_validated() {
    let config = Config {
        socket: format!("/{}", "x".repeat(108)).into(),
        ..Config::default()
    };
    let error = config.check().unwrap_err().to_string();
    assert!(error.contains("choose a shorter one"), "{error}");
}

#[test]
fn insufficient_memory_is_refused_with_the_sum() {
    let config = Config {
        ram_tier: 3 << 30,
        map_cache: 1 << 30,
        ..Config::default()
    };
    let meminfo = |kib: u64| format!("MemTotal: 9 kB\nMemAvailable:   {kib} kB\n");
    assert!(check_memory(&config, &meminfo(4 << 20)).is_ok());
    assert!(check_memory(&config, "").is_ok());
    let error = check_memory(&config, &meminfo((4 << 20) - 1)).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("need 4 GiB"), "{error}");
    assert!(error.contains("reduce them"), "{error}");
}

#[test]
fn state_folder_is_exclusive() {
    let folder = tempfile::tempdir().unwrap();
    let first = StateDir::open(folder.path()).unwrap();
    let error = StateDir::open(folder.path()).err().unwrap().to_string();
    let process = format!("process {}", std::process::id());
    assert!(error.contains(&process), "{error}");
    assert!(error.contains("--state-dir"), "{error}");
    drop(first);
    StateDir::open(folder.path()).unwrap();
}

#[test]
fn uncreatable_state_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = StateDir::open(&file.join("state"))
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("cannot create the state folder"), "{error}");
}

#[test]
fn packaged_example_lists_every_key_with_its_default() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/convect.toml");
    let example = std::fs::read_to_string(path).unwrap();
    assert_eq!(parse(&example).unwrap(), Config::default());
    let keys: Vec<&str> = example
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase() || c == '['))
        .collect();
    assert_eq!(parse(&keys.join("\n")).unwrap(), Config::default());
    let unknown = parse("nothing = 1").unwrap_err();
    let known = unknown.split('`').skip(3).step_by(2);
    for key in known {
        assert!(
            keys.iter()
                .any(|line| line.trim_start_matches('[').starts_with(key)),
            "{key} is not shown"
        );
    }
}
