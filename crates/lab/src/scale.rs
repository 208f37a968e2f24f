//! A pool of hundreds of TiB on sparse files: the cost of creating, using, restarting and keeping it.

use crate::arguments::Scale;
use crate::chance::Chance;
use crate::content;
use crate::daemon::Daemon;
use crate::failure::{Failure, Result, While};
use crate::interrupt;
use crate::machine::resident_bytes;
use crate::nbd::{Client, Request};
use crate::scratch::Scratch;
use crate::screen::{self, thousands};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use units::format_bytes;

const BLOCK: u64 = units::BLOCK as u64;
const TIB: u64 = 1 << 40;
const GIB: u64 = 1 << 30;
/// Sparse files are not larger than this: common file systems end at 16 TiB.
const FILE_MAX: u64 = 8 * TIB;
/// Size of the fast drive, which counts among the 256 TiB that a pool has at most.
const FAST: u64 = 64 * GIB;
const MIB: u64 = 1 << 20;
/// Requests outstanding.
const DEPTH: usize = 64;
const SERVE_TIME: Duration = Duration::from_secs(60);

/// First and last block, and random ones; each once.
fn places(with: &Scale) -> Vec<u64> {
    let blocks = with.size / BLOCK;
    let mut chance = Chance::new(with.seed);
    let mut places: Vec<u64> = (0..with.places).map(|_| chance.below(blocks)).collect();
    places.extend([0, blocks - 1]);
    places.sort_unstable();
    places.dedup();
    // Visited in an order that has nothing to do with the address.
    places.sort_unstable_by_key(|place| crate::chance::scatter(*place ^ with.seed));
    places
}

/// Sends a request for every place and checks every answer.
fn visit(socket: &Path, places: &[u64], write: bool) -> Result<Duration> {
    let doing = || "the volume cannot be used".to_owned();
    let mut client = Client::connect(socket, "scale").during(doing)?;
    let begun = Instant::now();
    let mut outstanding = BTreeMap::new();
    let mut left = places.iter();
    loop {
        while outstanding.len() < DEPTH
            && let Some(place) = left.next()
        {
            let offset = place * BLOCK;
            let request = match write {
                true => {
                    let mut data = vec![0; BLOCK as usize];
                    content::write(*place, 1, &mut data);
                    Request::Write {
                        offset,
                        data,
                        fua: false,
                    }
                }
                false => Request::Read {
                    offset,
                    length: BLOCK as u32,
                },
            };
            client.send(*place, &request).during(doing)?;
            outstanding.insert(*place, ());
        }
        if outstanding.is_empty() {
            break;
        }
        interrupt::check()?;
        let reply = client.receive().during(doing)?;
        outstanding.remove(&reply.cookie);
        if reply.error != 0 {
            let (block, error) = (reply.cookie, reply.error);
            return Err(Failure::new(format!(
                "block {block} answered with error {error}"
            )));
        }
        if !write {
            let found = content::read(reply.cookie, &reply.data);
            let right = found == Ok(content::Content::Data(1));
            let block = reply.cookie;
            right
                .then_some(())
                .ok_or_else(|| Failure::new(format!("block {block}: {found:?}")))?;
        }
    }
    if write {
        client.send(0, &Request::Flush).during(doing)?;
        client.receive().during(doing)?;
    }
    Ok(begun.elapsed())
}

struct Bench {
    daemon: Daemon,
    socket: PathBuf,
    rows: Vec<Vec<String>>,
    scratch: Scratch,
}

impl Bench {
    fn new(convect: &Path) -> Result<Self> {
        let scratch = Scratch::new("scale", 16 * GIB)?;
        let daemon = Daemon::start(convect, scratch.path(), "")?;
        let socket = scratch.join("nbd.sock");
        Ok(Self {
            daemon,
            socket,
            rows: Vec::new(),
            scratch,
        })
    }

