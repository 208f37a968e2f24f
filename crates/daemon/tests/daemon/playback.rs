//! Playback of maps: recording intervals, and the frames returned.

use crate::common::*;
use api::v1::{MapFrames, ProblemCode};
use daemon::Manager;
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

/// A daemon with one pool of these volumes of 1 MiB.
fn started(volumes: &[&str]) -> (Arc<World>, tempfile::TempDir, Manager) {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let manager = manager(&world, folder.path());
    manager
        .pools
        .create(pool_request("tank", &["ram:a"], false))
        .unwrap();
    for volume in volumes {
        manager
            .volumes
            .create(volume_request("tank", volume))
            .unwrap();
    }
    (world, folder, manager)
}

fn looks(world: &World) -> u64 {
    world.pools()["tank"].looks
}

/// Adds reads of each of these volumes.
fn read(world: &World, volumes: &[&str]) {
    let mut did = world.did.lock().unwrap();
    for volume in volumes {
        did.entry((*volume).to_owned()).or_default().0.reads += 1;
    }
}

fn told(manager: &Manager, from_s: u64, to_s: u64) -> MapFrames {
    manager
        .playback
        .frames("tank", "v", Some(from_s), Some(to_s), 5000)
        .unwrap()
}

#[test]
fn recorded_map_is_played_back_with_changes() {
    let (world, _folder, manager) = started(&["v"]);
    assert_eq!(told(&manager, 0, 5000).frames, []);
    manager.playback.record(1000, LONG);
    world.pools().get_mut("tank").unwrap().fast = 1;
    read(&world, &["v"]);
    manager.playback.record(1010, LONG);
    let all = told(&manager, 0, 5000);
    assert_eq!((all.cells, all.size, all.last_s), (1, 1 << 20, 1010));
    assert_eq!(all.volume, "tank/v");
    let frames: Vec<(u64, Option<&str>)> = all
        .frames
        .iter()
        .map(|frame| (frame.at_s, frame.all.as_deref()))
        .collect();
    assert_eq!(frames, [(1000, Some("0000")), (1010, Some("0f00"))]);
    let later = told(&manager, 1010, 1500).frames;
    assert_eq!(later[0].all.as_deref(), Some("0f00"));
    assert_eq!(later.len(), 1);
    assert_eq!(told(&manager, 1000, 1009).frames.len(), 1);
    // Nothing is known before the first recording.
    assert_eq!(told(&manager, 0, 999).frames, []);
    for (volume, from_s, code) in [
        ("w", 0, ProblemCode::NotFound),
        ("v", 6000, ProblemCode::Invalid),
    ] {
        let problem = manager
            .playback
            .frames("tank", volume, Some(from_s), None, 5000)
            .unwrap_err();
        assert_eq!(problem.code, code);
    }
}

#[test]
fn idle_volume_is_rarely_recorded() {
    let (world, _folder, manager) = started(&["v", "w"]);
    manager.playback.record(1000, LONG);
    assert_eq!(looks(&world), 2);
    for at_s in (1001..1290).step_by(3) {
        manager.playback.record(at_s, LONG);
    }
    assert_eq!(looks(&world), 2);
    manager.playback.record(1300, LONG);
    assert_eq!(looks(&world), 4);
    // All are active: each is recorded every ten seconds.
    for second in 0..40 {
        read(&world, &["v", "w"]);
        manager.playback.record(1310 + second, LONG);
    }
    assert_eq!(looks(&world), 4 + 2 * 4);
}

#[test]
fn recording_turn_is_limited_and_resumed() {
    let (world, _folder, manager) = started(&["u", "v", "w"]);
    for (at_s, looked) in [(1000, 1), (1001, 2), (1002, 3), (1003, 3), (1009, 3)] {
        manager.playback.record(at_s, Duration::ZERO);
        assert_eq!(looks(&world), looked, "{at_s}");
    }
}

#[test]
fn recreated_volume_has_no_recording_and_deleted_one_is_dropped() {
    let (_world, _folder, manager) = started(&["v"]);
    manager.playback.record(1000, LONG);
    assert_eq!(told(&manager, 0, 5000).frames.len(), 1);
    manager.volumes.delete("tank", "v", false).unwrap();
    manager.playback.record(1010, LONG);
    manager.volumes.create(volume_request("tank", "v")).unwrap();
    assert_eq!(told(&manager, 0, 5000).frames, []);
}
