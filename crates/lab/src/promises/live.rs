//! Changes of policy under load: how soon each takes effect, and what it costs policy 1.
//!
//! One volume's policy is changed between one that caps it and one that does not. A change has effect when the volume's
//! rate has passed the geometric mean of both rates, seen over 10 ms; the reported time runs from the answer of the
//! command until then.

use super::arguments::Live;
use super::scene::{self, USUAL, Volume, alone, not_told, settled, tenant, verdict};
use crate::failure::Result;
use crate::interrupt;
use crate::screen::{self, thousands};
use crate::storm::Judged;
use crate::tenants::{Crowd, Outcome, Stage, Tenant};
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

const NAMES: [&str; 3] = ["policy-1", "changed", "other"];
/// Where in `NAMES` the one is whose policy is changed.
const CHANGED: usize = 1;
/// The floor of policy 1 as a part of what its volume gets alone.
const FLOOR_PART: f64 = 0.5;
const FLOOR_MS: u64 = 10;
/// The cap as a part of what the volume gets without.
const CAP_PART: f64 = 1.0 / 32.0;
/// Below this, in IOPS, a cap's effect cannot be seen within [`SEEN`].
const LEAST_CAP: f64 = 100.0;
/// Rates are seen over this time, at each step of it.
const SEEN: Duration = Duration::from_millis(10);
const STEP: Duration = Duration::from_millis(1);
/// Within which a change is to have effect.
const LIMIT: Duration = Duration::from_millis(100);
const CAPPED: &str = "capped";
const OPEN: &str = "open";

/// Results of the changes.
#[derive(Default)]
struct Changes {
    /// From a command to its answer, in milliseconds.
    answered_ms: Vec<f64>,
    /// From its answer to its effect.
    effect_ms: Vec<f64>,
    /// Changes whose effect was not seen within the limit.
    unseen: usize,
}

/// Waits until the volume's rate is on the right side of `limit`; nothing when it is not in time.
fn effect(crowd: &Crowd, limit: f64, below: bool) -> Result<Option<Duration>> {
    let begun = Instant::now();
    let mut seen: VecDeque<(Instant, u64)> = [(begun, crowd.answered(CHANGED))].into();
    while begun.elapsed() < LIMIT {
        interrupt::check()?;
        std::thread::sleep(STEP);
        let (now, answered) = (Instant::now(), crowd.answered(CHANGED));
        seen.push_back((now, answered));
        while seen.len() > 2 && now - seen[1].0 >= SEEN {
            seen.pop_front();
        }
        let (then, before) = seen[0];
        if now - then >= SEEN {
            let rate = (answered - before) as f64 / (now - then).as_secs_f64();
            if (rate < limit) == below {
                return Ok(Some(now - begun));
            }
        }
    }
    Ok(None)
}

fn change(stage: &Stage, crowd: &Crowd, rates: [f64; 2], with: &Live) -> Result<Changes> {
    let every = Duration::from_secs(60) / with.changes;
    let limit = (rates[0] * rates[1]).sqrt();
    let mut changes = Changes::default();
    let begun = Instant::now();
    let count = u64::from(with.changes) * with.seconds / 60;
    for number in 0..count {
        let due = begun + every * number as u32;
        interrupt::pause(due.saturating_duration_since(Instant::now()))?;
        let caps = number % 2 == 0;
        let asked = Instant::now();
        stage.give(NAMES[CHANGED], if caps { CAPPED } else { OPEN })?;
        changes
            .answered_ms
            .push(asked.elapsed().as_secs_f64() * 1e3);
        match effect(crowd, limit, caps)? {
            Some(time) => changes.effect_ms.push(time.as_secs_f64() * 1e3),
            None => changes.unseen += 1,
        }
    }
    Ok(changes)
}

fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() as f64 * percent / 100.0).ceil() as usize;
    let found = sorted.get(rank.saturating_sub(1));
    found.copied().unwrap_or(f64::NAN)
}

fn tenants(volumes: &[Volume]) -> Result<Vec<Tenant>> {
    volumes
        .iter()
        .map(|volume| tenant(volume, USUAL, 0))
        .collect()
}

/// All volumes concurrently, with an action meanwhile.
fn together<T>(
    volumes: &[Volume],
    seconds: u64,
    meanwhile: impl FnOnce(&Crowd) -> Result<T>,
) -> Result<(Outcome, T)> {
    let crowd = Crowd::start(tenants(volumes)?, Duration::from_secs(seconds))?;
    let done = meanwhile(&crowd)?;
    Ok((settled(crowd.finish(|_| Ok(()))?)?, done))
}

