//! Quality-of-service policies: kept in the labels, refused where they cannot be kept, held to while volumes are used.

mod groups;

use crate::support::limits::{right, show};
use crate::support::{Answer, BLOCK, Client, Folder, MIB, engine, start_again, tiered, volume};
use block::{ErrorKind, IoBuf, Op, OpFlags, OpKind};
use engine::{
    Engine, ErrorCode, PolicyChoice, QosPolicy, QosPolicyChange, QosVerdict, Reaction,
    VolumeChange, VolumeStatus,
};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn policy(name: &str, min_iops: u64, max_iops: u64) -> QosPolicy {
    QosPolicy {
        id: 0,
        name: name.to_owned(),
        level: 2,
        min_iops,
        min_bandwidth: 0,
        max_iops,
        max_bandwidth: 0,
        burst_s: 0,
        max_latency_ns: 0,
        weight: 100,
        reaction: Reaction::Normal,
        fast_floor: 0,
        ram_percent: 0,
    }
}

fn give(
    engine: &Engine,
    name: &str,
    policy: &str,
    overcommit: bool,
) -> Result<VolumeStatus, ErrorCode> {
    let change = VolumeChange {
        policy: Some(PolicyChoice {
            policy: policy.to_owned(),
            overcommit,
            ..PolicyChoice::default()
        }),
        ..VolumeChange::default()
    };
    let changed = engine.volume_change("tank", name, &change);
    changed.map_err(|failed| failed.code)
}

fn policy_of(engine: &Engine, name: &str) -> Option<String> {
    show(engine, name).qos.map(|qos| qos.policy.name)
}

fn code<T>(result: Result<T, engine::EngineError>) -> ErrorCode {
    match result {
        Ok(_) => panic!("it was done"),
        Err(failed) => failed.code,
    }
}

#[test]
fn policies_outlive_an_engine_and_clones_inherit_them() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 2, 192, 256);
    let mut engine = engine(2);
    engine.pool_create(&spec).unwrap();
    let gold = engine
        .qos_policy_create("tank", &policy("gold", 100, 0))
        .unwrap();
    assert!(gold.id >= 100);
    let with = PolicyChoice {
        policy: "gold".to_owned(),
        ..PolicyChoice::default()
    };
    let made = engine.volume_create_with("tank", &volume("v", 64), &with);
    assert_eq!(made.unwrap().qos.unwrap().policy, gold);
    engine.volume_create("tank", &volume("w", 64)).unwrap();
    assert_eq!(policy_of(&engine, "w"), None);
    // By number, too.
    give(&engine, "w", "1", false).unwrap();
    engine
        .snapshot_create("tank", &["v".to_owned()], "s", 1)
        .unwrap();
    engine.snapshot_clone("tank", "v", "s", "clone").unwrap();
    let change = QosPolicyChange {
        min_iops: Some(200),
        ..QosPolicyChange::default()
    };
    let changed = engine.qos_policy_change("tank", "gold", &change).unwrap();
    assert_eq!(
        changed,
        QosPolicy {
            min_iops: 200,
            ..gold
        }
    );
    for hard in [false, true] {
        start_again(&mut engine, &spec, hard);
        assert_eq!(show(&engine, "v").qos.unwrap().policy, changed);
        assert_eq!(policy_of(&engine, "clone"), Some("gold".to_owned()));
        assert_eq!(policy_of(&engine, "w"), Some("mission-critical".to_owned()));
        assert_eq!(engine.qos_policies("tank").unwrap().len(), 6);
    }
    assert_eq!(
        code(engine.qos_policy_delete("tank", "gold")),
        ErrorCode::Busy
    );
    give(&engine, "v", "", false).unwrap();
    give(&engine, "clone", "", false).unwrap();
    engine.qos_policy_delete("tank", "gold").unwrap();
    start_again(&mut engine, &spec, false);
    assert_eq!(policy_of(&engine, "v"), None);
    // Its number is given to no other.
    let next = engine.qos_policy_create("tank", &policy("gold", 1, 0));
    assert_eq!(next.unwrap().id, changed.id + 1);
    right(&engine);
}

