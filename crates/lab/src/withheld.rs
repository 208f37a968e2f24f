//! Stolen time: time in which a program that only reads the clock does not run, as the host of a
//! virtual machine gives the core to others.

use crate::failure::Result;
use crate::machine;
use std::time::{Duration, Instant};

/// How long is looked.
const TIME: Duration = Duration::from_secs(3);

/// Of one core.
pub struct Withheld {
    /// The share of all moments at which a newcomer has to wait longer than a limit.
    pub share: f64,
    /// The longest time without the core.
    pub longest: Duration,
}

/// Examines these cores at the same time, for three seconds in which nothing else is to run: how often somebody would
/// wait longer than `limit` for each.
///
/// # Errors
/// When there is no such core.
pub fn of_cores(cores: [usize; 2], limit: Duration) -> Result<[Withheld; 2]> {
    std::thread::scope(|scope| {
        let looks =
            cores.map(|core| scope.spawn(move || machine::on_core(core, || Ok(look(limit)))));
        let [one, other] = looks.map(|look| look.join().expect("a look at a clock does not panic"));
        Ok([one?, other?])
    })
}

fn look(limit: Duration) -> Withheld {
    let began = Instant::now();
    let (mut before, mut waits, mut longest) = (began, Duration::ZERO, Duration::ZERO);
    while before - began < TIME {
        let now = Instant::now();
        let gap = now - before;
        // A newcomer near its end waits less.
        waits += gap.saturating_sub(limit);
        longest = longest.max(gap);
        before = now;
    }
    Withheld {
        share: waits.as_secs_f64() / (before - began).as_secs_f64(),
        longest,
    }
}
