//! Round after round: load, kill, restart, check.

use super::fio_load::{self, FioLoad};
use super::lane::{Done, Lane};
use super::ledger::Ledger;
use super::mirror::Mirrors;
use super::verify;
use crate::arguments::Torture;
use crate::chance::Chance;
use crate::daemon::Daemon;
use crate::failure::{Failure, Result, While};
use crate::interrupt;
use crate::nbd::Client;
use crate::scratch::Scratch;
use crate::screen::{self, Progress, thousands};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const POOL: &str = "torture";
/// Connections of the verifier.
const LANES: u64 = 2;
/// Lifetime of the daemon in milliseconds, from and below.
const LIFE_MS: (u64, u64) = (30, 1500);
/// Every this many rounds fio's kept region is written before the kill and checked after it.
const KEPT_EVERY: u32 = 5;
/// How long an export may take to accept connections.
const SERVE_TIME: Duration = Duration::from_secs(300);
const GIB: u64 = 1 << 30;

/// Everything under torture.
struct Bench {
    daemon: Daemon,
    socket: PathBuf,
    fio: Option<FioLoad>,
    mirrors: Option<Mirrors>,
    ledger: Arc<Mutex<Ledger>>,
    chance: Chance,
    restarts: Vec<Duration>,
    done: Done,
    blocks: u64,
    scratch: Scratch,
}

fn export(daemon: &Daemon, name: &str, size: u64, socket: &Path) -> Result<()> {
    let volume = format!("{POOL}/{name}");
    let listen = format!("unix:{}", socket.display());
    daemon.run(&["volume", "create", &volume, "--size", &size.to_string()])?;
    daemon.run(&[
        "export", "create", name, &volume, "nbd", "--listen", &listen,
    ])?;
    Ok(())
}

/// The vdrives of the pool, as `pool create` takes them.
fn vdrives(scratch: &Scratch, with: &Torture) -> Vec<String> {
    // The fast tier is smaller than the volume, so that blocks sink and rise all the time.
    let fast = (with.volume / 2).max(GIB / 2);
    let slow = with.volume + GIB;
    let drive =
        |name: &str, size: u64| format!("file:{}?size={size}", scratch.join(name).display());
    let words: &[String] = match with.mirror {
        true => &[
            "fast".to_owned(),
            "mirror".to_owned(),
            drive("fast1.img", fast),
            drive("fast2.img", fast),
            "slow".to_owned(),
            "mirror".to_owned(),
            drive("slow1.img", slow + GIB),
            drive("slow2.img", slow + GIB),
        ],
        false => &[
            "fast".to_owned(),
            drive("fast.img", fast),
            "slow".to_owned(),
            "stripe:64k".to_owned(),
            drive("slow1.img", slow),
            drive("slow2.img", slow),
            "--accept-unmirrored".to_owned(),
        ],
    };
    words.to_vec()
}

impl Bench {
    fn new(convect: &Path, with: &Torture, seed: u64) -> Result<Self> {
        let scratch = Scratch::new("torture", 2 * with.volume + 4 * GIB)?;
        let daemon = Daemon::start(convect, scratch.path(), "ram_tier = \"64M\"\n")?;
        let shards = with.shards.to_string();
        let words = vdrives(&scratch, with);
        let create = ["pool", "create", POOL, "--shards", &shards].into_iter();
        let create: Vec<&str> = create.chain(words.iter().map(String::as_str)).collect();
        daemon.run(&create)?;
        let socket = scratch.join("verify.sock");
        export(&daemon, "verify", with.volume, &socket)?;
        let fio_socket = scratch.join("fio.sock");
        export(&daemon, "fio", fio_load::VOLUME, &fio_socket)?;
        let folder = scratch.path().to_owned();
        let fio = (!with.no_fio).then_some(FioLoad {
            socket: fio_socket,
            export: "fio",
            folder,
        });
        let ledger = Arc::new(Mutex::new(Ledger::new(with.volume / units::BLOCK as u64)));
        let mut chance = Chance::new(seed);
        let mirrors = with
            .mirror
            .then(|| Mirrors::new(POOL, Chance::new(chance.next())));
        Ok(Self {
            daemon,
            socket,
            fio,
            mirrors,
            ledger,
            chance,
            restarts: Vec::new(),
            done: Done::default(),
            blocks: 0,
            scratch,
        })
    }

    fn lane(&mut self, killed: &Arc<AtomicBool>) -> Lane {
        Lane {
            socket: self.socket.clone(),
            export: "verify".to_owned(),
            ledger: Arc::clone(&self.ledger),
            killed: Arc::clone(killed),
            kept: self.mirrors.is_none(),
            chance: Chance::new(self.chance.next()),
        }
    }

    fn live(&mut self, life: Duration) -> Result<()> {
        interrupt::pause(life / 2)?;
        if let Some(mirrors) = &mut self.mirrors {
            mirrors.meddle(&self.daemon)?;
        }
        interrupt::pause(life / 2)
    }

    /// Load until the kill.
    fn live_and_die(&mut self) -> Result<()> {
        let killed = Arc::new(AtomicBool::new(false));
        let lanes: Vec<_> = (0..LANES)
            .map(|_| {
                let lane = self.lane(&killed);
                std::thread::spawn(move || lane.run())
            })
            .collect();
        let live = self.fio.as_ref().map(FioLoad::start).transpose()?;
        let life = LIFE_MS.0 + self.chance.below(LIFE_MS.1 - LIFE_MS.0);
        let lived = self.live(Duration::from_millis(life));
        killed.store(true, Ordering::SeqCst);
        let died = self.daemon.kill();
        for lane in lanes {
            let done = lane
                .join()
                .map_err(|_| Failure::new("a lane of the verifier panicked"))?;
            self.done += done.map_err(Failure::new)?;
        }
        died?;
        lived?;
        if let (Some(fio), Some(live)) = (&self.fio, live) {
            fio.finish(live)?;
        }
        Ok(())
    }

