//! Background work beside policy 1: a scrub, a resync and demotion concurrently, alternating with rounds without them.

use super::arguments::Background;
use super::scene::{self, Kind, Volume, measure, paced, verdict};
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::{Content, fill};
use crate::screen::{self, thousands};
use crate::scrub_cost::median;
use crate::tenants::{Drives, POOL, Stage};
use std::path::Path;
use std::time::Duration;
use units::format_bytes;

const FIRST: &str = "policy-1";
const BULK: &str = "bulk";
/// Per cent by which p99 may be higher.
const MORE_PERCENT: f64 = 10.0;
const KIND: Kind = Kind {
    blocks: "4k",
    read_percent: 70,
    depth: 64,
};
/// How long the pool may take until nothing is left to be done.
const SETTLE: Duration = Duration::from_secs(300);
/// Bytes on the fast tier that do not count as work left for demotion.
const LITTLE: u64 = 32 << 20;

/// Background work in a round, in bytes.
#[derive(Clone, Copy, Default)]
struct Done {
    scrubbed: u64,
    demoted: u64,
    /// Per cent that the drive which returned had of what it lacked.
    synced: u8,
}

/// Figures of rounds with or without background work.
#[derive(Default)]
struct Rounds {
    p99_ms: Vec<f64>,
    iops: Vec<f64>,
}

struct Scene<'a> {
    stage: &'a Stage,
    first: Volume,
    bulk: Volume,
    with: &'a Background,
}

impl Scene<'_> {
    fn round(&self, rounds: &mut Rounds) -> Result<()> {
        let tenant = paced(&self.first, KIND, f64::from(self.with.rate), 0)?;
        let outcome = measure(vec![tenant], self.with.seconds)?;
        let seen = outcome.of(FIRST);
        rounds.p99_ms.push(seen.percentile_ns(99.0) as f64 / 1e6);
        rounds.iops.push(seen.iops());
        Ok(())
    }

    /// Waits until mirrors are whole and nothing is left to be demoted.
    fn settle(&self) -> Result<()> {
        let settled = interrupt::wait_for(SETTLE, || {
            let pool = self.stage.daemon.pool(POOL)?;
            let mut drives = pool.vdrives.iter().flat_map(|vdrive| &vdrive.drives);
            let whole = drives.all(|drive| drive.state == "online");
            Ok(whole && pool.fast_dirty <= LITTLE && pool.scrub.state != "running")
        })?;
        match settled {
            true => Ok(()),
            false => Err(Failure::new(format!(
                "background work is not over after {} s: take a smaller --bulk",
                SETTLE.as_secs()
            ))),
        }
    }

    /// A drive of the fast mirror that is not the only one.
    fn drive(&self) -> Result<String> {
        let pool = self.stage.daemon.pool(POOL)?;
        let mirror = pool.vdrives.iter().find(|vdrive| vdrive.drives.len() == 2);
        let drive = mirror.and_then(|vdrive| vdrive.drives.get(1));
        let drive = drive.ok_or_else(|| Failure::new("the pool has no mirror"))?;
        Ok(drive.spec.clone())
    }

    /// Gives the pool all three kinds of work, measures beside them, and says what was done meanwhile.
    fn busy_round(&self, rounds: &mut Rounds) -> Result<Done> {
        let (daemon, drive) = (&self.stage.daemon, self.drive()?);
        daemon.run(&["pool", "offline", POOL, &drive])?;
        fill(&self.bulk.disk, self.bulk.bytes, Content::Random)?;
        daemon.run(&["pool", "online", POOL, &drive, "--background"])?;
        daemon.run(&["pool", "scrub", POOL])?;
        let before = daemon.counters(POOL)?.demoted_bytes;
        self.round(rounds)?;
        let pool = daemon.pool(POOL)?;
        let drives = pool.vdrives.iter().flat_map(|vdrive| &vdrive.drives);
        let synced = drives.filter_map(|drive| drive.synced_percent).min();
        let done = Done {
            scrubbed: pool.scrub.bytes,
            demoted: daemon.counters(POOL)?.demoted_bytes - before,
            synced: synced.unwrap_or(100),
        };
        if pool.scrub.state == "running" {
            daemon.run(&["pool", "scrub", POOL, "--cancel"])?;
        }
        self.settle()?;
        Ok(done)
    }

    fn go(&self) -> Result<([Rounds; 2], Vec<Done>)> {
        let figures = [
            "--min-iops",
            &self.with.rate.to_string(),
            "--max-latency",
            "10ms",
        ];
        self.stage.policy(FIRST, 1, &figures)?;
        self.stage.give(FIRST, FIRST)?;
        let (mut without, mut with, mut done) = (Rounds::default(), Rounds::default(), Vec::new());
        self.settle()?;
        // The first one warms up and does not count.
        self.round(&mut Rounds::default())?;
        for round in 1..=self.with.rounds {
            self.round(&mut without)?;
            done.push(self.busy_round(&mut with)?);
            println!("  round {round} of {}", self.with.rounds);
        }
        Ok(([without, with], done))
    }
}

