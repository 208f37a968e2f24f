//! Mirrors whose members go away, return and are replaced.

use crate::support::memory::attached;
use crate::support::{
    Client, Folder, MIB, Random, engine, pattern, pool, vdrive, volume, wait_job, wait_status,
};
use block::DriveIoKind;
use engine::{Engine, ErrorCode, LayoutSpec, Tier};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const CHUNKS: u64 = 64;

/// A pool over the mirror of files `a` and `b`, with `CHUNKS` MiB written and flushed.
fn mirrored(folder: &Folder) -> (Engine, Client) {
    let engine = engine(2);
    let members = [folder.drive("a", 240), folder.drive("b", 240)];
    let spec = pool(
        "p",
        2,
        vec![vdrive(Tier::Fast, LayoutSpec::Mirror, &members)],
    );
    engine.pool_create(&spec).unwrap();
    engine.volume_create("p", &volume("v", 128)).unwrap();
    let client = Client::open(&engine, "p", "v");
    (0..CHUNKS).for_each(|chunk| put(&client, chunk, 0));
    client.flush().unwrap();
    (engine, client)
}

fn content(chunk: u64, version: u64) -> Vec<u8> {
    pattern(chunk + 1000 * version + 1, MIB as usize)
}

fn put(client: &Client, chunk: u64, version: u64) {
    client.write(chunk * MIB, &content(chunk, version)).unwrap();
}

fn has(client: &Client, chunk: u64, version: u64) {
    let found = client.read(chunk * MIB, MIB as usize).unwrap();
    assert!(found == content(chunk, version), "chunk {chunk}");
}

fn drive_state(engine: &Engine, drive: usize) -> String {
    engine.pool_status("p").unwrap().vdrives[0].drives[drive]
        .state
        .clone()
}

fn repaired(engine: &Engine) -> u64 {
    let status = engine.pool_status("p").unwrap();
    let drives = status.vdrives[0].drives.iter();
    drives.map(|drive| drive.repaired).sum()
}

/// Everything is on `member` alone: the other one is taken out, and nothing has to be repaired.
fn stands_alone(engine: &Engine, folder: &Folder, other: &str, version: impl Fn(u64) -> u64) {
    engine.drive_offline("p", &folder.existing(other)).unwrap();
    let client = Client::open(engine, "p", "v");
    (0..CHUNKS).for_each(|chunk| has(&client, chunk, version(chunk)));
    assert_eq!(repaired(engine), 0);
}

fn import(
    folder: &Folder,
    names: &[&str],
    degraded: bool,
) -> (Engine, Result<(), engine::EngineError>) {
    let engine = engine(2);
    let drives: Vec<_> = names.iter().map(|name| folder.existing(name)).collect();
    let result = engine.pool_import(&drives, "p", degraded).map(drop);
    (engine, result)
}

#[test]
fn a_member_that_was_away_gets_what_changed_and_no_more() {
    let folder = Folder::new();
    let (engine, client) = mirrored(&folder);
    engine.drive_offline("p", &folder.existing("a")).unwrap();
    assert_eq!(drive_state(&engine, 0), "offline");
    (0..4).for_each(|chunk| put(&client, chunk, 1));
    client.flush().unwrap();
    let job = engine
        .drive_online("p", &folder.existing("a"), false)
        .unwrap();
    assert_eq!(wait_job(&engine, job), ("done".into(), String::new()));
    let jobs = engine.jobs().unwrap();
    let bytes = jobs.iter().find(|known| known.id == job).unwrap().total;
    assert!(
        bytes < 52 * MIB,
        "{bytes} bytes were copied for 4 MiB of changes"
    );
    assert_eq!(engine.pool_status("p").unwrap().state, "online");
    stands_alone(&engine, &folder, "b", |chunk| u64::from(chunk < 4));
    engine.shutdown();
}

