//! Compares the measurements with the limits: pure, so that it can be tested with made-up figures.

use super::watch::Taken;
use crate::load::Series;
use crate::scrub_cost::median;
use serde::Serialize;
use units::format_bytes;

const MIB: u64 = 1 << 20;
/// Resident memory above that of a daemon that serves victims without an attack.
pub const MEMORY_MAX: u64 = 256 * MIB;
/// How often the 99th percentile of others may be that of the phases without an attacker, before and after.
pub const LATENCY_TIMES: f64 = 2.0;
/// Descriptors that the daemon may have beyond those of before: it opens and closes files of its own.
pub const DESCRIPTORS_MORE: u64 = 4;
/// Bytes of log a second, and the seconds that count at least: messages limited over ten seconds may come in one burst.
const LOG_PER_SECOND: u64 = 64 << 10;
const LOG_SECONDS: f64 = 10.0;
/// Windows of a phase of whose percentiles the median counts.
const WINDOWS: usize = 5;

/// Results of a victim.
#[derive(Serialize, Clone, Default, Debug)]
pub struct VictimSeen {
    /// Its protocol.
    pub protocol: &'static str,
    /// Median of several windows' 99th percentiles, in microseconds.
    pub p99_us: f64,
    /// Requests that were answered.
    pub answered: u64,
    /// Why its load broke off.
    pub lost: Option<String>,
}

/// Results of newcomers at a door.
#[derive(Serialize, Clone, Default, Debug)]
pub struct DoorSeen {
    /// Its name.
    pub name: &'static str,
    /// How often one came in.
    pub entered: u64,
    /// How often one did not.
    pub refused: u64,
    /// Whether one came in when the attack had lasted for its time, and was not over.
    pub open_in_the_end: bool,
    /// Why not, last.
    pub why: Option<String>,
}

/// Activity of an attacker.
#[derive(Serialize, Clone, Default, Debug)]
pub struct AttackSeen {
    /// Messages or connections.
    pub deeds: u64,
    /// How often it was refused or cut off, which is no fault.
    pub refusals: u64,
    /// Why, last.
    pub why: Option<String>,
}

/// Results of a phase.
#[derive(Serialize, Clone, Default, Debug)]
pub struct Seen {
    /// The attacker; none in a phase without one.
    pub attacker: Option<&'static str>,
    /// How long it took.
    pub seconds: f64,
    /// By protocol.
    pub victims: Vec<VictimSeen>,
    /// By door.
    pub doors: Vec<DoorSeen>,
    /// Its activity.
    pub attack: AttackSeen,
    /// Resident bytes of this daemon without an attacker.
    pub idle_memory: u64,
    /// The daemon's memory before the phase, its maximum, and after its return to normal, or the timeout.
    pub before: Taken,
    /// At most.
    pub most: Taken,
    /// Afterwards.
    pub after: Taken,
    /// Most bytes that requests took, as the daemon told.
    pub request_memory: u64,
    /// Most requests that waited for memory.
    pub waiting: u64,
    /// How the daemon ended, when it did.
    pub died: Option<String>,
}

/// The median of the 99th percentiles of windows of a load, in microseconds; what was never sent counts, too.
pub fn p99_us(seconds: &Series) -> f64 {
    let each = seconds.0.len().div_ceil(WINDOWS).max(1);
    let windows = seconds.0.chunks(each);
    let p99 =
        windows.map(|window| Series(window.to_vec()).whole().percentile_ns(99.0) as f64 / 1e3);
    median(&p99.collect::<Vec<f64>>())
}

/// How many times a victim's percentile is the greater one of those without an attacker, before and after.
pub fn times(seen: &Seen, bases: [&Seen; 2], index: usize) -> f64 {
    let of = |seen: &Seen| seen.victims.get(index).map_or(0.0, |victim| victim.p99_us);
    of(seen) / of(bases[0]).max(of(bases[1])).max(1.0)
}

fn of_victims(seen: &Seen, faults: &mut Vec<String>) {
    for victim in &seen.victims {
        let protocol = victim.protocol;
        match &victim.lost {
            Some(why) => faults.push(format!("the {protocol} victim lost its session: {why}")),
            None if victim.answered == 0 => {
                faults.push(format!("nothing was answered to the {protocol} victim"));
            }
            None => {}
        }
    }
    for door in &seen.doors {
        let why = door.why.as_deref().unwrap_or("it was not answered");
        let (name, all) = (door.name, door.entered + door.refused);
        if !door.open_in_the_end {
            faults.push(format!("no other client was served at {name}: {why}"));
        } else if door.refused > door.entered {
            faults.push(format!(
                "{} of {all} others did not come in at {name}: {why}",
                door.refused
            ));
        }
    }
}

fn of_the_daemon(seen: &Seen, faults: &mut Vec<String>) {
    let above = |taken: Taken| taken.memory.saturating_sub(seen.idle_memory);
    if above(seen.most) > MEMORY_MAX {
        faults.push(format!(
            "the daemon took {} above idle, more than {}",
            format_bytes(above(seen.most)),
            format_bytes(MEMORY_MAX)
        ));
    }
    if seen.died.is_none() && above(seen.after) > MEMORY_MAX {
        faults.push(format!(
            "{} did not come back",
            format_bytes(above(seen.after))
        ));
    }
    if seen.after.descriptors > seen.before.descriptors + DESCRIPTORS_MORE {
        faults.push(format!(
            "{} descriptors were left of {} before",
            seen.after.descriptors, seen.before.descriptors
        ));
    }
    let logged = seen.most.log.saturating_sub(seen.before.log);
    let allowed = seen.seconds.max(LOG_SECONDS) * LOG_PER_SECOND as f64;
    if logged as f64 > allowed {
        faults.push(format!(
            "{} were logged in {:.0} s",
            format_bytes(logged),
            seen.seconds
        ));
    }
}

