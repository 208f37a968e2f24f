//! Jobs across restarts.

use super::*;
use crate::state::Trouble;
use std::path::Path;

fn told(id: u64, kind: &str, state: JobState, done: u64) -> Job {
    Job {
        id,
        kind: kind.to_owned(),
        subject: "tank/x".to_owned(),
        state,
        done,
        total: 100,
        percent: 0.0,
        rate: 1,
        seconds_left: Some(1),
        message: String::new(),
        began_s: 0,
        ended_s: None,
    }
}

fn opened(folder: &Path, now_s: u64) -> Ledger {
    let ledger = Ledger::new(&StateFiles::new(folder));
    ledger.load(now_s);
    ledger
}

fn none(kind: &str, _: &str) -> Fate {
    panic!("unexpected call for {kind}")
}

/// Number, state, bytes done, begin and end of each job, newest first.
fn seen(ledger: &Ledger) -> Vec<(u64, JobState, u64, u64, Option<u64>)> {
    let jobs = ledger.list(usize::MAX).into_iter();
    jobs.map(|job| (job.id, job.state, job.done, job.began_s, job.ended_s))
        .collect()
}

use JobState::{Cancelled, Done, Failed, Paused, Running};

#[test]
fn paused_job_is_unfinished_and_says_how_to_resume() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = opened(folder.path(), 1);
    ledger.take([told(4, "scrub", Paused, 10)], none, 5);
    assert_eq!(seen(&ledger), [(1, Paused, 10, 5, None)]);
    drop(ledger);
    let ledger = opened(folder.path(), 8);
    ledger.take([told(2, "scrub", Paused, 10)], none, 9);
    assert_eq!(seen(&ledger), [(1, Paused, 10, 5, None)]);
    let job = &ledger.list(1)[0];
    assert_eq!(job.message, "paused: resume it with `convect job resume 1`");
    ledger.take([told(2, "scrub", Running, 10)], none, 10);
    let job = &ledger.list(1)[0];
    assert_eq!((job.state, job.message.as_str()), (Running, ""));
    ledger.take([told(2, "scrub", Cancelled, 10)], none, 11);
    assert_eq!(seen(&ledger), [(1, Cancelled, 10, 5, Some(11))]);
}

#[test]
fn continued_job_keeps_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = opened(folder.path(), 1);
    ledger.take(
        [told(1, "scrub", Running, 10), told(2, "delete", Running, 0)],
        none,
        5,
    );
    assert_eq!(
        seen(&ledger),
        [(2, Running, 0, 5, None), (1, Running, 10, 5, None)]
    );
    drop(ledger);
    // The engine's numbers restart; another job has the scrub's former number.
    let ledger = opened(folder.path(), 8);
    let now = [
        told(1, "reclaim", Running, 0),
        told(2, "scrub", Running, 40),
    ];
    ledger.take(now, |_, _| Fate::Done, 9);
    assert_eq!(
        seen(&ledger),
        [
            (3, Running, 0, 9, None),
            (2, Done, 100, 5, Some(9)),
            (1, Running, 40, 5, None)
        ]
    );
    assert_eq!(
        (ledger.of_engine(1), ledger.of_engine(2)),
        (Some(3), Some(1))
    );
    assert_eq!(ledger.cancel(1), Some(2));
    ledger.take([told(2, "scrub", Done, 100)], none, 10);
    assert_eq!(seen(&ledger)[2], (1, Done, 100, 5, Some(10)));
    // Later reports of a finished job are ignored.
    ledger.take([told(2, "scrub", Done, 7)], none, 11);
    assert_eq!(seen(&ledger)[2], (1, Done, 100, 5, Some(10)));
}

