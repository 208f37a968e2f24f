//! Groups of volumes that share a policy.

use super::*;
use engine::{GroupChoice, QosGroup};

fn choice(name: &str, policy: &str) -> GroupChoice {
    GroupChoice {
        name: name.to_owned(),
        policy: policy.to_owned(),
        overcommit: false,
    }
}

fn join(engine: &Engine, volume: &str, group: &str) -> Result<VolumeStatus, ErrorCode> {
    let change = VolumeChange {
        policy: Some(PolicyChoice {
            group: group.to_owned(),
            ..PolicyChoice::default()
        }),
        ..VolumeChange::default()
    };
    let changed = engine.volume_change("tank", volume, &change);
    changed.map_err(|failed| failed.code)
}

fn group_of(engine: &Engine, name: &str) -> Option<String> {
    show(engine, name).qos.and_then(|qos| qos.group)
}

fn only(engine: &Engine) -> QosGroup {
    let groups = engine.qos_groups("tank").unwrap();
    assert_eq!(groups.len(), 1);
    groups[0].clone()
}

#[test]
fn groups_outlive_an_engine_and_clones_inherit_them() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 2, 192, 256);
    let mut engine = engine(2);
    engine.pool_create(&spec).unwrap();
    engine
        .qos_policy_create("tank", &policy("gold", 100, 0))
        .unwrap();
    let made = engine.qos_group_create("tank", &choice("accounting", "gold"));
    let made = made.unwrap();
    assert_eq!(made.volumes, [] as [String; 0]);
    assert_eq!(made.qos.unwrap().policy.name, "gold");
    let with = PolicyChoice {
        group: "accounting".to_owned(),
        ..PolicyChoice::default()
    };
    let volume_v = engine.volume_create_with("tank", &volume("v", 64), &with);
    let volume_v = volume_v.unwrap();
    let ids = engine.volume_create("tank", &volume("w", 64)).unwrap().id;
    assert_eq!(ids, volume_v.id + 1);
    give(&engine, "w", "1", false).unwrap();
    assert_eq!(group_of(&engine, "w"), None);
    join(&engine, "w", "accounting").unwrap();
    engine
        .snapshot_create("tank", &["v".to_owned()], "s", 1)
        .unwrap();
    engine.snapshot_clone("tank", "v", "s", "clone").unwrap();
    for hard in [false, true] {
        start_again(&mut engine, &spec, hard);
        assert_eq!(only(&engine).volumes, ["v", "w", "clone"]);
        for name in ["v", "w", "clone"] {
            assert_eq!(group_of(&engine, name), Some("accounting".to_owned()));
            assert_eq!(policy_of(&engine, name), Some("gold".to_owned()));
        }
    }
    // Another policy for all of them, and one of its own for one.
    let changed = engine.qos_group_change("tank", &choice("accounting", "5"));
    assert_eq!(changed.unwrap().qos.unwrap().policy.id, 5);
    give(&engine, "v", "gold", false).unwrap();
    assert_eq!(group_of(&engine, "v"), None);
    assert_eq!(policy_of(&engine, "v"), Some("gold".to_owned()));
    assert_eq!(
        policy_of(&engine, "clone"),
        Some("non-critical-low".to_owned())
    );
    join(&engine, "w", "").unwrap();
    assert_eq!(policy_of(&engine, "w"), None);
    join(&engine, "clone", "").unwrap();
    engine.qos_group_delete("tank", "accounting").unwrap();
    start_again(&mut engine, &spec, false);
    assert_eq!(engine.qos_groups("tank").unwrap(), []);
    right(&engine);
}

#[test]
fn minimum_of_a_group_is_promised_once_whatever_its_volumes() {
    let folder = Folder::new();
    let engine = engine(1);
    engine
        .pool_create(&tiered(&folder, "tank", 1, 192, 256))
        .unwrap();
    engine
        .qos_group_create("tank", &choice("accounting", "1"))
        .unwrap();
    for name in ["v", "w", "x"] {
        engine.volume_create("tank", &volume(name, 64)).unwrap();
        join(&engine, name, "accounting").unwrap();
    }
    give(&engine, "x", "2", false).unwrap();
    let check = engine.qos_check("tank", None).unwrap();
    let claims = check.claims.iter();
    let claims: Vec<_> = claims
        .map(|claim| (claim.volume.as_str(), claim.group, claim.policy.id))
        .collect();
    assert_eq!(claims, [("accounting", true, 1), ("x", false, 2)]);
}

