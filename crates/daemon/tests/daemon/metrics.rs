//! Prometheus metrics: on the Unix socket, over TCP, and disabled.

use crate::common::{
    FRONT_ENDS, Fake, World, export_request, free_port, manager, pool_request, volume_request,
};
use crate::http::Daemon;
use daemon::{Config, Control, Format, run};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

fn get(mut stream: impl Read + Write, request: &str) -> (String, String) {
    let request = format!("{request}Host: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_lowercase(), body.to_owned())
}

/// The value of a sample.
fn value<'a>(text: &'a str, series: &str) -> Option<&'a str> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))
}

#[test]
fn pool_and_its_objects_are_exported() {
    let folder = tempfile::tempdir().unwrap();
    let world = Arc::new(World::default());
    let manager = manager(&world, folder.path());
    let empty = manager.metrics.gather(Format::OpenMetrics).unwrap();
    assert!(
        !empty.contains("pool=") && empty.ends_with("# EOF\n"),
        "{empty}"
    );
    let request = pool_request("tank", &["a\"b", "c"], true);
    manager.pools.create(request).unwrap();
    manager
        .volumes
        .create(volume_request("tank", "disk"))
        .unwrap();
    let export = export_request("door", "tank", "disk", "metrics-door");
    manager.exports.create(export).unwrap();
    {
        let mut pools = world.pools();
        let pool = pools.get_mut("tank").unwrap();
        pool.used = 1 << 29;
        pool.wear.upkeep = 7;
        pool.scrub.lost = 3;
    }
    let text = manager.metrics.gather(Format::Prometheus).unwrap();
    for (series, told) in [
        ("convect_pool_used_bytes{pool=\"tank\"}", "536870912"),
        ("convect_pool_state{pool=\"tank\",state=\"online\"}", "1"),
        ("convect_pool_state{pool=\"tank\",state=\"failed\"}", "0"),
        (
            "convect_fill_full_seconds{pool=\"tank\",part=\"space\"}",
            "+Inf",
        ),
        (
            "convect_tier_capacity_bytes{pool=\"tank\",tier=\"slow\"}",
            "1073741824",
        ),
        ("convect_scrub_lost_blocks{pool=\"tank\"}", "3"),
        (
            "convect_drive_wear_bytes{pool=\"tank\",tier=\"slow\",vdrive=\"1\",drive=\"a\\\"b\",\
             purpose=\"upkeep\"}",
            "7",
        ),
        (
            "convect_volume_size_bytes{pool=\"tank\",volume=\"disk\"}",
            "1048576",
        ),
        (
            "convect_export_sessions{pool=\"tank\",volume=\"disk\",export=\"door\",kind=\"pipe\"}",
            "3",
        ),
    ] {
        assert_eq!(value(&text, series), Some(told), "{series} in {text}");
    }
    assert!(
        value(
            &text,
            "convect_tier_dirty_bytes{pool=\"tank\",tier=\"fast\"}"
        )
        .is_none()
    );
}

#[test]
fn counters_of_many_volumes_need_one_query() {
    let folder = tempfile::tempdir().unwrap();
    let world = Arc::new(World::default());
    let manager = manager(&world, folder.path());
    manager
        .pools
        .create(pool_request("tank", &["a"], false))
        .unwrap();
    for number in 0..400 {
        let request = volume_request("tank", &format!("v{number}"));
        manager.volumes.create(request).unwrap();
    }
    let before = world.looks.load(Ordering::Relaxed);
    let text = manager.metrics.gather(Format::Prometheus).unwrap();
    assert_eq!(world.looks.load(Ordering::Relaxed), before + 1);
    let counters = text.matches("\nconvect_volume_reads_total{").count();
    assert_eq!(counters, 400);
}

#[test]
fn absent_pool_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    let world = Arc::new(World::default());
    let first = manager(&world, folder.path());
    first
        .pools
        .create(pool_request("tank", &["a"], false))
        .unwrap();
    first.stop();
    drop(first);
    world.take_away("a");
    let second = manager(&world, folder.path());
    let text = second.metrics.gather(Format::Prometheus).unwrap();
    assert_eq!(
        value(&text, "convect_pool_absent{pool=\"tank\"}"),
        Some("1")
    );
}

#[test]
fn unix_socket_negotiates_the_format() {
    let daemon = Daemon::start(&Arc::default());
    let ask = |accept: &str| {
        let stream = UnixStream::connect(daemon.socket()).unwrap();
        get(stream, &format!("GET /metrics HTTP/1.1\r\n{accept}"))
    };
    let (head, body) = ask("Accept: */*\r\n");
    assert!(
        head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
        "{head}"
    );
    assert!(body.contains("# TYPE convect_build_info gauge\n"), "{body}");
    let (head, body) = ask("Accept: text/html\r\nAccept: application/openmetrics-text\r\n");
    let kind = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(head.contains(kind), "{head}");
    assert!(body.ends_with("# EOF\n"), "{body}");
}

#[test]
fn metrics_listener_serves_only_metrics_until_stop() {
    let folder = tempfile::tempdir().unwrap();
    let at = free_port();
    let config = Config {
        socket: folder.path().join("c.sock"),
        state_dir: folder.path().join("state"),
        metrics: Some(at),
        ..Config::default()
    };
    let control: Arc<dyn Control> = Fake::over(&Arc::default());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (ready, announced) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let stop = async {
            let _ = stopped.await;
        };
        run(
            &config,
            || Ok(control),
            FRONT_ENDS,
            || ready.send(()).unwrap(),
            stop,
        )
    });
    announced.recv().unwrap();
    let ask = |line: &str| get(TcpStream::connect(at).unwrap(), line);
    let (head, body) = ask("GET /metrics HTTP/1.1\r\n");
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert!(
        value(&body, "convect_scrape_duration_seconds").is_some(),
        "{body}"
    );
    assert!(
        ask("POST /metrics HTTP/1.1\r\n")
            .0
            .starts_with("http/1.1 405")
    );
    assert!(
        ask("GET /v1/pools HTTP/1.1\r\n")
            .0
            .starts_with("http/1.1 404")
    );
    // A silent connection does not delay the shutdown.
    let silent = TcpStream::connect(at).unwrap();
    drop(stop);
    thread.join().unwrap().unwrap();
    drop(silent);
    // A program started by another test may hold the listener until it executes.
    let closes = (0..6000).any(|_| {
        let closed = TcpStream::connect(at).is_err();
        if !closed {
            std::thread::sleep(Duration::from_millis(50));
        }
        closed
    });
    assert!(closes, "the port is still open");
}

#[test]
fn other_hosts_are_served_only_if_permitted() {
    for (at, good) in [
        ("127.0.0.1:1", true),
        ("127.9.9.9:1", true),
        ("[::1]:1", true),
        ("[::ffff:127.0.0.1]:1", true),
        ("0.0.0.0:1", false),
        ("[::]:1", false),
        ("192.0.2.1:1", false),
        ("[::ffff:192.0.2.1]:1", false),
    ] {
        let at: SocketAddr = at.parse().unwrap();
        let mut config = Config {
            metrics: Some(at),
            ..Config::default()
        };
        assert_eq!(config.check().is_ok(), good, "{at}");
        config.metrics_anywhere = true;
        assert_eq!(config.check(), Ok(()), "{at}");
    }
}
