//! Snapshot streams over HTTP: complete ones are accepted, incomplete ones return a token for
//! resuming.

use crate::common::World;
use crate::http::{Daemon, pool};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use stream::{Decoder, Record, Token};

fn with_snapshots(world: &Arc<World>) -> Daemon {
    let daemon = Daemon::start(world);
    assert_eq!(daemon.ask("POST", "/v1/pools", pool()).0, 201);
    let volume = json!({"pool": "tank", "name": "v", "size": 1 << 20});
    assert_eq!(daemon.ask("POST", "/v1/volumes", volume).0, 201);
    for name in ["a", "b"] {
        let snapshot = json!({"pool": "tank", "volumes": ["v"], "name": name});
        assert_eq!(daemon.ask("POST", "/v1/snapshots", snapshot).0, 201);
    }
    daemon
}

/// The body of a sent stream.
fn sent(daemon: &Daemon, query: &str) -> Vec<u8> {
    let mut stream = UnixStream::connect(daemon.socket()).unwrap();
    let path = format!("/v1/snapshots/tank/v/b/stream{query}");
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let head = answer.windows(4).position(|at| at == b"\r\n\r\n").unwrap();
    assert!(answer.starts_with(b"HTTP/1.0 200"), "{query}");
    answer[head + 4..].to_vec()
}

fn records(bytes: &[u8]) -> Vec<Record> {
    let mut decoder = Decoder::default();
    decoder.push(bytes);
    std::iter::from_fn(|| decoder.next_record().unwrap()).collect()
}

/// Sends a stream in chunks of `length` bytes.
fn give(daemon: &Daemon, volume: &str, bytes: &[u8], length: usize) -> (u16, Value) {
    let path = format!("/v1/volumes/tank/{volume}/stream");
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let mut request = head.into_bytes();
    for chunk in bytes.chunks(length) {
        request.extend(format!("{:x}\r\n", chunk.len()).bytes());
        request.extend(chunk);
        request.extend(b"\r\n");
    }
    request.extend(b"0\r\n\r\n");
    daemon.raw(&request)
}

#[test]
fn sent_stream_can_be_received() {
    let world = Arc::default();
    let daemon = with_snapshots(&world);
    let whole = sent(&daemon, "");
    let all = records(&whole);
    assert_eq!(all.len(), 4, "{all:?}");
    let Record::Begin(begin) = &all[0] else {
        panic!("{all:?}");
    };
    assert_eq!((begin.size, begin.from), (1 << 20, None));
    for length in [1, 1000, whole.len()] {
        let (status, received) = give(&daemon, &format!("n{length}"), &whole, length);
        assert_eq!(status, 201, "{received}");
        assert_eq!(received["snapshot"], "b");
        assert_eq!(received["data"], 8192);
        assert_eq!(received["stream"], whole.len());
    }
    let listed = daemon.ask("GET", "/v1/snapshots?pool=tank&volume=n1", Value::Null);
    assert_eq!(listed.1["items"][0]["name"], "b");
}

/// The fake pool rejects progress of data that a power failure could lose (`fake.rs`).
#[test]
fn stream_progress_is_recorded_only_when_durable() {
    let world: Arc<World> = Arc::default();
    let daemon = with_snapshots(&world);
    let whole = sent(&daemon, "");
    assert_eq!(give(&daemon, "n", &whole[..whole.len() - 40], 512).0, 422);
    assert_eq!(world.pools()["tank"].received, 8192);
    assert_eq!(give(&daemon, "n", &whole, 512).0, 201);
    assert!(!world.unflushed.load(Ordering::Relaxed));
}

#[test]
fn incomplete_stream_leaves_no_snapshot_but_a_token() {
    let world = Arc::default();
    let daemon = with_snapshots(&world);
    let whole = sent(&daemon, "");
    let cut = &whole[..whole.len() - 40];
    let (status, problem) = give(&daemon, "n", cut, 512);
    assert_eq!(status, 422, "{problem}");
    let message = problem["message"].as_str().unwrap();
    let token: Token = message.rsplit(' ').next().unwrap().parse().unwrap();
    assert_eq!((token.done, token.from), (8192, None));
    assert_eq!(world.pools()["tank"].received, 8192);
    let listed = daemon.ask("GET", "/v1/snapshots?pool=tank&volume=n", Value::Null);
    assert_eq!(listed.1["items"], json!([]));
    let resumed = records(&sent(&daemon, &format!("?resume={token}")));
    let Record::Begin(begin) = &resumed[0] else {
        panic!("{resumed:?}");
    };
    assert_eq!(begin.start, 8192);
}

#[test]
fn invalid_streams_get_a_status_and_one_reason() {
    let daemon = with_snapshots(&Arc::default());
    let send = "/v1/snapshots/tank/v/b/stream";
    for (query, status) in [
        ("?from=none", 404),
        ("?from=b", 422),
        ("?resume=zz", 422),
        ("?form=a", 422),
    ] {
        let answer = daemon.ask("GET", &format!("{send}{query}"), Value::Null);
        assert_eq!(answer.0, status, "{query}: {}", answer.1);
    }
    for (volume, bytes) in [("n", &b"no stream at all"[..]), ("n", b""), ("n@b", b"")] {
        let (status, problem) = give(&daemon, volume, bytes, 7);
        assert_eq!(status, 422, "{problem}");
        assert_eq!(problem["code"], "invalid");
    }
    let listed = daemon.ask("GET", "/v1/volumes?pool=tank", Value::Null);
    assert_eq!(listed.1["items"].as_array().unwrap().len(), 1);
}
