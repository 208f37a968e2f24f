//! One phase: victims, newcomers, and one attacker or none.

use super::attackers::Attacker;
use super::doors::{self, Door, Doors, Told};
use super::judge::{
    AttackSeen, DESCRIPTORS_MORE, DoorSeen, MEMORY_MAX, Seen, VictimSeen, judge, p99_us,
};
use super::scene::Scene;
use super::stage::Stage;
use super::victims::{Progress, Victim};
use super::watch::Taken;
use crate::daemon::Daemon;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::Series;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// How long victims may take until their sessions are there.
const BEGIN_MAX: Duration = Duration::from_secs(60);
/// How long an attack lasts beyond its time where a victim was not answered or a newcomer did not come in yet.
const MORE_MAX: Duration = Duration::from_secs(20);
/// An attack ends at this multiple of the permitted memory.
const FAR_TIMES: u64 = 3;
/// How long the daemon has to give back what an attacker took.
const RETURN_MAX: Duration = Duration::from_secs(60);
/// From one sample to the next, and from one newcomer to the next.
const SAMPLE: Duration = Duration::from_millis(20);
const KNOCK: Duration = Duration::from_millis(200);

/// Parameters of a phase.
#[derive(Clone, Copy)]
pub struct Plan {
    /// The attacker.
    pub attacker: Option<&'static Attacker>,
    /// For how long.
    pub seconds: u64,
    /// Where chance begins.
    pub seed: u64,
    /// Whether the attacker leaves the processor to everybody else.
    pub gives_way: bool,
    /// Resident bytes of this daemon without an attacker, once that is known.
    pub idle_memory: Option<u64>,
}

/// When the parts of a phase end.
#[derive(Default)]
struct Ends {
    load: AtomicBool,
    doors: AtomicBool,
    attack: AtomicBool,
    watch: AtomicBool,
}

fn is_set(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Relaxed)
}

fn set(flag: &AtomicBool) {
    flag.store(true, Ordering::Relaxed);
}

/// Samples the daemon's usage until the phase ends; the maximum of each. An attacker who has got far beyond the limit is
/// stopped: others need the machine, too.
fn watch(pid: u32, log: &Path, ends: &Ends, idle_memory: Option<u64>) -> Taken {
    let far = idle_memory.map_or(u64::MAX, |idle| idle + FAR_TIMES * MEMORY_MAX);
    let mut most = Taken::default();
    // One that has ended takes nothing; that it ended is noticed elsewhere.
    while !is_set(&ends.watch)
        && let Ok(taken) = Taken::now(pid, log)
    {
        most = most.most(taken);
        if taken.memory > far {
            set(&ends.attack);
        }
        thread::sleep(SAMPLE);
    }
    most
}

/// Knocks at a door until the phase ends.
fn knock(doors: &Doors, door: &Door, entered: &AtomicBool, over: &AtomicBool) -> (DoorSeen, Told) {
    let mut seen = DoorSeen {
        name: door.name,
        ..DoorSeen::default()
    };
    let mut most = Told::default();
    while !is_set(over) {
        match (door.knock)(doors) {
            Ok(told) => {
                seen.entered += 1;
                set(entered);
                let told = told.unwrap_or_default();
                most.bytes = most.bytes.max(told.bytes);
                most.waiting = most.waiting.max(told.waiting);
            }
            Err(failure) => {
                seen.refused += 1;
                seen.why = Some(failure.to_string());
            }
        }
        let until = Instant::now() + KNOCK;
        while !is_set(over) && Instant::now() < until {
            thread::sleep(SAMPLE);
        }
    }
    seen.open_in_the_end = is_set(entered);
    (seen, most)
}

/// A victim that runs.
struct Running<'scope> {
    progress: Arc<Progress>,
    thread: ScopedJoinHandle<'scope, Result<Series>>,
    protocol: &'static str,
    /// Its counters when the attack began.
    seconds: u64,
    answered: u64,
}

impl<'scope> Running<'scope> {
    fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        victim: &'env Victim,
        seconds: u64,
        over: &'env AtomicBool,
    ) -> Self {
        let progress = Arc::new(Progress::default());
        let theirs = Arc::clone(&progress);
        Self {
            thread: scope.spawn(move || victim.run(seconds, &theirs, over)),
            progress,
            protocol: victim.protocol,
            seconds: 0,
            answered: 0,
        }
    }

    fn has_begun(&self) -> bool {
        is_set(&self.progress.begun) || is_set(&self.progress.ended)
    }

    fn mark(&mut self) {
        self.seconds = self.progress.seconds.load(Ordering::Relaxed);
        self.answered = self.progress.answered.load(Ordering::Relaxed);
    }

    /// Whether something was answered since the mark, or never will be.
    fn was_answered(&self) -> bool {
        let answered = self.progress.answered.load(Ordering::Relaxed);
        answered > self.answered || is_set(&self.progress.ended)
    }

    fn end(self) -> Result<VictimSeen> {
        let ended = self.thread.join();
        let ended = ended.unwrap_or_else(|_| Err(Failure::new("its load ended unexpectedly")));
        let mut seen = VictimSeen {
            protocol: self.protocol,
            ..VictimSeen::default()
        };
        match ended {
            Ok(mut seconds) => {
                // What began before the attack is left out, as far as that leaves anything.
                let before = (self.seconds as usize + 1).min(seconds.0.len().saturating_sub(1));
                seconds.0.drain(..before);
                seen.answered = seconds.whole().count();
                seen.p99_us = p99_us(&seconds);
            }
            Err(failure) if failure.is_interrupt() => return Err(failure),
            Err(failure) => seen.lost = Some(failure.to_string()),
        }
        Ok(seen)
    }
}

