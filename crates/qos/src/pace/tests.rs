//! The controller of the limit, by itself.

use super::*;

/// Ticks in which the others take what they may, up to all of a second, and the volume has what `had` makes of that.
fn run(pace: &mut Pace, ticks: usize, aim: f64, had: impl Fn(f64) -> f64) -> (f64, f64) {
    let mut last = (0.0, 0.0);
    for _ in 0..ticks {
        let others = pace.limit.unwrap_or(1e9).min(0.95e9);
        let had = had(others);
        let mut attained = ByLevel::default();
        attained[0] = Some(Attained {
            had,
            aim,
            used: 1e9 - others,
            others,
            others_mean: 0.0,
        });
        pace.tick(&attained, true, false);
        last = (had, others);
    }
    last
}

/// Each of its operations takes 10 µs of what the others leave.
fn gains(others: f64) -> f64 {
    (1e9 - others) / 10_000.0
}

#[test]
fn the_others_are_limited_to_what_leaves_the_minimum() {
    let mut pace = Pace::default();
    let (had, others) = run(&mut pace, 300, 60_000.0, gains);
    assert_eq!(pace.favours(), Some(1));
    assert!((0.95..1.2).contains(&(had / 60_000.0)), "{had}");
    assert!(others > 2.5e8, "{others} is left to them");
}

#[test]
fn a_limit_that_helps_nobody_is_given_up_for_ever_longer() {
    let mut pace = Pace::default();
    let mut limited = |ticks| {
        let ticks = (0..ticks).filter(|_| {
            run(&mut pace, 1, 60_000.0, |_| 5_000.0);
            pace.favours().is_some()
        });
        ticks.count() as u32
    };
    assert_eq!(limited(200), TRIAL);
    assert_eq!(limited(10_000), 6 * TRIAL, "after 5, 10, 20, 40, 60, 60 s");
}

#[test]
fn one_that_cannot_have_its_minimum_keeps_what_it_can_have() {
    let mut pace = Pace::default();
    // Each waits for the one before it, and for the others.
    let waits = |others: f64| 1e9 / (100_000.0 + others / 10_000.0);
    let (had, _) = run(&mut pace, 400, 60_000.0, waits);
    assert!(had > waits(LEAST) * 0.93, "{had}");
}

/// Part of the limit that is left after so many ticks in which a volume has next to nothing, and all together this part of
/// their usual work is done.
fn left_after(ticks: usize, work: f64) -> f64 {
    let mut pace = Pace::default();
    run(&mut pace, 300, 60_000.0, gains);
    let limit = |pace: &Pace| pace.limit().unwrap_or(0) as f64;
    let before = limit(&pace);
    for _ in 0..ticks {
        let others = before * work;
        let mut attained = ByLevel::default();
        attained[0] = Some(Attained {
            had: 100.0,
            aim: 60_000.0,
            used: 1e9 * work - others,
            others,
            others_mean: 0.0,
        });
        pace.tick(&attained, true, false);
    }
    limit(&pace) / before
}

#[test]
fn one_bad_tick_is_chance_and_a_stall_of_everybody_is_nobodys_fault() {
    assert!(left_after(1, 1.0) > 0.9);
    assert!(left_after(2, 1.0) < 0.7, "two of them are not");
    assert!(left_after(STALLS as usize, 0.05) > 0.9);
    assert!(left_after(STALLS as usize + 2, 0.05) < 0.7);
}

#[test]
fn a_loop_that_sleeps_has_time_for_all() {
    let mut pace = Pace::default();
    for _ in 0..100 {
        let mut attained = ByLevel::default();
        attained[0] = Some(Attained {
            had: 5_000.0,
            aim: 60_000.0,
            used: 1e8,
            others: 5e8,
            others_mean: 0.0,
        });
        pace.tick(&attained, false, false);
        assert_eq!(pace.favours(), None);
    }
}

#[test]
fn everything_is_given_back_when_nothing_is_asked_for() {
    let mut pace = Pace::default();
    run(&mut pace, 100, 60_000.0, gains);
    assert!(pace.limit().is_some());
    (0..GONE).for_each(|_| pace.tick(&ByLevel::default(), true, false));
    assert_eq!((pace.favours(), pace.limit()), (None, None));
}

#[test]
fn what_passes_is_paid_for_by_the_limit() {
    let mut pace = Pace {
        limit: Some(1e8),
        ..Pace::default()
    };
    // A tenth of the time: operations of 10 µs, one each 100 µs.
    let passed = (0..100_000).filter(|at| {
        let now_ns = at * 10_000;
        let passes = pace.has_room(now_ns);
        if passes {
            pace.take(10_000, now_ns);
        }
        passes
    });
    let passed = passed.count();
    assert!((9_900..10_100).contains(&passed), "{passed} in a second");
}
