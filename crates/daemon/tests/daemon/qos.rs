//! Quality of service by the interface: policies, checks, and alerts of promises that are not kept.

use crate::common::{World, manager, pool_request, volume_request};
use crate::fake::qos::attained;
use crate::http::{Daemon, pool};
use api::v1::{EventCode, ProblemCode};
use daemon::Manager;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn broken(manager: &Manager) -> Vec<String> {
    let alerts = manager.alert_list().items.into_iter();
    let broken = alerts.filter(|alert| alert.code == EventCode::PromiseUnmet);
    broken.map(|alert| alert.message).collect()
}

#[test]
fn promise_that_is_not_kept_for_a_minute_is_told_until_it_is_kept_for_five() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let manager = manager(&world, folder.path());
    manager
        .pool_create(pool_request("tank", &["a"], false))
        .unwrap();
    manager.volume_create(volume_request("tank", "v")).unwrap();
    let mut met = 0;
    let mut look = |up_s: u64, kept: bool| {
        met += if kept { 10 } else { 5 };
        *world.attained.lock().unwrap() = Some(attained(up_s * 10, met));
        manager.observe(Duration::from_secs(up_s), 1_000_000 + up_s);
        broken(&manager)
    };
    for up_s in 0..60 {
        assert_eq!(
            look(up_s, false),
            [] as [String; 0],
            "the minute is not over"
        );
    }
    let told = (60..80).map(|up_s| look(up_s, false)).last().unwrap();
    assert_eq!(told.len(), 1);
    assert!(
        told[0].contains("volume tank/v") && told[0].contains("mission-critical"),
        "{told:?}"
    );
    for up_s in 80..500 {
        let told = look(up_s, true);
        assert!(up_s > 360 || !told.is_empty(), "after {up_s} s");
    }
    assert_eq!(look(500, true), [] as [String; 0]);
}

#[test]
fn policies_and_checks_are_asked_for_by_http() {
    let world = Arc::new(World::default());
    let daemon = Daemon::start(&world);
    assert_eq!(daemon.ask("POST", "/v1/pools", pool()).0, 201);
    let get = |path: &str| daemon.ask("GET", path, json!(null)).1;
    let list = get("/v1/pools/tank/qos/policies");
    assert_eq!(list["items"][0]["name"], json!("mission-critical"));
    assert_eq!(list["items"][0]["built_in"], json!(true));
    let one = get("/v1/pools/tank/qos/policies/1");
    assert_eq!(one["max_latency_ns"], json!(10_000_000));
    assert_eq!(one.get("max_iops"), None);
    let check = get("/v1/pools/tank/qos/check?policy=mission-critical&volumes=2");
    assert_eq!(check["total_percent"], json!(75.0));
    assert_eq!(check["verdict"], json!("accepted"));
    let status = get("/v1/pools/tank/qos");
    assert_eq!(status["volumes"], json!([]));
    for (path, code) in [
        ("/v1/pools/tank/qos/policies/gold", ProblemCode::NotFound),
        ("/v1/pools/none/qos", ProblemCode::NotFound),
        ("/v1/pools/tank/qos/check?volumes=2", ProblemCode::Invalid),
        (
            "/v1/pools/tank/qos/check?policy=1&volumes=0",
            ProblemCode::Invalid,
        ),
        (
            "/v1/pools/tank/qos/check?policy=1&volumes=many",
            ProblemCode::Invalid,
        ),
        (
            "/v1/pools/tank/qos/check?policy=gold",
            ProblemCode::NotFound,
        ),
    ] {
        assert_eq!(get(path)["code"], json!(code), "{path}");
    }
}
