//! Preconditions (If-Match) and idempotency keys.

use crate::common::World;
use crate::http::{Daemon, pool};
use api::ROUTES;
use serde_json::{Value, json};
use std::sync::{Arc, Barrier};
use std::time::Duration;

struct Answer {
    status: u16,
    tag: Option<String>,
    body: Value,
}

fn ask(daemon: &Daemon, request: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let length = body.len();
    let text = format!(
        "{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    let (status, head, body) = daemon.whole(text.as_bytes());
    let tag = head
        .lines()
        .find_map(|line| line.strip_prefix("etag: "))
        .map(str::to_owned);
    Answer { status, tag, body }
}

/// A daemon with a pool, a volume, a snapshot and an export at a unique address.
fn daemon(at: &str) -> Daemon {
    let daemon = Daemon::start(&Arc::default());
    for (path, body) in [
        ("/v1/pools", pool()),
        ("/v1/volumes", volume("v")),
        ("/v1/volumes", volume("w")),
        (
            "/v1/snapshots",
            json!({"pool": "tank", "volumes": ["v"], "name": "s"}),
        ),
        (
            "/v1/exports",
            json!({"name": "e", "pool": "tank", "volume": "w", "kind": "pipe", "parameters": {"listen": at}}),
        ),
    ] {
        assert_eq!(daemon.ask("POST", path, body).0, 201, "{path}");
    }
    daemon
}

fn volume(name: &str) -> Value {
    json!({"pool": "tank", "name": name, "size": 1 << 20})
}

#[test]
fn change_with_a_stale_tag_is_refused() {
    let daemon = daemon("conditions-1");
    for (path, change, again) in [
        (
            "/v1/volumes/tank/v",
            json!({"quota": 8192}),
            json!({"quota": 4096}),
        ),
        (
            "/v1/snapshots/tank/v/s",
            json!({"held": true}),
            json!({"held": false}),
        ),
        (
            "/v1/exports/e",
            json!({"parameters": {"queues": "2"}}),
            json!({"parameters": {"queues": "3"}}),
        ),
    ] {
        let get = format!("GET {path}");
        let put = match path {
            "/v1/exports/e" => format!("PUT {path}/parameters"),
            _ => format!("PUT {path}"),
        };
        let seen = ask(&daemon, &get, &[], &Value::Null);
        let tag = seen.tag.expect(path);
        assert_eq!(
            ask(&daemon, &get, &[], &Value::Null).tag.as_ref(),
            Some(&tag),
            "{path}"
        );
        let one = ask(&daemon, &put, &[("If-Match", &tag)], &change);
        assert_eq!(one.status, 200, "{path}: {}", one.body);
        let now = one.tag.expect(path);
        assert_ne!(now, tag, "{path}");
        assert_eq!(
            ask(&daemon, &get, &[], &Value::Null).tag.as_ref(),
            Some(&now),
            "{path}"
        );
        let shown = ask(&daemon, &get, &[], &Value::Null).body;
        let other = ask(&daemon, &put, &[("If-Match", &tag)], &again);
        assert_eq!(
            (other.status, &other.body["code"]),
            (412, &json!("changed")),
            "{path}"
        );
        assert_eq!(
            ask(&daemon, &get, &[], &Value::Null).body,
            shown,
            "{path}: the tag has changed"
        );
        // Invalid requests are rejected first.
        let wrong = ask(&daemon, &put, &[("If-Match", &tag)], &json!({"no": 1}));
        assert_eq!(wrong.status, 422, "{path}: {}", wrong.body);
        let delete = format!("DELETE {path}");
        let gone = ask(&daemon, &delete, &[("If-Match", &tag)], &Value::Null);
        assert_eq!(gone.status, 412, "{path}");
        // A list of tags, and any tag, match.
        let several = format!("{tag}, {now}");
        let done = ask(&daemon, &put, &[("If-Match", &several)], &change);
        assert_eq!(done.status, 200, "{path}");
        let done = ask(&daemon, &put, &[("If-Match", "*")], &change);
        assert_eq!(done.status, 200, "{path}");
    }
}

#[test]
fn pool_is_destroyed_only_with_its_current_tag() {
    let daemon = daemon("conditions-2");
    let seen = ask(&daemon, "GET /v1/pools/tank", &[], &Value::Null)
        .tag
        .unwrap();
    let other = [("If-Match", "\"00000000000000000000000000000000\"")];
    assert_eq!(
        ask(&daemon, "DELETE /v1/pools/tank", &other, &Value::Null).status,
        412
    );
    assert_eq!(
        ask(&daemon, "DELETE /v1/exports/e", &[], &Value::Null).status,
        204
    );
    let gone = ask(
        &daemon,
        "DELETE /v1/pools/tank",
        &[("If-Match", &seen)],
        &Value::Null,
    );
    assert_eq!(gone.status, 204, "{}", gone.body);
    let absent = ask(
        &daemon,
        "DELETE /v1/pools/tank",
        &[("If-Match", &seen)],
        &Value::Null,
    );
    assert_eq!(absent.status, 404);
}

#[test]
fn operations_accept_only_their_documented_headers() {
    let daemon = daemon("conditions-3");
    let document: Value = serde_json::from_str(&api::document_json()).unwrap();
    for route in ROUTES.iter().filter(|route| route.path.starts_with("/v1")) {
        let method = route.method.as_str().to_lowercase();
        let parameters = &document["paths"][route.path][&method]["parameters"];
        let named = |name: &str| {
            let mut all = parameters.as_array().into_iter().flatten();
            all.any(|parameter| parameter["name"] == name)
        };
        assert_eq!(
            named("If-Match"),
            route.operation.changes_tagged().is_some()
        );
        assert_eq!(named("Idempotency-Key"), route.operation.takes_key());
        let request = format!(
            "{} {}",
            route.method.as_str(),
            route.path.replace(['{', '}'], "")
        );
        for (header, value) in [("If-Match", "\"x\""), ("Idempotency-Key", "x")] {
            if named(header) {
                continue;
            }
            let refused = ask(&daemon, &request, &[(header, value)], &Value::Null);
            assert_eq!(refused.status, 422, "{request} {header}: {}", refused.body);
            let said = refused.body["message"].to_string();
            assert!(said.contains(header), "{request}: {said}");
        }
    }
}

#[test]
fn repeated_request_with_key_is_executed_once() {
    let daemon = daemon("conditions-4");
    let key = [("Idempotency-Key", "4f1c")];
    let first = ask(&daemon, "POST /v1/volumes", &key, &volume("once"));
    assert_eq!(first.status, 201);
    let again = ask(&daemon, "POST /v1/volumes", &key, &volume("once"));
    assert_eq!(
        (again.status, &again.body, &again.tag),
        (201, &first.body, &first.tag)
    );
    let plain = ask(&daemon, "POST /v1/volumes", &[], &volume("once"));
    assert_eq!((plain.status, &plain.body["code"]), (409, &json!("exists")));
    for (request, body) in [
        ("POST /v1/volumes", volume("other")),
        ("POST /v1/snapshots", volume("once")),
    ] {
        let other = ask(&daemon, request, &key, &body);
        assert_eq!(
            (other.status, &other.body["code"]),
            (422, &json!("key_reused"))
        );
    }
    assert_eq!(
        daemon.ask("GET", "/v1/volumes/tank/other", Value::Null).0,
        404
    );
    // Refused requests leave the key unused.
    let key = [("Idempotency-Key", "5a2d")];
    let refused = ask(&daemon, "POST /v1/volumes", &key, &volume("once"));
    assert_eq!(refused.status, 409);
    assert_eq!(
        ask(&daemon, "POST /v1/volumes", &key, &volume("late")).status,
        201
    );
}

#[test]
fn repeated_request_waits_for_the_one_in_progress() {
    let world: Arc<World> = Arc::default();
    let daemon = Daemon::start(&world);
    assert_eq!(daemon.ask("POST", "/v1/pools", pool()).0, 201);
    let key = [("Idempotency-Key", "same")];
    let begun = Barrier::new(4);
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        // Blocks all creations.
        let held = world.pools();
        let asking = || {
            begun.wait();
            ask(&daemon, "POST /v1/volumes", &key, &volume("v"))
        };
        let askers: Vec<_> = (0..3).map(|_| scope.spawn(asking)).collect();
        begun.wait();
        // On a busy machine some requests arrive later; they may wait or find the object, but must
        // be answered.
        std::thread::sleep(Duration::from_millis(200));
        assert!(askers.iter().all(|asker| !asker.is_finished()));
        drop(held);
        askers
            .into_iter()
            .map(|asker| asker.join().unwrap())
            .collect()
    });
    for answer in &answers {
        assert_eq!(answer.status, 201, "{}", answer.body);
        assert_eq!(answer.body, answers[0].body);
    }
}
