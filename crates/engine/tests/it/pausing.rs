//! Jobs can be paused, also in the engine that opens the pool after a crash, and complete after being resumed.

use crate::support::{
    Client, Folder, MIB, engine, pattern, pool, start_again, vdrive, volume, wait_job,
};
use engine::{Engine, ErrorCode, JobStatus, LayoutSpec, PoolSpec, ScrubSpec, Tier};
use std::time::Duration;

const SCRUB: ScrubSpec = ScrubSpec {
    rate: 16 * MIB,
    began_s: 1_700_000_000,
};

fn with_data(engine: &Engine, spec: &PoolSpec) {
    engine.pool_create(spec).unwrap();
    engine.volume_create("p", &volume("v", 64)).unwrap();
    let client = Client::open(engine, "p", "v");
    for number in 0..32 {
        let bytes = pattern(number, MIB as usize);
        client.write(number * MIB, &bytes).unwrap();
    }
    client.flush().unwrap();
}

fn plain(folder: &Folder) -> PoolSpec {
    let members = [folder.drive("a", 160), folder.drive("b", 160)];
    pool(
        "p",
        2,
        vec![vdrive(Tier::Fast, LayoutSpec::Mirror, &members)],
    )
}

/// The newest job of a kind.
fn job(engine: &Engine, kind: &str) -> JobStatus {
    let mut jobs = engine.jobs().unwrap().into_iter();
    jobs.find(|job| job.kind == kind).unwrap()
}

/// What ends after a job was paused, at whatever time: a chunk in each of the two shards.
const UNDER_WAY: u64 = 2 * MIB;

/// Bytes that a paused job has done, which stay as many but for what was in progress.
fn rests(engine: &Engine, kind: &str) -> u64 {
    let at_once = job(engine, kind).done;
    std::thread::park_timeout(Duration::from_secs(3));
    let job = job(engine, kind);
    assert!(job.done <= at_once + UNDER_WAY, "{at_once}, {job:?}");
    assert_eq!(job.state, "paused", "{job:?}");
    assert_eq!((job.rate, job.seconds_left), (0, None), "{job:?}");
    job.done
}