#[test]
fn policies_guarantee_no_more_of_the_fast_tier_than_there_is() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 1, 192, 256);
    let mut engine = engine(1);
    engine.pool_create(&spec).unwrap();
    for name in ["v", "w"] {
        engine.volume_create("tank", &volume(name, 64)).unwrap();
    }
    let room = engine.pool_status("tank").unwrap().fast_capacity / 16 * 15;
    let hints = QosPolicy {
        reaction: Reaction::Eager,
        fast_floor: room / 2 - 1,
        ram_percent: 20,
        ..policy("hot", 0, 0)
    };
    let made = engine.qos_policy_create("tank", &hints).unwrap();
    assert_eq!(made.fast_floor, (room / 2).next_multiple_of(4096));
    assert_eq!((made.reaction, made.ram_percent), (Reaction::Eager, 20));
    give(&engine, "v", "hot", false).unwrap();
    let floor = |bytes| QosPolicyChange {
        fast_floor: Some(bytes),
        ..QosPolicyChange::default()
    };
    let change = |bytes| engine.qos_policy_change("tank", "hot", &floor(bytes));
    assert_eq!(code(change(room * 2)), ErrorCode::Refused);
    assert_eq!(code(change(u64::MAX)), ErrorCode::Invalid);
    change(room / 3 * 2).unwrap();
    // Not two of them; by --overcommit they share what there is.
    assert_eq!(
        give(&engine, "w", "hot", false).unwrap_err(),
        ErrorCode::Refused
    );
    let with = PolicyChoice {
        policy: "hot".to_owned(),
        ..PolicyChoice::default()
    };
    let created = engine.volume_create_with("tank", &volume("x", 64), &with);
    assert_eq!(code(created), ErrorCode::Refused);
    change(room / 3).unwrap();
    give(&engine, "w", "hot", false).unwrap();
    start_again(&mut engine, &spec, true);
    let kept = show(&engine, "w").qos.unwrap().policy;
    assert_eq!((kept.reaction, kept.ram_percent), (Reaction::Eager, 20));
    assert_eq!(kept.fast_floor, (room / 3).next_multiple_of(4096));
    right(&engine);
}

#[test]
fn impossible_requests_are_refused_with_one_error() {
    let folder = Folder::new();
    let engine = engine(1);
    engine
        .pool_create(&tiered(&folder, "tank", 1, 192, 256))
        .unwrap();
    engine.volume_create("tank", &volume("v", 64)).unwrap();
    let create = |policy: &QosPolicy| engine.qos_policy_create("tank", policy);
    create(&policy("gold", 100, 0)).unwrap();
    assert_eq!(code(create(&policy("gold", 1, 0))), ErrorCode::Exists);
    assert_eq!(
        code(create(&policy("mission-critical", 1, 0))),
        ErrorCode::Exists
    );
    for wrong in [
        policy("", 1, 0),
        policy("less", 10, 5),
        policy("much", u64::MAX, 0),
        QosPolicy {
            level: 6,
            ..policy("level", 1, 0)
        },
        QosPolicy {
            weight: 0,
            ..policy("weight", 1, 0)
        },
        QosPolicy {
            burst_s: 1,
            ..policy("burst", 1, 0)
        },
    ] {
        assert_eq!(code(create(&wrong)), ErrorCode::Invalid, "{wrong:?}");
    }
    let change = QosPolicyChange {
        level: Some(9),
        ..QosPolicyChange::default()
    };
    let changed = |name: &str| engine.qos_policy_change("tank", name, &change);
    assert_eq!(code(changed("gold")), ErrorCode::Invalid);
    assert_eq!(code(changed("1")), ErrorCode::Invalid, "built in");
    assert_eq!(code(changed("none")), ErrorCode::NotFound);
    let delete = |name: &str| engine.qos_policy_delete("tank", name);
    assert_eq!(code(delete("non-critical")), ErrorCode::Invalid);
    assert_eq!(code(delete("silver")), ErrorCode::NotFound);
    assert_eq!(
        give(&engine, "v", "silver", false),
        Err(ErrorCode::NotFound)
    );
    assert_eq!(
        code(engine.qos_check("tank", Some(("silver", 1)))),
        ErrorCode::NotFound
    );
    for number in 1..64 {
        create(&policy(&format!("p{number}"), 1, 0)).unwrap();
    }
    assert_eq!(code(create(&policy("last", 1, 0))), ErrorCode::Invalid);
}