#[test]
fn a_crash_while_a_member_is_away_does_not_make_it_count() {
    let folder = Folder::new();
    let (engine, client) = mirrored(&folder);
    engine.drive_offline("p", &folder.existing("a")).unwrap();
    (0..8).for_each(|chunk| put(&client, chunk, 1));
    client.flush().unwrap();
    (8..12).for_each(|chunk| put(&client, chunk, 1));
    drop((client, engine));
    let (engine, opened) = import(&folder, &["a", "b"], false);
    opened.unwrap();
    assert_eq!(drive_state(&engine, 0), "offline", "by hand is by hand");
    let job = engine
        .drive_online("p", &folder.existing("a"), false)
        .unwrap();
    assert_eq!(wait_job(&engine, job).0, "done");
    stands_alone(&engine, &folder, "b", |chunk| u64::from(chunk < 12));
    engine.shutdown();
}

#[test]
fn a_member_that_was_missing_at_an_opening_returns_at_the_next() {
    let folder = Folder::new();
    let (first, _) = mirrored(&folder);
    first.shutdown();
    let (second, opened) = import(&folder, &["b"], true);
    opened.unwrap();
    let client = Client::open(&second, "p", "v");
    (0..8).for_each(|chunk| put(&client, chunk, 1));
    client.flush().unwrap();
    drop((client, second));
    let (third, opened) = import(&folder, &["a", "b"], false);
    opened.unwrap();
    wait_status(&third, "p", |status| status.state == "online");
    stands_alone(&third, &folder, "b", |chunk| u64::from(chunk < 8));
    third.shutdown();
}

#[test]
fn a_stale_member_alone_is_asked_about_and_both_sides_are_not_mixed() {
    let folder = Folder::new();
    let (engine, _) = mirrored(&folder);
    engine.shutdown();
    drop(engine);
    let (engine, opened) = import(&folder, &["b"], true);
    opened.unwrap();
    let client = Client::open(&engine, "p", "v");
    put(&client, 0, 1);
    client.flush().unwrap();
    drop((client, engine));
    let (engine, refused) = import(&folder, &["a"], false);
    let refused = refused.unwrap_err();
    assert!(refused.message.contains("would be lost"), "{refused}");
    let drives = [folder.existing("a")];
    engine.pool_import(&drives, "p", true).unwrap();
    let client = Client::open(&engine, "p", "v");
    (0..CHUNKS).for_each(|chunk| has(&client, chunk, 0));
    put(&client, 1, 2);
    client.flush().unwrap();
    engine.shutdown();
    drop((client, engine));
    let (engine, refused) = import(&folder, &["a", "b"], false);
    let refused = refused.unwrap_err();
    assert!(refused.message.contains("one side alone"), "{refused}");
    // The side of `b` is chosen; `a` is overwritten only with force.
    let drives = [folder.existing("b")];
    engine.pool_import(&drives, "p", true).unwrap();
    let other = folder.existing("a");
    let refused = engine.drive_online("p", &other, false).unwrap_err();
    assert!(refused.message.contains("--force"), "{refused}");
    let job = engine.drive_online("p", &other, true).unwrap();
    assert_eq!(wait_job(&engine, job).0, "done");
    stands_alone(&engine, &folder, "b", |chunk| u64::from(chunk == 0));
    engine.shutdown();
}

#[test]
fn a_drive_that_was_taken_offline_does_not_open_alone() {
    let folder = Folder::new();
    let (engine, client) = mirrored(&folder);
    engine.drive_offline("p", &folder.existing("a")).unwrap();
    put(&client, 0, 1);
    client.flush().unwrap();
    drop((client, engine));
    for degraded in [false, true] {
        let (engine, refused) = import(&folder, &["a"], degraded);
        let refused = refused.unwrap_err();
        assert!(refused.message.contains("cannot be opened"), "{refused}");
        drop(engine);
    }
}

