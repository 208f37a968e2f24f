//! The phases in their order, and their output.

use super::arguments::Storm;
use super::outcome::{Kind, Machine, Phase, Storms};
use super::report;
use super::scene::{DATABASE, Scene};
use super::table;
use crate::daemon::Daemon;
use crate::demo::Shares;
use crate::failure::{Failure, Result, While};
use crate::machine;
use crate::screen::{self, thousands};
use crate::tenants::{Crowd, POOL, Tenant, Window};
use api::v1::Counters;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};
use units::format_bytes;

/// The database alone is measured for this part of a storm's time.
const ALONE_PART: u64 = 3;
/// Windows that a line of progress is about: a second.
const SHOWN: usize = 10;

/// Says how far a phase is.
fn tell(crowd: &Crowd, kind: Kind, names: &[String], time: Duration) {
    let went = crowd.elapsed();
    let bar = screen::bar(went.as_secs_f64() / time.as_secs_f64(), 16);
    let mut line = format!("  {:<24} {bar} {:>4} s", kind.name(), went.as_secs());
    for (number, name) in names.iter().enumerate() {
        let last = crowd.last(number, SHOWN);
        let iops: u64 = last.iter().map(|window| window.answered).sum();
        let iops = iops as f64 * SHOWN as f64 / last.len().max(1) as f64;
        line += &format!("  {name} {}", thousands(iops));
        let starting = last.last().map_or(0, |window: &Window| window.starting);
        if starting > 0 {
            line += &format!(" ({starting} boot)");
        }
    }
    // Lines of their own, so that a log of it can be read too; who does not listen misses nothing.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// How often a line of progress is written.
const TELL: Duration = Duration::from_secs(5);

/// Processor times in seconds and what the pool counted, at a moment.
struct Look {
    at: Instant,
    cores: [f64; 3],
    counters: Counters,
}

impl Look {
    fn now(daemon: &Daemon) -> Result<Self> {
        let server = machine::processor_seconds(daemon.pid())?;
        let own = machine::own_processor_seconds();
        Ok(Self {
            at: Instant::now(),
            cores: [server, own, machine::busy_seconds()?],
            counters: daemon.counters(POOL)?,
        })
    }

    /// Work since the previous reading.
    fn since(&self, before: &Self) -> Machine {
        let seconds = (self.at - before.at).as_secs_f64();
        let cores = |index: usize| (self.cores[index] - before.cores[index]) / seconds;
        let (daemon_cores, client_cores) = (cores(0), cores(1));
        let served = Shares::between(&before.counters, &self.counters);
        Machine {
            daemon_cores,
            client_cores,
            other_cores: (cores(2) - daemon_cores - client_cores).max(0.0),
            served: served.map_or([0.0; 3], |of| [of.ram, of.fast, of.slow]),
        }
    }
}

fn phase(scene: &Scene, kind: Kind, tenants: Vec<Tenant>, time: Duration) -> Result<Phase> {
    let before = Look::now(&scene.stage.daemon)?;
    let names: Vec<String> = tenants.iter().map(|tenant| tenant.name.clone()).collect();
    let crowd = Crowd::start(tenants, time)?;
    let mut due = Duration::ZERO;
    let outcome = crowd.finish(|crowd| {
        if crowd.elapsed() >= due {
            due = crowd.elapsed() + TELL;
            tell(crowd, kind, &names, time);
        }
        Ok(())
    })?;
    Ok(Phase {
        kind,
        outcome,
        counted: None,
        machine: Look::now(&scene.stage.daemon)?.since(&before),
    })
}

/// All tenants concurrently.
fn storm(scene: &Scene, kind: Kind, time: Duration) -> Result<Phase> {
    let mut tenants = vec![scene.database()?];
    tenants.extend(scene.others()?);
    phase(scene, kind, tenants, time)
}

/// A real database, beside everybody but the load that stands for one, or alone.
fn transactions(scene: &Scene, kind: Kind, time: Duration, storms: &mut Storms) -> Result<()> {
    let Some(postgres) = &scene.postgres else {
        return Ok(());
    };
    println!("  {:<24} PostgreSQL for {} s", kind.name(), time.as_secs());
    let others = match kind {
        Kind::Alone => Vec::new(),
        Kind::Without | Kind::With => scene.others()?,
    };
    // Until it is stopped.
    let crowd = Crowd::start(others, Duration::from_secs(u32::MAX.into()))?;
    let seen = postgres.bench(time.as_secs().max(1));
    crowd.stop();
    crowd.finish(|_| Ok(()))?;
    storms.transactions.push((kind, seen?));
    Ok(())
}

/// Measurements of a phase; true after an interrupt.
fn add(storms: &mut Storms, phase: Phase) -> bool {
    let interrupted = phase.outcome.interrupted;
    storms.phases.push(phase);
    interrupted
}

fn measure(scene: &Scene, with: &Storm, storms: &mut Storms) -> Result<()> {
    let time = Duration::from_secs(with.seconds);
    let alone = time / ALONE_PART as u32;
    if add(
        storms,
        phase(scene, Kind::Alone, vec![scene.database()?], alone)?,
    ) {
        return Err(Failure::interrupted());
    }
    println!(
        "  alone: {} IOPS; the floor of policy 1 is {}",
        thousands(storms.alone_iops()),
        thousands(storms.floor_iops())
    );
    transactions(scene, Kind::Alone, alone, storms)?;
    if add(storms, storm(scene, Kind::Without, time)?) {
        return Err(Failure::interrupted());
    }
    transactions(scene, Kind::Without, time, storms)?;
    scene.give_policies(storms.floor_iops() as u64)?;
    let mut last = storm(scene, Kind::With, time)?;
    last.counted = scene.stage.windows_of(DATABASE)?;
    if add(storms, last) {
        return Err(Failure::interrupted());
    }
    transactions(scene, Kind::With, time, storms)
}

fn show(storms: &Storms, with: &Storm) -> Result<()> {
    println!("\n{}", table::text(storms));
    let report = with.report.display();
    std::fs::write(&with.report, report::html(storms))
        .during(|| format!("cannot write {report}"))?;
    println!("  report: {report}");
    if let Some(path) = &with.json {
        let text = serde_json::to_string(&table::json(storms)).during(|| "JSON".to_owned())?;
        std::fs::write(path, text).during(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Creates the pool, and lets the storm go over it twice.
///
/// # Errors
/// When something cannot be made, a request fails, or after an interrupt: then the results so far are shown first.
pub fn run(convect: &Path, with: &Storm) -> Result<()> {
    let mut storms = Storms {
        machine: machine::describe(),
        desktops: with.desktops,
        boot_bytes: with.boot_bytes(),
        depth: with.depth,
        phases: Vec::new(),
        transactions: Vec::new(),
    };
    println!(
        "{} desktops read {} each to boot, beside a database, mail and a backup; {} s without policies and {} s with\n  {}",
        with.desktops,
        format_bytes(storms.boot_bytes),
        with.seconds,
        with.seconds,
        storms.machine
    );
    let mut scene = Scene::new(convect, with)?;
    let measured = measure(&scene, with, &mut storms);
    let measured = scene.stage.explain(measured);
    if !storms.phases.is_empty() {
        show(&storms, with)?;
    }
    measured?;
    // A database ends before what it is on.
    scene.postgres = None;
    scene.stage.stop()
}
