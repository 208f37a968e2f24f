//! The HTTP API on its Unix socket.

use crate::common::{FRONT_ENDS, Fake, World, is_offered};
use daemon::{Config, Control, ServeError, run};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// Enough time for any response.
pub const PATIENCE: Duration = Duration::from_secs(300);

pub struct Daemon {
    folder: TempDir,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

fn config(folder: &Path) -> Config {
    Config {
        socket: folder.join("run/c.sock"),
        state_dir: folder.join("state"),
        ..Config::default()
    }
}

impl Daemon {
    pub fn start(world: &Arc<World>) -> Self {
        Self::start_with(world, |_| ())
    }

    pub fn start_with(world: &Arc<World>, change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path());
        change(&mut config);
        let control: Arc<dyn Control> = Fake::over(world);
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, announced) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let announce = || ready.send(()).unwrap();
            let stop = async {
                let _ = stopped.await;
            };
            run(&config, || Ok(control), FRONT_ENDS, announce, stop)
        });
        announced.recv_timeout(PATIENCE).unwrap();
        Self {
            folder,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn socket(&self) -> PathBuf {
        config(self.folder.path()).socket
    }

    /// Status, head and body of the response to a request.
    pub fn whole(&self, request: &[u8]) -> (u16, String, Value) {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // A request that is refused early may not be read completely.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect(&answer);
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = serde_json::from_str(body).unwrap_or(Value::Null);
        (status, head.to_owned(), body)
    }

    pub fn raw(&self, request: &[u8]) -> (u16, Value) {
        let (status, _, body) = self.whole(request);
        (status, body)
    }

    pub fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let length = body.len();
        self.raw(
            format!(
                "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
                 Content-Length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        )
    }

    fn finish(mut self) -> (TempDir, Result<(), ServeError>) {
        let _ = self.stop.take().unwrap().send(());
        let ended = self.thread.take().unwrap().join().unwrap();
        (
            std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap()),
            ended,
        )
    }
}

pub fn pool() -> Value {
    json!({"name": "tank", "vdrives": [
        {"tier": "slow", "layout": {"kind": "stripe", "chunk": 65536}, "drives": ["ram:a"]}]})
}

#[test]
fn volume_is_created_exported_and_deleted() {
    let daemon = Daemon::start(&Arc::default());
    let (status, version) = daemon.ask("GET", "/v1/version", Value::Null);
    assert_eq!((status, &version["api"]), (200, &json!(["v1"])));
    assert_eq!(daemon.ask("POST", "/v1/pools", pool()).0, 201);
    let volume = json!({"pool": "tank", "name": "v", "size": 1 << 20, "quota": 8192});
    let (status, made) = daemon.ask("POST", "/v1/volumes", volume);
    assert_eq!((status, &made["lba_size"]), (201, &json!(512)));
    assert_eq!(made["quota"], json!(8192));
    // Omitted members are unchanged; 0 means none.
    for (change, quota) in [(json!({}), json!(8192)), (json!({"quota": 0}), Value::Null)] {
        let (status, changed) = daemon.ask("PUT", "/v1/volumes/tank/v", change);
        assert_eq!((status, &changed["quota"]), (200, &quota));
    }
    for (bytes, shown) in [(4096, json!(4096)), (0, Value::Null)] {
        let change = json!({"reservation": bytes});
        let (status, changed) = daemon.ask("PUT", "/v1/volumes/tank/v", change);
        let told = (&changed["reservation"], &changed["reserved"]);
        assert_eq!((status, told), (200, (&shown, &json!(bytes))));
    }
    let export = json!({"name": "e", "pool": "tank", "volume": "v", "kind": "pipe",
        "parameters": {"listen": "http-1"}});
    assert_eq!(daemon.ask("POST", "/v1/exports", export).0, 201);
    let (status, shown) = daemon.ask("GET", "/v1/exports/e?pool=tank", Value::Null);
    assert_eq!((status, &shown["address"]), (200, &json!("http-1")));
    assert_eq!(
        daemon.ask("DELETE", "/v1/volumes/tank/v", Value::Null).0,
        409
    );
    assert_eq!(daemon.ask("DELETE", "/v1/exports/e", Value::Null).0, 204);
    let (status, job) = daemon.ask("DELETE", "/v1/volumes/tank/v", Value::Null);
    assert_eq!((status, &job["job"]), (202, &json!(8)));
    assert_eq!(daemon.ask("DELETE", "/v1/pools/tank", Value::Null).0, 204);
}

