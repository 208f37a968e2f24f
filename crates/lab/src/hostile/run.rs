//! One attacker after the other.

use super::arguments::Hostile;
use super::attackers;
use super::judge::{Seen, judge};
use super::phase::{self, Plan};
use super::report;
use super::scene::Scene;
use super::watch::Taken;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::machine;
use crate::screen::Progress;
use std::path::Path;
use std::time::{Duration, Instant};

/// Phases without an attacker are that much shorter than those with one where latency is judged, and not shorter than
/// so many seconds.
const BASE_PART: u64 = 4;
const BASE_MIN: u64 = 2;
/// Threads that the daemon may have in the end beyond those that it began with, and how long it has to end the others.
const THREADS_MORE: u64 = 8;
const THREADS_MAX: Duration = Duration::from_secs(60);

/// Results of one daemon.
struct Suite<'a> {
    convect: &'a Path,
    with: &'a Hostile,
    /// None only between one daemon and the next: they would be in the same folder.
    scene: Option<Scene>,
    idle_memory: u64,
    threads: u64,
    all: Vec<Seen>,
    progress: Progress,
}

fn threads(scene: &Scene) -> Result<u64> {
    Ok(Taken::now(scene.daemon.pid(), &scene.daemon.log())?.threads)
}

impl<'a> Suite<'a> {
    fn new(convect: &'a Path, with: &'a Hostile) -> Result<Self> {
        let mut suite = Self {
            convect,
            with,
            scene: Some(Scene::new(convect)?),
            idle_memory: 0,
            threads: 0,
            all: Vec::new(),
            progress: Progress::new(),
        };
        suite.settle()?;
        Ok(suite)
    }

    fn scene(&mut self) -> Result<&mut Scene> {
        let scene = self.scene.as_mut();
        scene.ok_or_else(|| Failure::new("there is no daemon: it could not be started again"))
    }

    /// The first phase of a daemon: what it takes without an attacker.
    fn settle(&mut self) -> Result<()> {
        let seen = self.phase(None, None)?;
        self.idle_memory = seen.most.memory;
        self.threads = threads(self.scene()?)?;
        self.all.push(seen);
        Ok(())
    }

    fn phase(
        &mut self,
        attacker: Option<&'static attackers::Attacker>,
        idle_memory: Option<u64>,
    ) -> Result<Seen> {
        let name = attacker.map_or("nobody", |attacker| attacker.name);
        if self.progress.is_due() {
            self.progress.draw(&format!("  {name}"));
        }
        let base = match self.with.judge_latency {
            true => self.with.seconds / BASE_PART,
            false => 1,
        };
        let plan = Plan {
            attacker,
            seconds: match attacker {
                Some(_) => self.with.seconds,
                None => base.max(BASE_MIN),
            },
            seed: self.with.seed,
            // The attacker's own processor time must not affect the latencies.
            gives_way: self.with.judge_latency,
            idle_memory,
        };
        let begun = Instant::now();
        let seen = phase::run(self.scene()?, plan)?;
        self.progress.clear();
        let faults = judge(&seen, None);
        println!(
            "  {name}: {} in {:.1} s",
            match faults.is_empty() {
                true => "ok".to_owned(),
                false => faults.join("; "),
            },
            begun.elapsed().as_secs_f64()
        );
        Ok(seen)
    }

    /// One attacker; and where latency is judged a phase without one. A daemon that was harmed is replaced by another,
    /// so that what the next one does is seen for itself.
    fn attack(&mut self, attacker: &'static attackers::Attacker, last: bool) -> Result<()> {
        let seen = self.phase(Some(attacker), Some(self.idle_memory))?;
        let harmed = !judge(&seen, None).is_empty();
        let died = seen.died.is_some();
        self.all.push(seen);
        if harmed {
            // One that hangs need not be waited for.
            if !died {
                self.scene()?.daemon.kill()?;
            }
            self.scene = None;
            self.scene = Some(Scene::new(self.convect)?);
            self.settle()
        } else if self.with.judge_latency || last {
            let seen = self.phase(None, Some(self.idle_memory))?;
            self.all.push(seen);
            Ok(())
        } else {
            Ok(())
        }
    }

    /// Whether the daemon's threads have ended that attackers had it start.
    fn threads_came_back(&mut self) -> Result<Option<String>> {
        let (mut left, most) = (0, self.threads + THREADS_MORE);
        let scene = self.scene()?;
        let came = interrupt::wait_for(THREADS_MAX, || {
            left = threads(scene)?;
            Ok(left <= most)
        })?;
        let sentence = || format!("{left} threads were left of {} at first", self.threads);
        Ok((!came).then(sentence))
    }
}

fn list() {
    for attacker in attackers::ALL {
        println!("  {:<24} {}", attacker.name, attacker.about);
    }
}

/// Runs the suite, and prints what each attacker costs.
///
/// # Errors
/// When something is beyond the limits, or the suite cannot be run.
pub fn run(convect: &Path, with: &Hostile) -> Result<()> {
    if with.list {
        list();
        return Ok(());
    }
    println!(
        "hostile peers for {} s each, seed {}; victims by vhost-user-blk, NBD and iSCSI: p99 in ms\n  {}",
        with.seconds,
        with.seed,
        machine::describe()
    );
    machine::raise_descriptors()?;
    let mut suite = Suite::new(convect, with)?;
    let attackers: Vec<_> = with.attackers().collect();
    for (index, attacker) in attackers.iter().enumerate() {
        suite.attack(attacker, index + 1 == attackers.len())?;
    }
    let threads = suite.threads_came_back()?;
    suite.progress.clear();
    let rows = report::rows(&suite.all, with.judge_latency);
    println!("{}", report::table(&rows));
    let mut faults = report::faults(&rows);
    faults.extend(threads);
    faults.iter().for_each(|fault| println!("  {fault}"));
    if let Some(path) = &with.json {
        report::write(&rows, path)?;
    }
    suite.scene()?.daemon.stop()?;
    match faults.len() {
        0 => Ok(()),
        count => Err(Failure::new(format!(
            "{count} limits were exceeded; they are listed above"
        ))),
    }
}