#[test]
fn a_replaced_drive_is_filled_and_the_old_one_is_free() {
    let folder = Folder::new();
    let (engine, _) = mirrored(&folder);
    let small = engine.drive_replace("p", &folder.existing("a"), &folder.drive("s", 64), false);
    assert_eq!(small.unwrap_err().code, ErrorCode::Invalid);
    assert!(!folder.path().join("s").exists(), "nothing is left of it");
    let job = engine
        .drive_replace("p", &folder.existing("a"), &folder.drive("c", 256), false)
        .unwrap();
    assert_eq!(wait_job(&engine, job).0, "done");
    let report = engine.drive_probe(&folder.existing("a")).unwrap();
    assert_eq!((report.found, report.pool), (None, None));
    stands_alone(&engine, &folder, "b", |_| 0);
    engine.shutdown();
    drop(engine);
    let (engine, opened) = import(&folder, &["c", "b"], false);
    opened.unwrap();
    let job = engine
        .drive_online("p", &folder.existing("b"), false)
        .unwrap();
    assert_eq!(wait_job(&engine, job).0, "done");
    stands_alone(&engine, &folder, "c", |_| 0);
    engine.shutdown();
}

#[test]
fn what_nothing_else_holds_stays() {
    let folder = Folder::new();
    let (engine, _) = mirrored(&folder);
    engine.drive_offline("p", &folder.existing("a")).unwrap();
    let refused = engine
        .drive_offline("p", &folder.existing("b"))
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::Refused);
    assert!(refused.message.contains("no other drive has"), "{refused}");
    let new = folder.drive("c", 240);
    let refused = engine.drive_replace("p", &folder.existing("b"), &new, false);
    assert_eq!(refused.unwrap_err().code, ErrorCode::Refused);
    let unknown = engine.drive_offline("p", "file:/nowhere").unwrap_err();
    assert_eq!(unknown.code, ErrorCode::NotFound);
    engine.shutdown();
}

#[test]
fn the_foreground_goes_on_while_members_come_and_go() {
    let folder = Folder::new();
    let (engine, client) = mirrored(&folder);
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..2u64)
        .map(|writer| {
            let (client, stop) = (client.clone(), stop.clone());
            std::thread::spawn(move || {
                let mut random = Random(writer + 77);
                let mut versions = vec![0; CHUNKS as usize];
                for version in 1.. {
                    if stop.load(Ordering::Relaxed) {
                        return versions;
                    }
                    let chunk = random.below(CHUNKS / 2) * 2 + writer;
                    put(&client, chunk, version);
                    versions[chunk as usize] = version;
                    has(&client, chunk, version);
                    if version % 4 == 0 {
                        client.flush().unwrap();
                    }
                }
                versions
            })
        })
        .collect();
    for round in 0..6 {
        let member = folder.existing(["a", "b"][round % 2]);
        engine.drive_offline("p", &member).unwrap();
        std::thread::park_timeout(std::time::Duration::from_millis(200));
        let job = engine.drive_online("p", &member, false).unwrap();
        assert_eq!(wait_job(&engine, job), ("done".into(), String::new()));
    }
    stop.store(true, Ordering::Relaxed);
    let versions: Vec<_> = writers
        .into_iter()
        .map(|writer| writer.join().unwrap())
        .collect();
    client.flush().unwrap();
    stands_alone(&engine, &folder, "a", |chunk| {
        versions[(chunk % 2) as usize][chunk as usize]
    });
    let job = engine
        .drive_online("p", &folder.existing("a"), false)
        .unwrap();
    assert_eq!(wait_job(&engine, job).0, "done");
    stands_alone(&engine, &folder, "b", |chunk| {
        versions[(chunk % 2) as usize][chunk as usize]
    });
    engine.shutdown();
}

/// A file that writes can be taken from while it is open.
struct Failing(std::os::fd::OwnedFd);

impl Failing {
    fn new(mib: u64) -> Self {
        // SAFETY: plain system calls; the descriptor has no other owner.
        let fd = unsafe {
            let fd = libc::memfd_create(
                c"member".as_ptr(),
                libc::MFD_ALLOW_SEALING | libc::MFD_CLOEXEC,
            );
            assert!(fd >= 0 && libc::ftruncate(fd, (mib * MIB) as i64) == 0);
            std::os::fd::FromRawFd::from_raw_fd(fd)
        };
        Self(fd)
    }