fn show([without, with]: &[Rounds; 2], done: &[Done], seconds: u64) {
    let row = |name: &str, rounds: &Rounds| {
        vec![
            name.to_owned(),
            thousands(median(&rounds.iops)),
            format!("{:.3}", median(&rounds.p99_ms)),
        ]
    };
    let rows = [row("without", without), row("with", with)];
    let head = ["background work", "IOPS", "p99 ms"];
    println!("{}", screen::table(&head, &rows));
    let middle = |of: fn(&Done) -> f64| median(&done.iter().map(of).collect::<Vec<_>>());
    let rate = |bytes: f64| format!("{}/s", format_bytes((bytes / seconds as f64) as u64));
    println!(
        "  meanwhile: scrubbed {}, demoted {}, resync at {:.0} % at the end; medians",
        rate(middle(|done| done.scrubbed as f64)),
        rate(middle(|done| done.demoted as f64)),
        middle(|done| f64::from(done.synced))
    );
    let more =
        100.0 * (median(&with.p99_ms) / median(&without.p99_ms).max(f64::MIN_POSITIVE) - 1.0);
    verdict(
        more <= MORE_PERCENT,
        &format!("p99 of policy 1 at most {MORE_PERCENT} % higher"),
        &format!("{more:+.1} %"),
    );
    let all = done
        .iter()
        .all(|done| done.scrubbed > 0 && done.demoted > 0 && done.synced > 0);
    verdict(
        all,
        "each kind of work went on in each round",
        &format!("{all}"),
    );
}

fn volumes(stage: &Stage, with: &Background) -> Result<[Volume; 2]> {
    let volume = |name: &str, bytes| -> Result<Volume> {
        Ok(Volume {
            name: name.to_owned(),
            disk: stage.filled_guest(name, bytes)?,
            bytes,
        })
    };
    Ok([volume(FIRST, with.volume)?, volume(BULK, with.bulk)?])
}

/// Measures, and prints the table.
///
/// # Errors
/// When something cannot be measured.
pub fn run(convect: &Path, with: &Background) -> Result<()> {
    println!(
        "4 KiB, 70 % reads, {} a second with policy 1, for {} s each; medians of {} rounds with a scrub, a resync of the fast \
         mirror and demotion at once, and as many without",
        with.rate, with.seconds, with.rounds
    );
    let drives = Drives {
        fast: 2 * (with.volume + with.bulk) + scene::POOL_BYTES,
        slow: with.volume + with.bulk + scene::POOL_BYTES,
    };
    let mut stage = Stage::with_fast_mirror(convect, "background", drives, &with.behind)?;
    let made = volumes(&stage, with);
    let [first, bulk] = stage.explain(made)?;
    let scene = Scene {
        stage: &stage,
        first,
        bulk,
        with,
    };
    let measured = scene.go();
    let (rounds, done) = stage.explain(measured)?;
    show(&rounds, &done, with.seconds);
    stage.stop()
}
