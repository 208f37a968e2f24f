//! One measurement with its progress line.

use super::outcome::{Run, Shares};
use crate::failure::{Failure, Result};
use crate::fio::{self, Figures, Load, Pattern};
use crate::scene::{POOL, Scene};
use crate::screen::{self, Progress, thousands};
use api::v1::Counters;
use std::time::Instant;

/// A line of what happens while a load runs.
struct Live<'a> {
    name: &'a str,
    seconds: u64,
    begun: Instant,
    progress: Progress,
    last: Option<(Counters, Instant)>,
}

impl<'a> Live<'a> {
    fn new(name: &'a str, seconds: u64) -> Self {
        let begun = Instant::now();
        Self {
            name,
            seconds,
            begun,
            progress: Progress::new(),
            last: None,
        }
    }

    fn draw(&mut self, now: Option<Counters>) {
        let went = self.begun.elapsed().as_secs_f64();
        let bar = screen::bar(went / self.seconds as f64, 20);
        let mut line = format!("  {:<24} {bar} {went:>4.0} s", self.name);
        if let Some(now) = now {
            let at = Instant::now();
            if let Some((then, since)) = self.last.replace((now, at)) {
                let reads = now.reads.saturating_sub(then.reads) as f64;
                let iops = reads / (at - since).as_secs_f64();
                line += &format!("  {:>8} IOPS", thousands(iops));
                if let Some(shares) = Shares::between(&then, &now) {
                    line += &format!(
                        "   RAM {:>3.0} %  fast {:>3.0} %  slow {:>3.0} %",
                        shares.ram * 100.0,
                        shares.fast * 100.0,
                        shares.slow * 100.0
                    );
                }
            }
        }
        self.progress.draw(&line);
    }
}

/// Measures random reads of a hot set of `hot` bytes spread over the volume's `size`, and where
/// they were served from.
pub fn volume(scene: &Scene, name: &str, hot: u64, size: u64, seconds: u64) -> Result<Run> {
    let whole = Load::random(scene.target(), Pattern::RandomRead, 0, size, seconds);
    let load = Load {
        hot: Some(hot),
        ..whole
    };
    let mut live = Live::new(name, seconds);
    let before = scene.daemon.counters(POOL)?;
    let figures = fio::run(&load, scene.scratch.path(), || {
        if live.progress.is_due() {
            live.draw(Some(scene.daemon.counters(POOL)?));
        }
        Ok(())
    })?;
    let after = scene.daemon.counters(POOL)?;
    let shares = Shares::between(&before, &after)
        .ok_or_else(|| Failure::new("the pool counted no reads while fio read"))?;
    Ok(Run {
        name: name.to_owned(),
        figures,
        shares,
    })
}

/// Measures the same load on something else than the volume.
pub fn other(scene: &Scene, name: &str, load: &Load) -> Result<Figures> {
    let mut live = Live::new(name, load.seconds);
    fio::run(load, scene.scratch.path(), || {
        if live.progress.is_due() {
            live.draw(None);
        }
        Ok(())
    })
}
