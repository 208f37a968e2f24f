use super::*;
use api::v1::{Severity, Subject, SubjectKind};

const NOW_S: u64 = 100_000;

fn period(from_s: u64, to_s: u64) -> Period {
    Period::new(Some(from_s), Some(to_s), NOW_S).unwrap()
}

#[test]
fn time_is_the_last_minutes_by_default_and_must_not_be_empty() {
    let usual = Period::new(None, None, NOW_S).unwrap();
    assert_eq!(usual.both(), (NOW_S - USUAL_S, NOW_S));
    assert!(usual.is_live());
    assert!(!period(10, 20).is_live());
    // A time that reaches into the future ends now.
    assert_eq!(
        Period::new(Some(10), Some(NOW_S + 9), NOW_S).unwrap().to_s,
        NOW_S
    );
    for (from_s, to_s) in [(20, 20), (NOW_S + 1, NOW_S + 2), (0, LONGEST_S + 1)] {
        let now_s = NOW_S.max(LONGEST_S * u64::from(from_s == 0) + 1);
        assert!(
            Period::new(Some(from_s), Some(to_s), now_s).is_err(),
            "{from_s}"
        );
    }
}

fn event(number: u64, at_s: u64, of: Option<u64>) -> Event {
    Event {
        number,
        at_s,
        severity: Severity::Warning,
        code: EventCode::DriveSlow,
        state: match of {
            Some(_) => EventState::Cleared,
            None => EventState::Raised,
        },
        subject: Subject {
            kind: SubjectKind::Drive,
            pool: Some("tank".to_owned()),
            name: "file:/dev/sda".to_owned(),
        },
        message: format!("event {number}"),
        advice: String::new(),
        runbook: String::new(),
        of,
    }
}

#[test]
fn alerts_count_while_they_were_open() {
    // Raised at 100, cleared at 200.
    let events = [event(2, 200, Some(1)), event(1, 100, None)];
    for (from_s, to_s, count) in [
        (50, 100, 0),
        (50, 101, 1),
        (150, 160, 1),
        (200, 300, 1),
        (201, 300, 0),
    ] {
        let found = alerts_of(&events, &[], period(from_s, to_s));
        assert_eq!(found.len(), count, "{from_s} to {to_s}");
        assert!(found.iter().all(|alert| alert.message == "event 1"));
    }
}

fn job(kind: &str, subject: &str, began_s: u64, ended_s: Option<u64>) -> v1::Job {
    v1::Job {
        id: 3,
        kind: kind.to_owned(),
        subject: subject.to_owned(),
        state: match ended_s {
            Some(_) => v1::JobState::Done,
            None => v1::JobState::Running,
        },
        done: 1000,
        total: 1000,
        percent: 0.0,
        rate: 7,
        seconds_left: None,
        message: String::new(),
        began_s,
        ended_s,
    }
}

#[test]
fn jobs_count_where_they_load_the_pool_in_that_time() {
    let then = period(1000, 2000);
    let count = |job| work_of(vec![job], "tank", then).len();
    assert_eq!(count(job("scrub", "tank/pool", 500, Some(1500))), 1);
    assert_eq!(count(job("scrub", "tank/pool", 500, Some(900))), 0);
    assert_eq!(count(job("scrub", "tank/pool", 2000, None)), 0);
    assert_eq!(count(job("scrub", "other/pool", 500, Some(1500))), 0);
    assert_eq!(count(job("send", "tank/v", 500, Some(1500))), 0);
    // Of a past time the mean rate counts, of now the recent one.
    let past = work_of(vec![job("scrub", "tank", 1000, Some(1100))], "tank", then);
    assert_eq!(past[0].rate, 10.0);
    let now = period(NOW_S - 300, NOW_S);
    let recent = work_of(vec![job("scrub", "tank", 500, None)], "tank", now);
    assert_eq!((recent[0].rate, recent[0].is_running), (7.0, true));
}