#[test]
fn maximum_of_a_group_holds_its_volumes_together() {
    let folder = Folder::new();
    let engine = engine(2);
    engine
        .pool_create(&tiered(&folder, "tank", 2, 192, 256))
        .unwrap();
    engine
        .qos_policy_create("tank", &policy("slow", 0, 1000))
        .unwrap();
    engine
        .qos_group_create("tank", &choice("desktops", "slow"))
        .unwrap();
    for name in ["v", "w"] {
        engine.volume_create("tank", &volume(name, 64)).unwrap();
        join(&engine, name, "desktops").unwrap();
    }
    let clients = ["v", "w"].map(|name| Client::open(&engine, "tank", name));
    let ends = clients.each_ref().map(|client| submit(client, 150));
    // One leaves while its operations are held: they continue immediately, and the other's are held only for itself.
    join(&engine, "w", "").unwrap();
    for ends in &ends {
        (0..150).for_each(|_| ends.recv_timeout(LONG).unwrap().result.unwrap());
    }
    for client in &clients {
        let read = client.read(149 * BLOCK, BLOCK as usize).unwrap();
        assert_eq!(read, vec![149; BLOCK as usize]);
    }
    crate::support::wait_status(&engine, "tank", |_| {
        let of = only(&engine).qos.unwrap();
        let volume = show(&engine, "v").qos.unwrap();
        of.operations >= 150
            && of.held > 50
            && (1..=of.held_ns).contains(&of.own_ns)
            && volume.operations >= of.operations
    });
    right(&engine);
}

#[test]
fn impossible_requests_for_groups_are_refused_with_one_error() {
    let folder = Folder::new();
    let engine = engine(1);
    engine
        .pool_create(&tiered(&folder, "tank", 1, 192, 256))
        .unwrap();
    engine.volume_create("tank", &volume("v", 64)).unwrap();
    engine
        .qos_policy_create("tank", &policy("gold", 100, 0))
        .unwrap();
    let create = |name: &str, policy: &str| engine.qos_group_create("tank", &choice(name, policy));
    create("accounting", "gold").unwrap();
    for (name, policy, wrong) in [
        ("accounting", "gold", ErrorCode::Exists),
        ("desktops", "silver", ErrorCode::NotFound),
        ("none", "gold", ErrorCode::Invalid),
        ("", "gold", ErrorCode::Invalid),
        ("a/b", "gold", ErrorCode::Invalid),
        ("7up", "gold", ErrorCode::Invalid),
    ] {
        assert_eq!(code(create(name, policy)), wrong, "{name} {policy}");
    }
    let change = |name: &str, policy: &str| engine.qos_group_change("tank", &choice(name, policy));
    assert_eq!(code(change("desktops", "gold")), ErrorCode::NotFound);
    assert_eq!(code(change("accounting", "silver")), ErrorCode::NotFound);
    assert_eq!(join(&engine, "v", "desktops"), Err(ErrorCode::NotFound));
    let both = VolumeChange {
        policy: Some(PolicyChoice {
            policy: "gold".to_owned(),
            group: "accounting".to_owned(),
            overcommit: false,
        }),
        ..VolumeChange::default()
    };
    let changed = engine.volume_change("tank", "v", &both);
    assert_eq!(code(changed), ErrorCode::Invalid);
    join(&engine, "v", "accounting").unwrap();
    let delete = |name: &str| engine.qos_group_delete("tank", name);
    assert_eq!(code(delete("desktops")), ErrorCode::NotFound);
    assert_eq!(code(delete("accounting")), ErrorCode::Busy);
    assert_eq!(
        code(engine.qos_policy_delete("tank", "gold")),
        ErrorCode::Busy
    );
    for number in 1..256 {
        create(&format!("g{number}"), "5").unwrap();
    }
    assert_eq!(code(create("last", "5")), ErrorCode::Invalid);
}