fn judged(outcome: &Outcome, floor: f64) -> Judged {
    Judged::of(&outcome.of(NAMES[0]).windows, floor, FLOOR_MS * 1_000_000)
}

fn show(changes: &Changes, before: Judged, after: Judged, with: &Live) {
    let row = |name: &str, values: &[f64]| {
        let mut row = vec![name.to_owned(), values.len().to_string()];
        row.extend([50.0, 99.0, 100.0].map(|at| format!("{:.1}", percentile(values, at))));
        row
    };
    let rows = [
        row("command to answer", &changes.answered_ms),
        row("answer to effect", &changes.effect_ms),
    ];
    let head = ["", "count", "p50 ms", "p99 ms", "max ms"];
    println!("{}", screen::table(&head, &rows));
    let lost = |judged: Judged| 100.0 - judged.floor_percent;
    verdict(
        changes.unseen == 0,
        &format!("effect within {} ms", LIMIT.as_millis()),
        &format!(
            "{} of {} changes at {} a minute, {} not",
            changes.effect_ms.len(),
            changes.answered_ms.len(),
            with.changes,
            changes.unseen
        ),
    );
    verdict(
        lost(after) <= lost(before) || lost(after) == 0.0,
        "no window of policy 1 lost by them",
        &format!(
            "below its floor in {:.2} % of {} windows, and in {:.2} % of {} without changes",
            lost(after),
            after.windows,
            lost(before),
            before.windows
        ),
    );
}

/// The volume that is changed has too little for its rate to tell anything in the time that counts.
fn show_not_told(control: &Judged, open: f64) -> Result<()> {
    let why = format!(
        "the volume that is changed gets {} IOPS beside policy 1, of which no change can be seen within {} ms: try again \
         when the machine is quiet",
        thousands(open),
        LIMIT.as_millis()
    );
    not_told(&format!("effect within {} ms", LIMIT.as_millis()), &why);
    let below = 100.0 - control.floor_percent;
    let seen = format!(
        "below its floor in {below:.2} % of {} windows without changes",
        control.windows
    );
    not_told("no window of policy 1 lost by them", &seen);
    Ok(())
}

fn go(stage: &Stage, volumes: &[Volume], with: &Live) -> Result<()> {
    let floor = (alone(&volumes[0], USUAL, 2)? * FLOOR_PART).floor();
    let (iops, latency) = ((floor as u64).to_string(), format!("{FLOOR_MS}ms"));
    let figures = ["--min-iops", &iops, "--max-latency", &latency];
    stage.policy(NAMES[0], 1, &figures)?;
    stage.give(NAMES[0], NAMES[0])?;
    stage.policy(OPEN, 3, &["--min-iops", "100"])?;
    stage.give(NAMES[CHANGED], OPEN)?;
    stage.give(NAMES[2], "3")?;
    let (control, ()) = together(volumes, with.seconds, |_| Ok(()))?;
    let open = control.of(NAMES[CHANGED]).iops();
    let cap = (open * CAP_PART).floor();
    if cap < LEAST_CAP {
        return show_not_told(&judged(&control, floor), open);
    }
    println!(
        "  policy 1 has a floor of {} IOPS; the volume that is changed gets {}, and {} when capped",
        thousands(floor),
        thousands(open),
        thousands(cap)
    );
    stage.policy(CAPPED, 3, &["--max-iops", &(cap as u64).to_string()])?;
    let time = with.seconds + 1;
    let (after, changes) = together(volumes, time, |crowd| {
        change(stage, crowd, [open, cap], with)
    })?;
    show(
        &changes,
        judged(&control, floor),
        judged(&after, floor),
        with,
    );
    Ok(())
}

/// Measures, and prints the table.
///
/// # Errors
/// When a change is refused, a request fails, or after an interrupt.
pub fn run(convect: &Path, with: &Live) -> Result<()> {
    println!(
        "{} changes of policy a minute for {} s, three volumes with 4 KiB requests, 70 % reads, {} outstanding each",
        with.changes, with.seconds, USUAL.depth
    );
    let (mut stage, volumes) = scene::pool(convect, "live", &with.pool, &NAMES)?;
    let measured = go(&stage, &volumes, with);
    stage.explain(measured)?;
    stage.stop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_of_those_that_there_are() {
        let values = [5.0, 1.0, 2.0, 4.0, 3.0];
        assert_eq!(percentile(&values, 50.0), 3.0);
        assert_eq!(percentile(&values, 99.0), 5.0);
        assert_eq!(percentile(&values, 100.0), 5.0);
        assert!(percentile(&[], 50.0).is_nan());
    }
}