    fn spec(&self) -> String {
        use std::os::fd::AsRawFd;
        format!(
            "file:/proc/{}/fd/{}",
            std::process::id(),
            self.0.as_raw_fd()
        )
    }

    /// Every later write to it fails.
    fn fail(&self) {
        use std::os::fd::AsRawFd;
        // SAFETY: plain system call on a descriptor that is open.
        let sealed =
            unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_WRITE) };
        assert_eq!(sealed, 0, "{}", std::io::Error::last_os_error());
    }
}

#[test]
fn a_flush_that_relies_on_a_members_absence_is_answered_when_the_label_tells_of_it() {
    for _ in 0..4 {
        let (folder, failing) = (Folder::new(), Failing::new(160));
        let engine = engine(2);
        let members = [failing.spec(), folder.drive("b", 160)];
        let spec = pool(
            "p",
            2,
            vec![vdrive(Tier::Fast, LayoutSpec::Mirror, &members)],
        );
        engine.pool_create(&spec).unwrap();
        engine.volume_create("p", &volume("v", 64)).unwrap();
        let client = Client::open(&engine, "p", "v");
        put(&client, 0, 0);
        client.flush().unwrap();
        assert!(
            folder
                .newest_label("b")
                .unwrap()
                .config
                .meta
                .parts
                .iter()
                .all(|part| !part.out)
        );
        failing.fail();
        put(&client, 1, 1);
        client.flush().unwrap();
        let config = folder.newest_label("b").unwrap().config;
        assert!(config.meta.parts[0].out && !config.meta.parts[1].out);
        assert!(config.vdrives[0].parts[0].out && !config.vdrives[0].parts[0].stale.is_empty());
        // A region that is first written while the member is out is also recorded.
        let before = config.vdrives[0].parts[0].stale.clone();
        (2..40).for_each(|chunk| put(&client, chunk, 1));
        client.flush().unwrap();
        assert_ne!(
            folder.newest_label("b").unwrap().config.vdrives[0].parts[0].stale,
            before
        );
        let status = engine.pool_status("p").unwrap();
        assert_eq!(status.state, "degraded");
        let drives = &status.vdrives[0].drives;
        assert!(!drives[0].why.is_empty() && drives[1].why.is_empty());
        drop(engine);
    }
}

#[test]
fn a_member_gets_what_a_write_has_that_began_before_it_returned_and_ends_late() {
    let engine = engine(1);
    let (drives, members) = attached(["late:a", "late:b"], 96);
    let mirror = vdrive(Tier::Fast, LayoutSpec::Mirror, &members);
    engine.pool_create(&pool("p", 1, vec![mirror])).unwrap();
    engine.volume_create("p", &volume("v", 64)).unwrap();
    let client = Client::open(&engine, "p", "v");
    (0..32).for_each(|chunk| put(&client, chunk, 0));
    client.flush().unwrap();
    engine.drive_offline("p", &members[0]).unwrap();
    let late = pattern(99, 4096);
    drives[1].hold(Some((DriveIoKind::Write, late.clone())));
    let writing = {
        let (client, late) = (client.clone(), late.clone());
        std::thread::spawn(move || client.write(20 * MIB, &late).unwrap())
    };
    drives[1].wait_held();
    // It ends some time after the member has begun to return.
    let other = drives[1].clone();
    let ending = std::thread::spawn(move || {
        std::thread::park_timeout(Duration::from_millis(500));
        other.hold(None);
    });
    let job = engine.drive_online("p", &members[0], false).unwrap();
    assert_eq!(wait_job(&engine, job), ("done".into(), String::new()));
    writing.join().unwrap();
    ending.join().unwrap();
    client.flush().unwrap();
    assert_eq!(drives.each_ref().map(|drive| drive.count(&late)), [1, 1]);
    drop(client);
    engine.shutdown();
}