/// Waits until the newest label of a drive tells that so many bytes were scrubbed.
fn wait_kept(folder: &Folder, name: &str, done: u64) {
    let kept = || {
        let scrub = folder.newest_label(name)?.config.scrub;
        Some(scrub.running?.totals.bytes)
    };
    for _ in 0..6000 {
        if kept().is_some_and(|kept| kept >= done) {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("{done} bytes are not kept: {:?}", kept());
}

/// Begins a scrub and pauses it. On a busy machine it may have ended before: then another one.
fn paused_scrub(engine: &Engine, until: impl Fn()) -> u64 {
    for _ in 0..100 {
        let id = engine.pool_scrub("p", &SCRUB).unwrap();
        until();
        match engine.job_pause(id) {
            Ok(()) => return id,
            Err(error) => assert_eq!(error.code, ErrorCode::Invalid),
        }
        wait_job(engine, id);
    }
    panic!("each scrub ended before it could be paused");
}

fn until_under_way(engine: &Engine, kind: &str) -> JobStatus {
    for _ in 0..60_000 {
        let job = job(engine, kind);
        if job.done > 0 {
            return job;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    panic!("it does not begin: {:?}", engine.jobs());
}

#[test]
fn a_scrub_rests_over_a_crash_and_goes_on_from_where_it_was() {
    let folder = Folder::new();
    let (mut engine, spec) = (engine(2), plain(&folder));
    with_data(&engine, &spec);
    paused_scrub(&engine, || drop(until_under_way(&engine, "scrub")));
    let done = rests(&engine, "scrub");
    assert!(done > 0 && done < 64 * MIB, "{done}");
    assert_eq!(engine.pool_scrub_status("p").unwrap().state, "paused");
    let other = engine.pool_scrub("p", &SCRUB).unwrap_err();
    assert_eq!(other.code, ErrorCode::Busy);
    wait_kept(&folder, "a", done);
    start_again(&mut engine, &spec, true);
    let kept = rests(&engine, "scrub");
    assert!(
        (done..=done + UNDER_WAY).contains(&kept),
        "{kept}, and {done} before"
    );
    let id = job(&engine, "scrub").id;
    engine.job_pause(id).unwrap();
    engine.job_resume(id).unwrap();
    engine.job_resume(id).unwrap();
    assert_eq!(wait_job(&engine, id), ("done".into(), String::new()));
    // Of bytes that were done before a crash none counts for how fast it is.
    let ended = job(&engine, "scrub");
    assert!(ended.rate <= 2 * SCRUB.rate, "{ended:?}");
    let again = engine.job_pause(id).unwrap_err();
    assert_eq!(again.code, ErrorCode::Invalid);
    engine.shutdown();
}

#[test]
fn what_rests_can_be_cancelled_and_the_next_one_does_not_rest() {
    let folder = Folder::new();
    let (mut engine, spec) = (engine(2), plain(&folder));
    with_data(&engine, &spec);
    let id = paused_scrub(&engine, || ());
    rests(&engine, "scrub");
    engine.job_cancel(id).unwrap();
    assert_eq!(wait_job(&engine, id).0, "cancelled");
    let id = engine.pool_scrub("p", &SCRUB).unwrap();
    assert_eq!(wait_job(&engine, id).0, "done");
    let unknown = engine.job_pause(99).unwrap_err();
    assert_eq!(unknown.code, ErrorCode::NotFound);
    start_again(&mut engine, &spec, true);
    assert_eq!(engine.jobs().unwrap(), []);
    engine.shutdown();
}

#[test]
fn an_evacuation_rests_over_a_crash_and_ends() {
    let folder = Folder::new();
    let mut engine = engine(2);
    let slow = format!("model:hdd-7200,iops=1000:{}", folder.drive("b", 160));
    let first = vdrive(Tier::Slow, LayoutSpec::Concat, &[slow]);
    let spec = pool("p", 2, vec![first]);
    with_data(&engine, &spec);
    // The metadata stays with the first, so a second one leaves: what is written after that is on both.
    let second = format!("model:hdd-7200,iops=1000:{}", folder.drive("c", 160));
    let second = vdrive(Tier::Slow, LayoutSpec::Concat, &[second]);
    // On a busy machine it may have left before it is paused: then it is taken out once more.
    let mut tries = 0..20;
    let is_paused = tries.any(|_| {
        let number = engine.vdrive_add("p", &second, true).unwrap();
        let client = Client::open(&engine, "p", "v");
        for chunk in 0..48 {
            let bytes = pattern(chunk + 100, MIB as usize);
            client.write(chunk * MIB, &bytes).unwrap();
        }
        client.flush().unwrap();
        drop(client);
        let id = engine.vdrive_remove("p", number).unwrap();
        until_under_way(&engine, "evacuate");
        let paused = engine.job_pause(id).is_ok();
        if !paused {
            assert_eq!(wait_job(&engine, id).0, "done");
        }
        paused
    });
    assert!(is_paused, "each time it left before it could be paused");
    rests(&engine, "evacuate");
    let both = pool(
        "p",
        2,
        spec.vdrives.iter().cloned().chain([second]).collect(),
    );
    start_again(&mut engine, &both, true);
    assert_eq!(rests(&engine, "evacuate"), 0);
    let client = Client::open(&engine, "p", "v");
    let bytes = client.read(40 * MIB, MIB as usize).unwrap();
    assert_eq!(bytes, pattern(140, MIB as usize));
    drop(client);
    let id = job(&engine, "evacuate").id;
    engine.job_resume(id).unwrap();
    assert_eq!(wait_job(&engine, id), ("done".into(), String::new()));
    assert_eq!(engine.pool_status("p").unwrap().vdrives.len(), 1);
    engine.shutdown();
}
