//! Notification targets: creation, validation, secrecy and delivery.

use crate::common::manager;
use crate::fake::World;
use crate::http::Daemon;
use api::v1::{ProblemCode, Severity, TargetCreate, TargetTo};
use daemon::ManagerConfig;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Enough time for any delivery.
const PATIENCE: Duration = Duration::from_secs(300);

fn webhook(name: &str, url: &str) -> TargetCreate {
    TargetCreate {
        name: name.to_owned(),
        severity: Severity::Warning,
        to: TargetTo::Webhook {
            url: api::Secret::new(url),
            secret: Some(api::Secret::new("between us")),
        },
        ca: None,
    }
}

/// A receiver that responds with these statuses in order, then with 204; and the requests it
/// received.
fn receiver(statuses: &'static [u16]) -> (String, mpsc::Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hidden", listener.local_addr().unwrap());
    let (give, take) = mpsc::channel();
    std::thread::spawn(move || {
        let mut statuses = statuses.iter();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut part = [0; 4096];
            let (head, body) = loop {
                let count = stream.read(&mut part).unwrap();
                request.extend(&part[..count]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let parts = text.split_once("\r\n\r\n");
                let whole = parts.filter(|(_, body)| serde_json::from_str::<Value>(body).is_ok());
                if let Some((head, body)) = whole {
                    break (head.to_owned(), body.to_owned());
                }
            };
            let status = statuses.next().copied().unwrap_or(204);
            write!(stream, "HTTP/1.1 {status} Said\r\n\r\n").unwrap();
            if give.send((head, body)).is_err() {
                return;
            }
        }
    });
    (url, take)
}

#[test]
fn secrets_are_stored_privately_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let world = Arc::new(World::default());
    let first = manager(&world, folder.path());
    let made = first
        .notifications
        .target_create(webhook("a", "https://a.example/hidden"))
        .unwrap();
    assert!(made.authenticated);
    assert_eq!(made.address, "https://a.example:443/...");
    let shown = serde_json::to_string(&first.notifications.target_list()).unwrap();
    assert!(
        !shown.contains("hidden") && !shown.contains("between us"),
        "{shown}"
    );
    let kept = folder.path().join("targets.json");
    let mode = std::fs::metadata(kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(first);
    let again = manager(&world, folder.path());
    assert_eq!(again.notifications.target_list().items.len(), 1);
    again.notifications.target_delete("a").unwrap();
    drop(again);
    assert_eq!(
        manager(&world, folder.path())
            .notifications
            .target_list()
            .items,
        []
    );
}