/// Waits, at most so long, unless the daemon ends before.
fn wait(daemon: &mut Daemon, limit: Duration, mut holds: impl FnMut() -> bool) -> Result<()> {
    let came = interrupt::wait_for(limit, || Ok(daemon.check().is_err() || holds()));
    came.map(|_| ())
}

/// The part of a phase in which all run.
fn together(
    daemon: &mut Daemon,
    (victims, doors): (&[Victim], &Doors),
    plan: Plan,
    ends: &Ends,
    stage: &Stage<'_>,
) -> Result<Seen> {
    let (pid, log) = (daemon.pid(), daemon.log());
    let before = Taken::now(pid, &log)?;
    let entered: Vec<AtomicBool> = doors::ALL.iter().map(|_| AtomicBool::default()).collect();
    thread::scope(|scope| {
        // Whatever ends this early ends all of them.
        let _ender = Ender(ends);
        let watching = scope.spawn(|| watch(pid, &log, ends, plan.idle_memory));
        let mut running: Vec<Running<'_>> = victims
            .iter()
            .map(|victim| Running::start(scope, victim, plan.seconds, &ends.load))
            .collect();
        wait(daemon, BEGIN_MAX, || running.iter().all(Running::has_begun))?;
        running.iter_mut().for_each(Running::mark);
        let begun = Instant::now();
        let knocking: Vec<_> = doors::ALL
            .iter()
            .zip(&entered)
            .map(|(door, entered)| scope.spawn(|| knock(doors, door, entered, &ends.doors)))
            .collect();
        let attack = plan.attacker.map(|attacker| {
            scope.spawn(|| {
                stage.give_way();
                (attacker.attack)(stage);
            })
        });
        wait(daemon, Duration::from_secs(plan.seconds), || false)?;
        // Newcomers before the full effect of the attack do not count.
        let closed = |door: &AtomicBool| door.store(false, Ordering::Relaxed);
        entered.iter().for_each(closed);
        wait(daemon, MORE_MAX, || {
            running.iter().all(Running::was_answered) && entered.iter().all(is_set)
        })?;
        set(&ends.load);
        let ended: Vec<Result<VictimSeen>> = running.into_iter().map(Running::end).collect();
        let victims = ended.into_iter().collect::<Result<Vec<VictimSeen>>>()?;
        let seconds = begun.elapsed().as_secs_f64();
        set(&ends.doors);
        set(&ends.attack);
        let gone = |what: &str| Failure::new(format!("{what} ended unexpectedly"));
        let mut seen = Seen {
            attacker: plan.attacker.map(|attacker| attacker.name),
            seconds,
            victims,
            before,
            ..Seen::default()
        };
        for knocking in knocking {
            let (door, told) = knocking.join().map_err(|_| gone("a newcomer"))?;
            seen.request_memory = seen.request_memory.max(told.bytes);
            seen.waiting = seen.waiting.max(told.waiting);
            seen.doors.push(door);
        }
        if let Some(attack) = attack {
            attack.join().map_err(|_| gone("the attacker"))?;
        }
        set(&ends.watch);
        seen.most = watching.join().map_err(|_| gone("the watch"))?;
        Ok(seen)
    })
}

/// Ends everything, also where a part failed.
struct Ender<'a>(&'a Ends);

impl Drop for Ender<'_> {
    fn drop(&mut self) {
        let Ends {
            load,
            doors,
            attack,
            watch,
        } = self.0;
        [load, doors, attack, watch].into_iter().for_each(set);
    }
}

/// Runs a phase, and waits until what the attacker took has come back.
///
/// # Errors
/// After an interrupt, or a failure of the suite itself.
pub fn run(scene: &mut Scene, plan: Plan) -> Result<Seen> {
    let ends = Ends::default();
    let Scene {
        daemon,
        victims,
        places,
        doors,
        ..
    } = scene;
    let stage = Stage::new(places, &ends.attack, plan.seed, plan.gives_way);
    let mut seen = together(daemon, (victims, doors), plan, &ends, &stage)?;
    seen.attack = AttackSeen {
        deeds: stage.deeds(),
        refusals: stage.refusals(),
        why: stage.last_refusal(),
    };
    seen.idle_memory = plan.idle_memory.unwrap_or(seen.most.memory);
    let log = daemon.log();
    // Where others were harmed, the rest is not waited for, and says nothing.
    let harmed = !judge(&seen, None).is_empty();
    interrupt::wait_for(RETURN_MAX, || {
        if let Err(failure) = daemon.check() {
            seen.died = Some(failure.to_string());
            return Ok(true);
        }
        if harmed {
            return Ok(true);
        }
        seen.after = Taken::now(daemon.pid(), &log)?;
        Ok(
            seen.after.descriptors <= seen.before.descriptors + DESCRIPTORS_MORE
                && seen.after.memory <= seen.idle_memory + MEMORY_MAX,
        )
    })?;
    Ok(seen)
}