#[test]
fn diff_is_paged() {
    let daemon = Daemon::start(&Arc::default());
    daemon.ask("POST", "/v1/pools", pool());
    let volume = json!({"pool": "tank", "name": "v", "size": 1 << 20});
    daemon.ask("POST", "/v1/volumes", volume);
    let snapshot = json!({"pool": "tank", "volumes": ["v"], "name": "a"});
    assert_eq!(daemon.ask("POST", "/v1/snapshots", snapshot).0, 201);
    let path = "/v1/volumes/tank/v/diff?from=a";
    let (status, first) = daemon.ask("GET", path, Value::Null);
    assert_eq!((status, &first["next"]), (200, &json!(4096)));
    let next = format!("{path}&to=a&start=4096&limit=1");
    let (status, last) = daemon.ask("GET", &next, Value::Null);
    assert_eq!((status, last.get("next")), (200, None));
    let range = json!({"offset": 4096, "len": 4096, "data": true});
    assert_eq!(last["ranges"], json!([range]));
    let other = daemon.ask("GET", "/v1/volumes/tank/v/diff?from=b", Value::Null);
    assert_eq!(other.0, 404);
}

#[test]
fn every_route_responds() {
    let daemon = Daemon::start(&Arc::default());
    // Live data is endless.
    let end = |route: &&api::Route| route.operation != api::Operation::Live;
    for route in api::ROUTES.iter().filter(end) {
        let path = route
            .path
            .replace("{vdrive}", "1")
            .replace("{job}", "7")
            .replace(['{', '}'], "");
        let (status, answer) = daemon.ask(route.method.as_str(), &path, Value::Null);
        let problem = answer["code"].as_str().unwrap_or_default();
        assert!(status != 405, "{path}: {answer}");
        let no_address = answer["message"].to_string().contains("unknown path");
        assert!(!no_address, "{path}: {answer}");
        assert!(
            status < 400 || !problem.is_empty(),
            "{path}: {status} {answer}"
        );
    }
}

#[test]
fn invalid_requests_get_a_status_and_one_reason() {
    let daemon = Daemon::start(&Arc::default());
    assert_eq!(daemon.ask("POST", "/v1/pools", pool()).0, 201);
    let big = json!({"pool": "tank", "name": "v", "size": 1u64 << 50});
    let typo = json!({"pool": "tank", "name": "v", "size": 1 << 20, "thik": true});
    let export = json!({"name": "e", "pool": "tank", "volume": "v", "kind": "pipe",
        "parameters": {"port": "1"}});
    for (method, path, body, status, code, said) in [
        (
            "GET",
            "/v1/nothing",
            Value::Null,
            404,
            "not_found",
            "unknown path",
        ),
        ("GET", "/", Value::Null, 404, "not_found", "unknown path"),
        (
            "PUT",
            "/v1/pools",
            Value::Null,
            405,
            "method_not_allowed",
            "method not allowed",
        ),
        (
            "GET",
            "/v1/pools/lake",
            Value::Null,
            404,
            "not_found",
            "no pool",
        ),
        ("POST", "/v1/pools", pool(), 409, "exists", "already"),
        (
            "POST",
            "/v1/pools",
            json!([1]),
            422,
            "invalid",
            "correct it",
        ),
        (
            "POST",
            "/v1/volumes",
            Value::Null,
            422,
            "invalid",
            "cannot parse",
        ),
        ("POST", "/v1/volumes", typo, 422, "invalid", "thik"),
        ("POST", "/v1/volumes", big, 409, "no_space", "no space"),
        (
            "POST",
            "/v1/exports",
            export,
            422,
            "invalid",
            "no parameter 'port'",
        ),
        (
            "GET",
            "/v1/jobs/x",
            Value::Null,
            422,
            "invalid",
            "'x' is not the number",
        ),
        (
            "GET",
            "/v1/jobs/99",
            Value::Null,
            404,
            "not_found",
            "unknown job 99",
        ),
        ("GET", "/v1/pools/%ff", Value::Null, 422, "invalid", "path"),
        (
            "GET",
            "/v1/volumes?pol=x",
            Value::Null,
            422,
            "invalid",
            "'pol'",
        ),
        (
            "GET",
            "/v1/volumes/tank/v/map?cells=-1",
            Value::Null,
            422,
            "invalid",
            "cells",
        ),
        (
            "GET",
            "/v1/volumes/tank/v/diff?start=4k",
            Value::Null,
            422,
            "invalid",
            "start",
        ),
        (
            "POST",
            "/v1/drives/probe",
            json!({"spec": "x:"}),
            500,
            "io",
            "no such drive",
        ),
    ] {
        let (got, answer) = daemon.ask(method, path, body);
        assert_eq!(got, status, "{path}: {answer}");
        assert_eq!(answer["code"], code, "{path}: {answer}");
        assert!(
            answer["message"].as_str().unwrap().contains(said),
            "{path}: {answer}"
        );
    }
}