/// Exceeded limits, a sentence each. Latency is compared where there are phases to compare it with.
pub fn judge(seen: &Seen, bases: Option<[&Seen; 2]>) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(how) = &seen.died {
        let first = how.lines().next().unwrap_or_default();
        faults.push(first.to_owned());
    }
    // That a session ends with the daemon needs no sentence of its own.
    if seen.died.is_none() {
        of_victims(seen, &mut faults);
    }
    of_the_daemon(seen, &mut faults);
    if seen.attacker.is_some() && seen.attack.deeds == 0 {
        let why = seen.attack.why.as_deref().unwrap_or("it says no reason");
        faults.push(format!("the attacker did nothing: {why}"));
    }
    for (index, victim) in seen.victims.iter().enumerate() {
        let Some(bases) = bases else { break };
        let times = times(seen, bases, index);
        if victim.lost.is_none() && times > LATENCY_TIMES {
            faults.push(format!(
                "p99 of the {} victim was {times:.1} times that without an attacker",
                victim.protocol
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Answer;

    fn good() -> Seen {
        let victim = |protocol| VictimSeen {
            protocol,
            p99_us: 500.0,
            answered: 200,
            lost: None,
        };
        let taken = Taken {
            memory: 100 * MIB,
            threads: 10,
            descriptors: 50,
            log: 1000,
        };
        Seen {
            attacker: Some("made-up"),
            seconds: 60.0,
            victims: vec![victim("nbd"), victim("iscsi")],
            doors: vec![DoorSeen {
                name: "TLS",
                entered: 9,
                refused: 9,
                open_in_the_end: true,
                why: Some("late".to_owned()),
            }],
            attack: AttackSeen {
                deeds: 1,
                ..AttackSeen::default()
            },
            idle_memory: 100 * MIB,
            before: taken,
            most: taken,
            after: taken,
            ..Seen::default()
        }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Seen), expected: &str) {
        let mut seen = good();
        change(&mut seen);
        let base = good();
        let faults = judge(&seen, Some([&base, &base]));
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains(expected), "{faults:?}");
    }

    #[test]
    fn what_is_within_the_limits_has_no_fault() {
        let (base, mut seen) = (good(), good());
        assert_eq!(judge(&seen, Some([&base, &base])), Vec::<String>::new());
        seen.most.memory += MEMORY_MAX;
        seen.most.descriptors += 4096;
        seen.after.descriptors += DESCRIPTORS_MORE;
        seen.victims[0].p99_us = 1000.0;
        seen.most.log += 60 * LOG_PER_SECOND;
        assert_eq!(judge(&seen, Some([&base, &base])), Vec::<String>::new());
    }

    #[test]
    fn each_limit_that_is_exceeded_is_a_fault() {
        check(
            |seen| seen.victims[1].lost = Some("reset".to_owned()),
            "lost its session: reset",
        );
        check(
            |seen| seen.victims[0].answered = 0,
            "nothing was answered to the nbd victim",
        );
        check(|seen| seen.victims[0].p99_us = 1000.1, "2.0 times");
        check(
            |seen| seen.doors[0].open_in_the_end = false,
            "no other client was served at TLS: late",
        );
        check(|seen| seen.doors[0].refused = 10, "10 of 19 others");
        check(|seen| seen.most.memory += MEMORY_MAX + 1, "above idle");
        check(
            |seen| seen.after.memory += MEMORY_MAX + 1,
            "did not come back",
        );
        check(
            |seen| seen.after.descriptors += DESCRIPTORS_MORE + 1,
            "descriptors were left",
        );
        check(
            |seen| seen.most.log += 60 * LOG_PER_SECOND + 1,
            "were logged",
        );
        check(|seen| seen.attack.deeds = 0, "did nothing");
        check(
            |seen| seen.died = Some("signal 7\nlog".to_owned()),
            "signal 7",
        );
    }

    #[test]
    fn latency_is_compared_with_the_slower_phase_beside_it_and_only_where_that_is_asked_for() {
        let (fast, mut slow, mut seen) = (good(), good(), good());
        (slow.victims[0].p99_us, seen.victims[0].p99_us) = (600.0, 1200.0);
        assert!(judge(&seen, Some([&fast, &slow])).is_empty());
        assert!(judge(&seen, Some([&slow, &fast])).is_empty());
        assert_eq!(judge(&seen, Some([&fast, &fast])).len(), 1);
        assert!(judge(&seen, None).is_empty());
    }

    #[test]
    fn one_bad_window_of_five_does_not_count_and_a_stall_in_most_does() {
        let second = 1_000_000_000;
        let series = |slow: u64| {
            let mut series = Series::with_room(10);
            for number in 0..1000 {
                let due_ns = number * second / 100;
                let late = if due_ns / second < slow {
                    50_000_000
                } else {
                    100_000
                };
                series.answered_due(Answer {
                    at_ns: due_ns + late,
                    due_ns,
                    bytes: 1,
                });
            }
            series.cut(0, 10);
            series
        };
        let (few, most) = (p99_us(&series(2)), p99_us(&series(6)));
        assert!(few < 200.0, "{few}");
        assert!(most > 40_000.0, "{most}");
    }
}
