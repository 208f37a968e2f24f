//! QoS in the API: policies, checks, and alerts of missed guarantees.

use crate::common::{World, manager, pool_request, volume_request};
use crate::fake::qos::{attained, group};
use crate::http::{Daemon, pool};
use api::v1::{EventCode, ProblemCode, QosBottleneck};
use daemon::{Format, Manager};
use engine::VolumeQos;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn broken(manager: &Manager) -> Vec<String> {
    let alerts = manager.notifications.alert_list().items.into_iter();
    let broken = alerts.filter(|alert| alert.code == EventCode::PromiseUnmet);
    broken.map(|alert| alert.message).collect()
}

#[test]
fn missed_guarantee_is_alerted_until_met_for_five_minutes() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let manager = manager(&world, folder.path());
    manager
        .pools
        .create(pool_request("tank", &["a"], false))
        .unwrap();
    manager.volumes.create(volume_request("tank", "v")).unwrap();
    let mut met = 0;
    let mut look = |up_s: u64, kept: bool| {
        met += if kept { 10 } else { 5 };
        *world.attained.lock().unwrap() = Some(attained(up_s * 10, met));
        manager
            .observer
            .observe(Duration::from_secs(up_s), 1_000_000 + up_s);
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
    assert!(
        told[0].contains("waiting for shard time while scan (63 %) were served"),
        "{told:?}"
    );
    let shown = manager.volumes.show("tank", "v").unwrap().qos;
    assert_eq!(
        shown.and_then(|qos| qos.bottleneck),
        None,
        "the policy was removed"
    );
    for up_s in 80..500 {
        let told = look(up_s, true);
        assert!(up_s > 360 || !told.is_empty(), "after {up_s} s");
    }
    assert_eq!(look(500, true), [] as [String; 0]);
}

#[test]
fn group_is_alerted_instead_of_its_volumes() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let manager = manager(&world, folder.path());
    manager
        .pools
        .create(pool_request("tank", &["a"], false))
        .unwrap();
    manager
        .volumes
        .create(volume_request("tank", "ledger"))
        .unwrap();
    for up_s in 0..80 {
        let mut group = group(None);
        let together = VolumeQos {
            windows: up_s * 10,
            met: up_s * 5,
            waited_ns: up_s * 1_000_000_000,
            ..group.qos.unwrap()
        };
        *world.attained.lock().unwrap() = Some(together.clone());
        group.qos = Some(together);
        *world.groups.lock().unwrap() = vec![group];
        manager
            .observer
            .observe(Duration::from_secs(up_s), 1_000_000 + up_s);
    }
    let told = broken(&manager);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("group tank/accounting"), "{told:?}");
    let shown = manager.qos.group_show("tank", "accounting").unwrap().qos;
    let shown = shown.unwrap();
    assert_eq!(shown.bottleneck, Some(QosBottleneck::ShardTime));
    assert_eq!(shown.held_for[0].share_percent, 63);
    let times = (Some(1_000_001), Some(1_000_080), Some(1));
    let policy = manager
        .history
        .query("policy/tank/mission-critical", &[], times, 1_000_080);
    let policy = policy.unwrap();
    let last = |name: &str| {
        let mut series = policy.series.iter();
        let found = series.find(|series| series.name == name).unwrap();
        found.values.iter().rev().find_map(|value| *value)
    };
    assert_eq!(last("promised_iops"), Some(75_000.0));
    assert_eq!((last("windows"), last("met")), (Some(10.0), Some(0.5)));
    let metrics = manager.metrics.gather(Format::Prometheus).unwrap();
    assert!(metrics.contains("convect_group_qos_volumes{pool=\"tank\",group=\"accounting\"} 1"));
    assert!(
        metrics.contains(
            "convect_group_qos_windows_met_total{pool=\"tank\",group=\"accounting\"} 395"
        )
    );
    assert!(!metrics.contains("convect_volume_qos_windows_met_total{"));
}

#[test]
fn groups_over_http() {
    let world = Arc::new(World::default());
    let daemon = Daemon::start(&world);
    assert_eq!(daemon.ask("POST", "/v1/pools", pool()).0, 201);
    let groups = "/v1/pools/tank/qos/groups";
    let list = daemon.ask("GET", groups, json!(null)).1;
    assert_eq!(list["items"][0]["volumes"], json!(["ledger"]));
    assert_eq!(list["items"][0]["qos"]["group"], json!("accounting"));
    let one = format!("{groups}/accounting");
    let shown = daemon.ask("GET", &one, json!(null)).1;
    assert_eq!(shown, list["items"][0]);
    let made = daemon.ask("POST", groups, json!({"name": "vdi", "policy": "5"}));
    assert_eq!((made.0, &made.1["name"]), (201, &json!("vdi")));
    let other = format!("{groups}/vdi");
    for (method, path, body, code) in [
        ("GET", other.as_str(), json!(null), ProblemCode::NotFound),
        (
            "PUT",
            one.as_str(),
            json!({"policy": "1"}),
            ProblemCode::Refused,
        ),
        ("DELETE", one.as_str(), json!(null), ProblemCode::Busy),
        ("POST", groups, json!({"name": "vdi"}), ProblemCode::Invalid),
        ("PUT", one.as_str(), json!({}), ProblemCode::Invalid),
        (
            "GET",
            "/v1/pools/none/qos/groups",
            json!(null),
            ProblemCode::NotFound,
        ),
    ] {
        let answer = daemon.ask(method, path, body).1;
        assert_eq!(answer["code"], json!(code), "{method} {path}: {answer}");
    }
}

#[test]
fn policies_and_checks_over_http() {
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
    let space = (&check["fast_guaranteed"], &check["fast_limit"]);
    assert_eq!(space, (&json!(3_u64 << 30), &json!(15_u64 << 30)));
    assert_eq!(check["verdict"], json!("accepted"));
    assert_eq!(check["tiers"][0]["tier"], json!("slow"));
    assert_eq!(check.get("needs_fast"), None, "a single tier");
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
