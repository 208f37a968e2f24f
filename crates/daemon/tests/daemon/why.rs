//! Why a volume is slow, with the real engine on a modelled disk: the first finding is the cause that
//! the test brought about.

use crate::common::{World, manager, pool_request, volume_request};
use crate::kept::{BEGIN_S, SIZE, Site, does};
use api::v1::{ProblemCode, QosPolicyCreate, VolumeChange, Why, WhyCause, WhyVerdict};
use block::OpKind;
use std::sync::Arc;

/// The answer for the last seconds.
fn why(site: &Site, seconds: u64) -> Why {
    let now_s = BEGIN_S + site.second + 1;
    let times = (Some(now_s - seconds), Some(now_s));
    site.manager.why.volume("tank", "v", times, now_s).unwrap()
}

#[track_caller]
fn first(why: &Why, cause: WhyCause) {
    assert_eq!(why.verdict, WhyVerdict::Slow, "{why:#?}");
    assert_eq!(why.findings[0].cause, cause, "{why:#?}");
    assert!(why.findings[0].share_percent.unwrap() > 50.0, "{why:#?}");
}

#[test]
fn limit_of_a_policy_is_named_now_and_later() {
    let mut site = Site::start();
    let policy = r#"{"name":"bronze","max_iops":100}"#;
    let policy: QosPolicyCreate = serde_json::from_str(policy).unwrap();
    site.manager.qos.policy_create("tank", policy).unwrap();
    let change = VolumeChange {
        policy: Some("bronze".to_owned()),
        ..VolumeChange::default()
    };
    site.manager.volumes.change("tank", "v", change).unwrap();
    // Two seconds, as the waits of a policy count from the first second with it.
    site.look();
    does("one", OpKind::Write, 0);
    site.look();
    (0..200).for_each(|at| does("one", OpKind::Write, at % 64 * SIZE));
    site.look();
    let now = why(&site, 1);
    first(&now, WhyCause::PolicyLimit);
    assert!(now.live);
    assert!(now.findings[0].title.contains("bronze"), "{now:#?}");
    let raise = now.findings[0].actions[0].command.as_deref();
    assert_eq!(
        raise,
        Some("convect qos policy set tank/bronze --max-iops 200")
    );
    // An hour later the wait is still known, and the policy's name is not.
    let at_s = BEGIN_S + site.second;
    let times = (Some(at_s), Some(at_s + 1));
    let later = site.manager.why.volume("tank", "v", times, at_s + 3000);
    let later = later.unwrap();
    first(&later, WhyCause::PolicyLimit);
    assert!(
        !later.live && later.headline.contains("was slow"),
        "{later:#?}"
    );
    assert!(!later.missing.is_empty());
}

#[test]
fn misses_are_named_where_data_is_on_the_disk() {
    let mut site = Site::start();
    (0..400).for_each(|at| does("one", OpKind::Write, at * SIZE));
    site.look();
    site.manager.pools.hold_promotion("tank", true).unwrap();
    site.manager.pools.cool("tank").unwrap();
    site.look();
    // In no order that read-ahead would follow.
    (0..60).for_each(|at| does("two", OpKind::Read, at * 173 % 400 * SIZE));
    site.look();
    let now = why(&site, 1);
    first(&now, WhyCause::SlowTierReads);
    assert!(
        now.findings[0].evidence[0].contains("reads by tier: slow"),
        "{now:#?}"
    );
}

#[test]
fn unknown_volumes_and_times_are_refused_and_new_volumes_cannot_be_judged() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let manager = manager(&world, folder.path());
    let pool = pool_request("tank", &["a"], false);
    manager.pools.create(pool).unwrap();
    manager.volumes.create(volume_request("tank", "v")).unwrap();
    let ask = |pool: &str, volume: &str, times| manager.why.volume(pool, volume, times, BEGIN_S);
    let none = (None, None);
    assert_eq!(
        ask("tank", "w", none).unwrap_err().code,
        ProblemCode::NotFound
    );
    assert_eq!(
        ask("pond", "v", none).unwrap_err().code,
        ProblemCode::NotFound
    );
    let future = (Some(BEGIN_S + 10), Some(BEGIN_S + 20));
    assert_eq!(
        ask("tank", "v", future).unwrap_err().code,
        ProblemCode::Invalid
    );
    let why = ask("tank", "v", none).unwrap();
    assert_eq!(why.verdict, WhyVerdict::Unknown);
    assert_eq!((why.from_s, why.to_s), (BEGIN_S - 300, BEGIN_S));
    assert!(
        why.headline.contains("nothing is recorded"),
        "{}",
        why.headline
    );
}