    fn note(&mut self, what: &str, value: String) {
        println!("  {what}: {value}");
        self.rows.push(vec![what.to_owned(), value]);
    }

    fn create(&mut self, with: &Scale) -> Result<()> {
        let begun = Instant::now();
        let files = with.size.div_ceil(FILE_MAX);
        let size = (with.size - FAST.min(with.size / 2)) / files / MIB * MIB;
        let name = |file: &str| self.scratch.join(file).display().to_string();
        let mut words = vec![
            "pool".to_owned(),
            "create".into(),
            "scale".into(),
            "fast".into(),
        ];
        words.push(format!("file:{}?size={FAST}", name("fast.img")));
        words.push("slow".to_owned());
        words.extend(
            (0..files).map(|file| format!("file:{}?size={size}", name(&format!("{file}.img")))),
        );
        words.push("--accept-unmirrored".to_owned());
        self.daemon
            .run(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
        let bytes = with.size.to_string();
        self.daemon
            .run(&["volume", "create", "scale/volume", "--size", &bytes])?;
        let listen = format!("unix:{}", self.socket.display());
        self.daemon.run(&[
            "export",
            "create",
            "scale",
            "scale/volume",
            "nbd",
            "--listen",
            &listen,
        ])?;
        let took = begun.elapsed().as_secs_f64();
        let capacity = self.daemon.pool("scale")?.capacity;
        self.note(
            "pool created",
            format!("{} in {took:.2} s", format_bytes(capacity)),
        );
        Ok(())
    }

    fn note_visit(&mut self, what: &str, count: usize, took: Duration) {
        let rate = thousands(count as f64 / took.as_secs_f64().max(1e-9));
        let places = thousands(count as f64);
        self.note(
            what,
            format!("{places} in {:.1} s ({rate} a second)", took.as_secs_f64()),
        );
    }

    fn restart(&mut self, what: &str) -> Result<()> {
        let begun = Instant::now();
        self.daemon.launch()?;
        let socket = self.socket.clone();
        let serves =
            interrupt::wait_for(SERVE_TIME, || Ok(Client::connect(&socket, "scale").is_ok()))?;
        if !serves {
            return Err(Failure::new("the volume is not served after the restart"));
        }
        self.note(what, format!("{:.2} s", begun.elapsed().as_secs_f64()));
        Ok(())
    }

    fn note_memory(&mut self, with: &Scale) -> Result<()> {
        let pool = self.daemon.pool("scale")?;
        let resident = resident_bytes(self.daemon.pid())?;
        let tib = with.size as f64 / TIB as f64;
        let per_tib = |bytes: u64| format_bytes((bytes as f64 / tib) as u64);
        self.note("memory for maps", format_bytes(pool.map_bytes));
        self.note("the same per TiB", per_tib(pool.map_bytes));
        self.note("memory for cached data", format_bytes(pool.ram_bytes));
        self.note("resident memory of the daemon", format_bytes(resident));
        self.note("the same per TiB", per_tib(resident));
        Ok(())
    }
}

/// Creates the pool, writes and reads, kills, restarts, reads again, and prints what it cost.
pub fn run(convect: &Path, with: &Scale) -> Result<()> {
    let places = places(with);
    let mut bench = Bench::new(convect)?;
    bench.create(with)?;
    let took = visit(&bench.socket, &places, true)?;
    bench.note_visit("random places written", places.len(), took);
    let took = visit(&bench.socket, &places, false)?;
    bench.note_visit("read back and checked", places.len(), took);
    bench.note_memory(with)?;
    bench.daemon.stop()?;
    bench.restart("restart to serving, after a stop")?;
    bench.daemon.kill()?;
    bench.restart("restart to serving, after a kill")?;
    let took = visit(&bench.socket, &places, false)?;
    bench.note_visit("read and checked again", places.len(), took);
    bench.note_memory(with)?;
    println!("\n{}", screen::table(&["scale", ""], &bench.rows));
    bench.daemon.stop()
}