#[test]
fn interrupted_job_ends_with_its_fate() {
    for (fate, state) in [
        (Fate::Done, Done),
        (Fate::Cancelled, Cancelled),
        (Fate::Failed("why".to_owned()), Failed),
        (Fate::Waits("for its pool".to_owned()), Running),
    ] {
        let folder = tempfile::tempdir().unwrap();
        opened(folder.path(), 1).take([told(1, "evacuate", Running, 10)], none, 5);
        let ledger = opened(folder.path(), 8);
        ledger.take([], |_, _| fate.clone(), 9);
        let job = ledger.list(1).remove(0);
        assert_eq!((job.id, job.state), (1, state), "{fate:?}");
        match fate {
            Fate::Failed(why) | Fate::Waits(why) => assert_eq!(job.message, why),
            _ => {}
        }
        // The list is stored; the waiting job continues when its pool is open again.
        drop(ledger);
        let ledger = opened(folder.path(), 18);
        ledger.take([told(1, "evacuate", Running, 60)], none, 19);
        let newest = ledger.list(1).remove(0);
        assert_eq!(newest.id, if state == Running { 1 } else { 2 });
    }
}

#[test]
fn own_jobs_fail_with_the_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = opened(folder.path(), 1);
    let (good, bad, left, long) = (
        ledger.begin("send", "tank/a@s", 100, 2),
        ledger.begin("send", "tank/b@s", 100, 2),
        ledger.begin("receive", "tank/c", 100, 2),
        ledger.begin("receive", "tank/d", 100, 2),
    );
    good.advance(70);
    ledger.take([], none, 3);
    assert_eq!(seen(&ledger)[3], (1, Running, 70, 2, None));
    good.end(Ok(()));
    assert_eq!(ledger.cancel(2), None);
    assert!(bad.is_cancelled() && !left.is_cancelled());
    bad.end(Err("the job was cancelled".to_owned()));
    drop(left);
    ledger.take([], none, 4);
    let states: Vec<JobState> = ledger.list(9).iter().map(|job| job.state).collect();
    assert_eq!(states, [Running, Failed, Cancelled, Done]);
    long.advance(60);
    ledger.take([], none, 5);
    long.advance(80);
    ledger.take([], none, 14);
    long.advance(90);
    ledger.take([], none, 15);
    drop(ledger);
    let again = opened(folder.path(), 19);
    let job = again.list(1).remove(0);
    // Progress is stored every ten seconds.
    assert_eq!(
        (job.id, job.state, job.done, job.ended_s),
        (4, Failed, 80, Some(19))
    );
    assert!(
        job.message.contains("the daemon stopped while it ran"),
        "{}",
        job.message
    );
    drop(long);
}

#[test]
fn finished_jobs_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = opened(folder.path(), 1);
    ledger.take([told(1, "scrub", Running, 0)], none, 1);
    ledger.take((2..1200).map(|id| told(id, "reclaim", Done, 0)), none, 1);
    let all = ledger.list(usize::MAX);
    assert_eq!(all.len(), REMEMBERED + 1);
    assert_eq!((all[0].id, all.last().unwrap().id), (1199, 1));
    assert_eq!(ledger.list(5).len(), 6);
}

#[test]
fn corrupt_list_is_set_aside_and_starts_empty() {
    let folder = tempfile::tempdir().unwrap();
    for text in ["{", r#"{"version":2,"next":1,"jobs":[]}"#] {
        std::fs::write(folder.path().join(FILE), text).unwrap();
        let files = StateFiles::new(folder.path());
        let ledger = Ledger::new(&files);
        ledger.load(1);
        assert_eq!(ledger.list(usize::MAX), []);
        assert!(matches!(
            files.troubles()[..],
            [(FILE, Trouble::Damaged(..))]
        ));
    }
}

#[test]
fn finished_job_stays_finished_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = opened(folder.path(), 1);
    ledger.begin("send", "tank/a@s", 100, 2).end(Ok(()));
    let failing = ledger.begin("receive", "tank/b", 100, 2);
    failing.end(Err("no space".to_owned()));
    let running = ledger.begin("send", "tank/c@s", 100, 2);
    // No further poll: the daemon is killed.
    let ledger = opened(folder.path(), 9);
    let states: Vec<_> = seen(&ledger).into_iter().map(|job| job.1).collect();
    assert_eq!(states, [Failed, Failed, Done]);
    let jobs = ledger.list(3);
    assert_eq!(jobs[1].message, "no space");
    drop(running);
}