#[test]
fn more_than_the_pool_has_shown_is_refused_unless_it_is_meant() {
    let folder = Folder::new();
    let engine = engine(1);
    engine
        .pool_create(&tiered(&folder, "tank", 1, 192, 256))
        .unwrap();
    engine.volume_create("tank", &volume("v", 64)).unwrap();
    engine.volume_create("tank", &volume("w", 64)).unwrap();
    let check = engine.qos_check("tank", None).unwrap();
    assert_eq!(
        (check.verdict, check.capacity_iops),
        (QosVerdict::Accepted, None)
    );
    let check = engine.qos_check("tank", Some(("5", 3))).unwrap();
    assert_eq!(
        (check.verdict, check.claims.len()),
        (QosVerdict::Warning, 3)
    );
    engine
        .qos_policy_create("tank", &policy("all", 1_000_000_000, 0))
        .unwrap();
    engine
        .qos_policy_create("tank", &policy("little", 1, 0))
        .unwrap();
    give(&engine, "v", "little", false).unwrap();
    let clients = ["v", "w"].map(|name| Client::open(&engine, "tank", name));
    let check = loop {
        let ends = clients.each_ref().map(|client| submit(client, 100));
        for ends in &ends {
            (0..100).for_each(|_| ends.recv_timeout(LONG).unwrap().result.unwrap());
        }
        let check = engine.qos_check("tank", None).unwrap();
        if check.capacity_iops.is_some() {
            break check;
        }
    };
    assert_eq!(check.verdict, QosVerdict::Accepted);
    assert!(
        check.message.contains("of 4 KiB a second"),
        "{}",
        check.message
    );
    assert_eq!(give(&engine, "w", "all", false), Err(ErrorCode::Refused));
    assert_eq!(policy_of(&engine, "w"), None);
    let with = PolicyChoice {
        policy: "all".to_owned(),
        ..PolicyChoice::default()
    };
    let made = engine.volume_create_with("tank", &volume("x", 64), &with);
    assert_eq!(code(made), ErrorCode::Refused);
    let check = engine.qos_check("tank", Some(("all", 1))).unwrap();
    assert_eq!(check.verdict, QosVerdict::Refused);
    // Space is part of the check: floors of planned volumes count.
    let roomy = QosPolicy {
        fast_floor: 96 << 20,
        ..policy("roomy", 0, 0)
    };
    engine.qos_policy_create("tank", &roomy).unwrap();
    let space = |count| {
        let check = engine.qos_check("tank", Some(("roomy", count))).unwrap();
        assert!(check.fast_limit < 192 << 20, "{}", check.fast_limit);
        (check.fast_guaranteed >> 20, check.verdict, check.message)
    };
    let (guaranteed, verdict, _) = space(1);
    assert_eq!((guaranteed, verdict), (96, QosVerdict::Accepted));
    let (guaranteed, verdict, message) = space(2);
    assert_eq!((guaranteed, verdict), (192, QosVerdict::Refused));
    assert!(message.contains("192 MiB of the fast tier"), "{message}");
    give(&engine, "w", "all", true).unwrap();
    // What is too much stays possible to lower, and to leave as it is.
    give(&engine, "v", "little", false).unwrap();
    let less = QosPolicyChange {
        min_iops: Some(500_000_000),
        ..QosPolicyChange::default()
    };
    engine.qos_policy_change("tank", "all", &less).unwrap();
    let more = QosPolicyChange {
        min_iops: Some(600_000_000),
        ..QosPolicyChange::default()
    };
    let raised = engine.qos_policy_change("tank", "all", &more);
    assert_eq!(code(raised), ErrorCode::Refused);
}