    /// Starts the daemon; notes how long it took until the volume accepted a connection.
    fn restart(&mut self) -> Result<()> {
        let begun = Instant::now();
        self.daemon.launch()?;
        if let Some(mirrors) = &self.mirrors {
            mirrors.after_start(&self.daemon)?;
        }
        let socket = self.socket.clone();
        let serves =
            interrupt::wait_for(
                SERVE_TIME,
                || Ok(Client::connect(&socket, "verify").is_ok()),
            )?;
        self.restarts.push(begun.elapsed());
        match serves {
            true => Ok(()),
            false => Err(Failure::new(format!(
                "the volume is not served {SERVE_TIME:?} after the restart; the daemon's log:\n{}",
                self.daemon.log_tail()
            ))),
        }
    }

    fn round(&mut self, number: u32, seed: u64) -> Result<()> {
        let kept = self.fio.is_some() && number.is_multiple_of(KEPT_EVERY);
        if let (Some(fio), true) = (&self.fio, kept) {
            fio.write_kept(seed + u64::from(number))?;
        }
        self.live_and_die()?;
        if let Some(mirrors) = &mut self.mirrors {
            mirrors.while_dead()?;
        }
        self.restart()?;
        let mut ledger = self
            .ledger
            .lock()
            .map_err(|_| Failure::new("a lane panicked"))?;
        ledger.crashed();
        self.blocks += verify::every_block(&self.socket, "verify", &mut ledger)?;
        drop(ledger);
        if let (Some(fio), true) = (&self.fio, kept) {
            fio.check_kept(seed + u64::from(number))?;
        }
        Ok(())
    }

    /// Every block from each drive of a mirror alone.
    fn check_mirrors(&mut self) -> Result<()> {
        let Some(mirrors) = &mut self.mirrors else {
            return Ok(());
        };
        if mirrors.is_moved() {
            self.daemon.kill()?;
            mirrors.while_dead()?;
            self.daemon.launch()?;
        }
        mirrors.make_whole(&self.daemon)?;
        let (socket, ledger, blocks) = (&self.socket, &self.ledger, &mut self.blocks);
        mirrors.each_alone(&self.daemon, || {
            let mut ledger = ledger.lock().map_err(|_| Failure::new("a lane panicked"))?;
            *blocks += verify::every_block(socket, "verify", &mut ledger)?;
            Ok(())
        })
    }

    fn show(&self, with: &Torture) -> Result<()> {
        let most = self.restarts.iter().max().copied().unwrap_or_default();
        let sum: Duration = self.restarts.iter().sum();
        let mean = sum / self.restarts.len().max(1) as u32;
        let rows = [
            ("kills", with.kills.to_string()),
            ("writes acknowledged", thousands(self.done.writes as f64)),
            ("flushes acknowledged", thousands(self.done.flushes as f64)),
            (
                "reads checked while it ran",
                thousands(self.done.reads as f64),
            ),
            ("blocks checked after a kill", thousands(self.blocks as f64)),
            ("blocks wrong", "0".to_owned()),
            (
                "restart to serving, mean",
                format!("{:.3} s", mean.as_secs_f64()),
            ),
            (
                "restart to serving, longest",
                format!("{:.3} s", most.as_secs_f64()),
            ),
        ];
        let counts = self.mirrors.as_ref().map(|mirrors| mirrors.counts);
        let away = counts.iter().flat_map(|counts| {
            let names = [
                "drives taken offline",
                "drives gone at a start",
                "drives that returned",
            ];
            names.into_iter().zip(counts.map(|count| count.to_string()))
        });
        let rows: Vec<Vec<String>> = rows
            .into_iter()
            .chain(away)
            .map(|(name, value)| vec![name.to_owned(), value])
            .collect();
        println!("{}", screen::table(&["torture", ""], &rows));
        let bar = Duration::from_secs(with.restart_within);
        match most < bar {
            true => Ok(()),
            false => Err(Failure::new(format!(
                "a restart took {most:?}, not under {bar:?}"
            ))),
        }
    }
}

/// Kills the daemon a number of times; an error at the first wrong block.
pub fn run(convect: &Path, with: &Torture) -> Result<()> {
    let seed = with.seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("seed {seed}, {} kills", with.kills);
    let mut bench = Bench::new(convect, with, seed)?;
    println!("in {}", bench.scratch.path().display());
    let mut progress = Progress::new();
    for number in 1..=with.kills {
        if let Err(failure) = bench.round(number, seed) {
            let tail = bench.daemon.log_tail();
            return Err(failure).during(|| format!("kill {number} (daemon's log:\n{tail}\n)"));
        }
        if screen::is_terminal() {
            let share = f64::from(number) / f64::from(with.kills);
            progress.draw(&format!("  {} {number} kills", screen::bar(share, 40)));
        } else if number.is_multiple_of(10) {
            println!("  {number} kills, nothing wrong");
        }
    }
    progress.clear();
    let checked = bench.check_mirrors();
    bench.daemon.explain(checked)?;
    bench.show(with)?;
    bench.daemon.stop()
}
