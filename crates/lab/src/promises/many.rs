//! Many volumes with policies: memory per volume, and no work for idle ones.

use super::arguments::Many;
use super::scene::{not_told, verdict};
use crate::failure::Result;
use crate::interrupt;
use crate::machine;
use crate::screen::{self, Progress};
use crate::scrub_cost::median;
use crate::tenants::{Drives, Stage};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes that a policy of a volume may take.
const BYTES_MAX: f64 = 256.0;
/// Hundredths of a core that idle volumes with policies may take beyond those without.
const CPU_PERCENT: f64 = 0.5;
/// Size of each volume.
const VOLUME: u64 = 1 << 30;
/// The policy that they all have.
const POLICY: &str = "4";
/// Work after that many changes belongs to them, and is left out.
const SETTLE: Duration = Duration::from_secs(3);

fn name(number: u32) -> String {
    format!("volume-{number:05}")
}

/// Usage of an idle daemon: bytes of memory, and per cent of a core.
fn idle(stage: &Stage, seconds: u64) -> Result<(u64, f64)> {
    interrupt::pause(SETTLE)?;
    let pid = stage.daemon.pid();
    let (begun, before) = (Instant::now(), machine::processor_seconds(pid)?);
    interrupt::pause(Duration::from_secs(seconds))?;
    let used = machine::processor_seconds(pid)? - before;
    let percent = 100.0 * used / begun.elapsed().as_secs_f64();
    Ok((machine::resident_bytes(pid)?, percent))
}

/// Does something with each volume.
fn each(with: &Many, doing: &str, mut what: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let mut progress = Progress::new();
    for number in 1..=with.volumes {
        interrupt::check()?;
        what(&name(number))?;
        if progress.is_due() {
            progress.draw(&format!("  {doing} {number} of {}", with.volumes));
        }
    }
    Ok(())
}

/// What looks with policies have beyond those without just before and after: bytes, and per cent of a core; medians. What
/// grows with every change whatever it is, as a history does, is not counted.
fn beyond(seen: &[(u64, f64)]) -> [f64; 2] {
    let of = |value: &dyn Fn(&(u64, f64)) -> f64| {
        let rounds = seen.windows(3).step_by(2);
        let more = rounds.map(|of| value(&of[1]) - (value(&of[0]) + value(&of[2])) / 2.0);
        median(&more.collect::<Vec<_>>())
    };
    [of(&|look| look.0 as f64), of(&|look| look.1)]
}

/// By how many bytes looks without policies differ, beyond what grows from each to the next: what the allocator keeps.
fn spread(seen: &[(u64, f64)]) -> f64 {
    let without: Vec<f64> = seen.iter().step_by(2).map(|look| look.0 as f64).collect();
    let steps = without.windows(2).map(|pair| pair[1] - pair[0]);
    let most = steps.clone().fold(f64::NEG_INFINITY, f64::max);
    most - steps.fold(f64::INFINITY, f64::min)
}

fn go(stage: &Stage, with: &Many) -> Result<()> {
    each(with, "creating", |name| stage.volume(name, VOLUME))?;
    // Once given and taken away: what allocators keep is there before it is examined.
    each(with, "warming up", |name| stage.give(name, POLICY))?;
    each(with, "warming up", |name| stage.give(name, "none"))?;
    let (mut rows, mut seen) = (Vec::new(), vec![idle(stage, with.seconds)?]);
    for _ in 0..with.rounds {
        for policy in [POLICY, "none"] {
            each(with, "changing", |name| stage.give(name, policy))?;
            seen.push(idle(stage, with.seconds)?);
        }
    }
    for (number, (bytes, percent)) in seen.iter().enumerate() {
        let name = if number % 2 == 0 {
            "without policies"
        } else {
            "with"
        };
        let (bytes, percent) = (units::format_bytes(*bytes), format!("{percent:.2}"));
        rows.push(vec![name.to_owned(), bytes, percent]);
    }
    println!("{}", screen::table(&["", "resident", "% of a core"], &rows));
    let [bytes, more] = beyond(&seen);
    let bytes = bytes / f64::from(with.volumes);
    let bar = format!("at most {BYTES_MAX} bytes for the policy of a volume");
    match spread(&seen) > BYTES_MAX * f64::from(with.volumes) {
        true => not_told(
            &bar,
            &format!(
                "{bytes:.0}, while memory without policies differs by {} between looks",
                units::format_bytes(spread(&seen) as u64)
            ),
        ),
        false => verdict(bytes <= BYTES_MAX, &bar, &format!("{bytes:.0}")),
    }
    verdict(
        more <= CPU_PERCENT,
        "nothing is done for idle volumes",
        &format!("{more:+.2} % of a core"),
    );
    Ok(())
}

/// Measures, and prints the table.
///
/// # Errors
/// When something cannot be measured.
pub fn run(convect: &Path, with: &Many) -> Result<()> {
    println!("{} volumes, none of them in use", with.volumes);
    let drives = Drives {
        fast: 1 << 30,
        slow: 1 << 30,
    };
    let mut stage = Stage::in_memory(convect, "many", drives)?;
    let measured = go(&stage, with);
    stage.explain(measured)?;
    stage.stop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_with_every_change_is_not_counted() {
        let seen: Vec<(u64, f64)> = (0..7)
            .map(|look| (1_000 + 50 * look + 7 * (look % 2), 1.0))
            .collect();
        assert_eq!(beyond(&seen), [7.0, 0.0]);
        assert_eq!(spread(&seen), 0.0);
        let noisy = [(10, 0.0), (1, 0.0), (30, 0.0), (1, 0.0), (15, 0.0)];
        assert_eq!(spread(&noisy), 35.0);
    }
}