/// Submits a number of concurrent writes of a block each; returns what sends their ends.
fn submit(client: &Client, count: u64) -> std::sync::mpsc::Receiver<block::Completion> {
    let (give, take) = channel();
    let done = Arc::new(Answer(Mutex::new(give)));
    for tag in 0..count {
        let op = Op {
            tag,
            kind: OpKind::Write,
            flags: OpFlags::default(),
            offset: tag * BLOCK,
            len: BLOCK,
            buf: IoBuf::from_bytes(vec![tag as u8; BLOCK as usize].into()),
            done: done.clone(),
        };
        client.0.submit(op).expect("few operations are in flight");
    }
    take
}

fn is_done_or_gone(result: &Result<(), block::IoError>) -> bool {
    match result {
        Ok(()) => true,
        Err(failed) => failed.kind == ErrorKind::Gone,
    }
}

const LONG: Duration = Duration::from_secs(300);

#[test]
fn held_operations_end_in_order_and_changes_take_effect_at_once() {
    let folder = Folder::new();
    let engine = engine(2);
    engine
        .pool_create(&tiered(&folder, "tank", 2, 192, 256))
        .unwrap();
    engine.volume_create("tank", &volume("v", 64)).unwrap();
    engine.volume_create("tank", &volume("w", 64)).unwrap();
    engine
        .qos_policy_create("tank", &policy("slow", 0, 1000))
        .unwrap();
    give(&engine, "v", "slow", false).unwrap();
    let (slow, other) = (
        Client::open(&engine, "tank", "v"),
        Client::open(&engine, "tank", "w"),
    );
    let ends = submit(&slow, 300);
    // A neighbour is not held for that, nor a flush of the volume itself.
    for block in 0..64 {
        other.write(block * BLOCK, &[9; BLOCK as usize]).unwrap();
    }
    slow.flush().unwrap();
    for _ in 0..300 {
        ends.recv_timeout(LONG).unwrap().result.unwrap();
    }
    for block in [0, 100, 299] {
        let read = slow.read(block * BLOCK, BLOCK as usize).unwrap();
        assert_eq!(read, vec![block as u8; BLOCK as usize]);
    }
    // Long operations are cut, and each part is held for itself.
    let bytes: Vec<u8> = (0..MIB as u32).map(|at| (at / 4096) as u8).collect();
    slow.write(8 * MIB, &bytes).unwrap();
    assert_eq!(slow.read(8 * MIB, MIB as usize).unwrap(), bytes);
    crate::support::wait_status(&engine, "tank", |_| {
        let qos = show(&engine, "v").qos.unwrap();
        qos.operations >= 305 && qos.held > 200
    });
    // Without its policy, held operations proceed.
    let ends = submit(&slow, 100);
    give(&engine, "v", "", false).unwrap();
    for _ in 0..100 {
        ends.recv_timeout(LONG).unwrap().result.unwrap();
    }
    right(&engine);
}

#[test]
fn a_pool_closes_and_a_volume_goes_while_operations_are_held() {
    let folder = Folder::new();
    let engine = engine(1);
    engine
        .pool_create(&tiered(&folder, "tank", 1, 192, 256))
        .unwrap();
    engine
        .qos_policy_create("tank", &policy("slow", 0, 20))
        .unwrap();
    for name in ["v", "w"] {
        engine.volume_create("tank", &volume(name, 64)).unwrap();
        give(&engine, name, "slow", false).unwrap();
    }
    let ends = submit(&Client::open(&engine, "tank", "v"), 100);
    let job = engine.volume_delete("tank", "v").unwrap();
    for _ in 0..100 {
        let result = ends.recv_timeout(LONG).unwrap().result;
        assert!(is_done_or_gone(&result), "{result:?}");
    }
    crate::support::wait_job(&engine, job);
    let ends = submit(&Client::open(&engine, "tank", "w"), 100);
    engine.pool_export("tank").unwrap();
    for _ in 0..100 {
        let result = ends.recv_timeout(LONG).unwrap().result;
        assert!(is_done_or_gone(&result), "{result:?}");
    }
}