#[test]
fn invalid_target_is_refused_with_the_reason() {
    let daemon = Daemon::start(&Arc::default());
    let mail = |server: &str, security: &str, to: Value| {
        json!({"name": "m", "to": {"kind": "email", "server": server, "security": security,
            "from": "a@example.com", "to": to}})
    };
    let one = json!(["b@example.com"]);
    for (body, said) in [
        (
            json!({"name": "a b", "to": {"kind": "webhook", "url": "http://a/"}}),
            "is not a valid name",
        ),
        (
            json!({"name": "a", "to": {"kind": "webhook", "url": "gopher://a/"}}),
            "not a webhook URL",
        ),
        (
            json!({"name": "a", "to": {"kind": "webhook", "url": "http://a/", "secret": ""}}),
            "empty",
        ),
        (
            json!({"name": "a", "to": {"kind": "webhook", "url": "http://a/"}, "ca": "x"}),
            "no certificate",
        ),
        (
            json!({"name": "a", "to": {"kind": "carrier pigeon"}}),
            "unknown variant",
        ),
        (
            json!({"name": "a", "severity": "awful", "to": {"kind": "webhook", "url": "http://a/"}}),
            "unknown variant",
        ),
        (
            mail("mail.example.com", "plain", one.clone()),
            "be sent unencrypted",
        ),
        (
            mail("mail example", "tls", one.clone()),
            "not a mail server",
        ),
        (mail("mail.example.com", "tls", json!([])), "1 to 16"),
        (
            mail(
                "mail.example.com",
                "tls",
                json!(["b\r\nBcc: c@example.com"]),
            ),
            "not an e-mail address",
        ),
    ] {
        let (status, answer) = daemon.ask("POST", "/v1/targets", body.clone());
        assert_eq!(status, 422, "{body}: {answer}");
        assert!(
            answer["message"].as_str().unwrap().contains(said),
            "{body}: {answer}"
        );
    }
    let good = json!({"name": "a", "to": {"kind": "webhook", "url": "http://127.0.0.1:1/"}});
    assert_eq!(daemon.ask("POST", "/v1/targets", good.clone()).0, 201);
    assert_eq!(daemon.ask("POST", "/v1/targets", good).0, 409);
    for number in 1..16 {
        let more = json!({"name": format!("t{number}"), "to": {"kind": "webhook", "url": "http://127.0.0.1:1/"}});
        assert_eq!(daemon.ask("POST", "/v1/targets", more).0, 201);
    }
    let more = json!({"name": "more", "to": {"kind": "webhook", "url": "http://127.0.0.1:1/"}});
    assert_eq!(daemon.ask("POST", "/v1/targets", more).0, 429);
    let (status, answer) = daemon.ask("POST", "/v1/targets/a/test", Value::Null);
    assert_eq!((status, &answer["code"]), (500, &json!("io")));
    assert!(
        answer["message"]
            .as_str()
            .unwrap()
            .contains("cannot be reached"),
        "{answer}"
    );
    assert_eq!(daemon.ask("DELETE", "/v1/targets/a", Value::Null).0, 204);
    assert_eq!(daemon.ask("DELETE", "/v1/targets/a", Value::Null).0, 404);
}

#[test]
fn configured_target_is_deleted_in_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let state = daemon::StateDir::open(folder.path()).unwrap();
    let control = crate::fake::Fake::over(&Arc::default());
    let config = ManagerConfig {
        targets: vec![webhook("a", "https://a.example/")],
        ..ManagerConfig::default()
    };
    let manager = daemon::Manager::new(control, crate::common::FRONT_ENDS, state, config);
    manager.start(&[]).unwrap();
    assert!(manager.notifications.target_list().items[0].configured);
    let refused = manager.notifications.target_delete("a").unwrap_err();
    assert_eq!(refused.code, ProblemCode::Refused);
    let taken = manager
        .notifications
        .target_create(webhook("a", "https://b.example/"));
    assert_eq!(taken.unwrap_err().code, ProblemCode::Exists);
}

#[test]
fn events_are_delivered_signed_in_order_and_retried() {
    let world = Arc::new(World::default());
    let daemon = Daemon::start(&world);
    assert_eq!(daemon.ask("POST", "/v1/pools", crate::http::pool()).0, 201);
    // The first attempt is refused.
    let (url, received) = receiver(&[503]);
    let target = serde_json::to_value(webhook("a", &url)).unwrap();
    assert_eq!(daemon.ask("POST", "/v1/targets", target).0, 201);
    world.pools().get_mut("tank").unwrap().alter = Some(|pool| {
        pool.vdrives[0].drives[0].state = "out".to_owned();
    });
    let (_, refused) = received.recv_timeout(PATIENCE).unwrap();
    let (head, body) = received.recv_timeout(PATIENCE).unwrap();
    assert_eq!(refused, body);
    let taken: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(taken["event"]["code"], "leg_out");
    assert_eq!(taken["event"]["state"], "raised");
    assert!(head.starts_with("POST /hidden HTTP/1.1\r\n"), "{head}");
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"between us");
    let tag = ring::hmac::sign(&key, body.as_bytes());
    let digits: String = tag
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let line = format!("x-convect-signature: sha256={digits}");
    assert!(head.lines().any(|known| known == line), "{head}");
    world.pools().get_mut("tank").unwrap().alter = Some(|_| {});
    let (_, cleared) = received.recv_timeout(PATIENCE).unwrap();
    let cleared: Value = serde_json::from_str(&cleared).unwrap();
    assert_eq!(cleared["event"]["state"], "cleared");
    assert_eq!(cleared["event"]["of"], taken["event"]["number"]);
}