#[test]
fn oversized_body_is_not_read() {
    let daemon = Daemon::start(&Arc::default());
    let head = "POST /v1/pools HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
                Content-Length: 1048577\r\n\r\n";
    let mut request = head.as_bytes().to_vec();
    request.resize(head.len() + 1_048_577, b' ');
    let (status, answer) = daemon.raw(&request);
    assert_eq!((status, &answer["code"]), (413, &json!("too_large")));
}

#[test]
fn non_http_input_ends_only_its_connection() {
    let daemon = Daemon::start(&Arc::default());
    let mut stream = UnixStream::connect(daemon.socket()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&[0xff; 64 << 10]).unwrap_or_default();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(daemon.ask("GET", "/v1/version", Value::Null).0, 200);
}

#[test]
fn socket_is_accessible_to_user_and_group() {
    let daemon = Daemon::start(&Arc::default());
    let mode = std::fs::metadata(daemon.socket())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o660);
}

#[test]
fn stopped_daemon_has_stopped_exports_and_removed_its_socket() {
    let world = Arc::default();
    let daemon = Daemon::start(&world);
    daemon.ask("POST", "/v1/pools", pool());
    daemon.ask(
        "POST",
        "/v1/volumes",
        json!({"pool": "tank", "name": "v", "size": 1 << 20}),
    );
    let export = json!({"name": "e", "pool": "tank", "volume": "v", "kind": "pipe",
        "parameters": {"listen": "stopped-1"}});
    assert_eq!(daemon.ask("POST", "/v1/exports", export).0, 201);
    let socket = daemon.socket();
    // An idle connection does not delay the shutdown.
    let _idle = UnixStream::connect(&socket).unwrap();
    let (_folder, ended) = daemon.finish();
    ended.unwrap();
    assert!(!is_offered("stopped-1"));
    assert!(!socket.exists());
}

#[test]
fn failed_start_says_why_and_leaves_nothing() {
    let running = Daemon::start(&Arc::default());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let good = config(folder.path());
    let with = |change: &dyn Fn(&mut Config)| {
        let mut config = good.clone();
        change(&mut config);
        config
    };
    let open = folder.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    for (config, said) in [
        (
            with(&|c| c.state_dir = config(running.folder.path()).state_dir),
            "another daemon",
        ),
        (
            with(&|c| c.socket = running.socket()),
            "in use by another program",
        ),
        (with(&|c| c.socket = file.clone()), "is not a socket"),
        (
            with(&|c| c.socket = file.join("s")),
            "cannot create the socket",
        ),
        (
            with(&|c| c.socket = format!("/{}", "x".repeat(200)).into()),
            "a shorter one",
        ),
        (
            with(&|c| c.state_dir = open.clone()),
            "it is writable by every user",
        ),
    ] {
        let control: Arc<dyn Control> = Fake::over(&Arc::default());
        let never = || panic!("announced: {said}");
        let error = run(&config, || Ok(control), FRONT_ENDS, never, async {}).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(said), "{said}: {error}");
        assert!(!good.socket.exists(), "{said}");
    }
    assert_eq!(running.ask("GET", "/v1/version", Value::Null).0, 200);
}
