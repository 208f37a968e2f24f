//! Command line arguments.

use crate::breakdown::Breakdown;
use crate::compare::Compare;
use crate::guests::Guests;
use crate::hostile::Hostile;
use crate::iscsi::Lun;
use crate::load::Generate;
use crate::nbd::Place;
use crate::polling::Waiting;
use crate::promises::Promises;
use crate::storm::Storm;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Demonstrations, benchmarks and torture of Convect, in a temporary folder.
#[derive(Parser, Debug)]
#[command(name = "convect-lab", version)]
pub struct Arguments {
    /// The `convect` command to drive; without it, the one beside this program
    #[arg(long, global = true, value_name = "PATH")]
    pub convect: Option<PathBuf>,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The command.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Make a tiered pool, measure it, and show it getting faster
    Demo(Demo),
    /// Kill the daemon at random moments under a verifying load
    Torture(Torture),
    /// A hot set that moves in a large volume: how soon it is read as fast as flash again
    Moving(Moving),
    /// 4 KiB random writes to a cold volume, while what they wrote is demoted, and when the fast tier is full
    FirstWrites(FirstWrites),
    /// Reads that saturate a pool whose two tiers are both solid-state, beside each alone and the best split
    TwoTiers(TwoTiers),
    /// A pool of 256 TiB: create, write, read, restart, memory
    Scale(Scale),
    /// The daemon's processor time with idle exports
    Idle(Idle),
    /// Cost of a scrub for hosts: 4 KiB random requests with and without one
    ScrubCost(ScrubCost),
    /// Cost of viewers of live data and a scrape each second for hosts: 4 KiB random requests with and without them
    Viewers(Viewers),
    /// Cost of snapshots and clones: creation, the writes after it, deletion, cloning, reads
    Snapshots(Snapshots),
    /// Many concurrent iSCSI logins, their memory, and a storm of booting guests
    Sessions(Sessions),
    /// Many initiators count in the same blocks of an iSCSI unit by COMPARE AND WRITE, while connections are cut
    Increments(Increments),
    /// Reads and writes a disk by vhost-user-blk, NBD, iSCSI or io_uring, and says how soon it answers
    Load(Generate),
    /// Convect beside qemu-storage-daemon, qemu-nbd, nbdkit, nbd-server and tgt: the same load to each, by the core
    Compare(Compare),
    /// Where a server's processor time goes under a load, by layer
    Breakdown(Breakdown),
    /// An export's ways of polling by five loads: rates, latencies and the daemon's processor time
    Polling(Waiting),
    /// Four concurrent guests, each with the load of a kind of server: the engine's overhead over the drives' latency
    Guests(Guests),
    /// Block traces through the placement policy and the published ones, at several sizes of the fast tier
    Replay(Replay),
    /// 600 desktops boot beside a database, mail and a backup, without and with policies of quality of service
    Storm(Storm),
    /// Guarantees of quality of service, bar by bar: infeasible minimums, the price, fairness, changes, memory
    Promises(Promises),
    /// Hostile guests, hosts, programs and viewers one after the other, and what they cost others and the daemon
    Hostile(Hostile),
}

/// `demo`.
#[derive(Args, Debug)]
pub struct Demo {
    /// Runs of 60 s instead of 15 s
    #[arg(long)]
    pub full: bool,
    /// Seconds a run, instead of 15 or 60
    #[arg(long, value_name = "SECONDS", conflicts_with = "full")]
    pub seconds: Option<u64>,
    /// End after measuring, also on a terminal
    #[arg(long)]
    pub exit: bool,
    /// Where the HTML report is written
    #[arg(long, value_name = "FILE", default_value = "convect-demo.html")]
    pub report: PathBuf,
    /// Size of the volume
    #[arg(long, value_name = "SIZE", default_value = "8G", value_parser = size)]
    pub volume: u64,
    /// Size of the fast drive
    #[arg(long, value_name = "SIZE", default_value = "3G", value_parser = size)]
    pub fast: u64,
}

/// Backing store of modelled disks.
#[derive(Args, Debug, Clone)]
pub struct Behind {
    /// Folder for the files behind modelled disks. In memory (/dev/shm) they do not share a drive with the fast
    /// file, which stands still while that flushes for them
    #[arg(long, value_name = "FOLDER")]
    pub disks_in: Option<PathBuf>,
}

/// `replay`.
#[derive(Args, Debug)]
pub struct Replay {
    /// The traces' files, plain or packed by gzip or zstd
    #[arg(value_name = "TRACE", conflicts_with = "synthetic")]
    pub traces: Vec<PathBuf>,
    /// Their format, where the files do not tell it
    #[arg(long, value_name = "NAME")]
    pub format: Option<traces::Format>,
    /// A trace made from a seed instead: moving, scan, one-hit, scattered, vdi-boot, zipf, uniform
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub synthetic: Vec<String>,
    /// Seed of synthetic traces and of the policy
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Requests of each at most
    #[arg(long, value_name = "COUNT")]
    pub limit: Option<u64>,
    /// Skip this many requests at the beginning of each
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub skip: usize,
    /// Sizes of the fast tier, in per cent of the blocks that the trace uses
    #[arg(long, value_name = "PERCENT,...", value_delimiter = ',', default_values_t = [5, 10, 20],
          value_parser = clap::value_parser!(u8).range(1..=100))]
    pub sizes: Vec<u8>,
    /// Play it against live pools of such sizes, before one modelled disk, and not against a model
    #[arg(long)]
    pub live: bool,
    /// Play it against what is exported there: nbd+unix:///EXPORT?socket=PATH. Writes over it
    #[arg(
        long,
        value_name = "URI",
        conflicts_with = "live",
        requires = "overwrite"
    )]
    pub on: Option<Place>,
    /// Nothing on that export is needed any more
    #[arg(long, requires = "on")]
    pub overwrite: bool,
    /// Requests outstanding at a time, of those that are played live
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub outstanding: u16,
    /// Where modelled disks are kept.
    #[command(flatten)]
    pub behind: Behind,
}

/// `torture`.
#[derive(Args, Debug)]
pub struct Torture {
    /// How many times the daemon is killed
    #[arg(long, default_value_t = 200)]
    pub kills: u32,
    /// Size of the volume under test
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = size)]
    pub volume: u64,
    /// Single-threaded engines of the pool
    #[arg(long, default_value_t = 2)]
    pub shards: u32,
    /// Where chance begins; the same seed gives the same requests, not the same moments
    #[arg(long)]
    pub seed: Option<u64>,
    /// Leave out the fio --verify load beside the verifier's own
    #[arg(long)]
    pub no_fio: bool,
    /// Over mirrors, whose drives go away and return between and during the kills
    #[arg(long)]
    pub mirror: bool,
    /// Seconds that the longest restart has to stay below
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub restart_within: u64,
}

/// `moving`.
#[derive(Args, Debug)]
pub struct Moving {
    /// Size of the hot set
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub hot: u64,
    /// Size of the volume; 8 times the hot set or more is what is meant
    #[arg(long, value_name = "SIZE", default_value = "8G", value_parser = size)]
    pub volume: u64,
    /// Size of the fast drive, instead of twice the hot set and 1 GiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub fast: Option<u64>,
    /// Seconds after each move that are examined, at least
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,
    /// Seconds after which a set that is not warm times out, instead of 120 for each GiB
    #[arg(long, value_name = "SECONDS")]
    pub limit: Option<u64>,
    /// Where chance begins that scatters the set
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where modelled disks are.
    #[command(flatten)]
    pub behind: Behind,
}

/// `first-writes`.
#[derive(Args, Debug)]
pub struct FirstWrites {
    /// Seconds of writing to cold data, and as many while that is demoted
    #[arg(long, default_value_t = 5)]
    pub seconds: u64,
    /// Seconds in which the fast tier is to be filled, at most
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub filling: u64,
    /// Seconds of writing to the full fast tier
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub exhausted: u64,
    /// Size of the volume
    #[arg(long, value_name = "SIZE", default_value = "8G", value_parser = size)]
    pub volume: u64,
    /// Size of the fast drive: small, and not full before what is written to cold data has sunk for as long
    #[arg(long, value_name = "SIZE", default_value = "3G", value_parser = size)]
    pub fast: u64,
    /// Modelled disks of the slow tier
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub disks: u64,
    /// Where modelled disks are.
    #[command(flatten)]
    pub behind: Behind,
}

/// `two-tiers`.
#[derive(Args, Debug)]
pub struct TwoTiers {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 6)]
    pub seconds: u64,
    /// How much is in use, and read
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub used: u64,
    /// Requests a second that the drives of the two tiers take, fast:slow; again for each pair
    #[arg(long, value_name = "IOPS:IOPS,...", value_delimiter = ',', value_parser = rates,
          default_values = ["10000:10000", "15000:5000"])]
    pub rates: Vec<[u64; 2]>,
}

/// `scale`.
#[derive(Args, Debug)]
pub struct Scale {
    /// Size of the pool's slow tier and of its volume
    #[arg(long, value_name = "SIZE", default_value = "256T", value_parser = size)]
    pub size: u64,
    /// How many random places are written and read back
    #[arg(long, default_value_t = 100_000)]
    pub places: u32,
    /// Where chance begins
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// `idle`.
#[derive(Args, Debug)]
pub struct Idle {
    /// How many volumes are exported
    #[arg(long, default_value_t = 10)]
    pub volumes: u32,
    /// Seconds to look for
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Fail if it uses more than this many hundredths of a core
    #[arg(long, value_name = "PERCENT")]
    pub limit: Option<f64>,
}

/// `scrub-cost`.
#[derive(Args, Debug)]
pub struct ScrubCost {
    /// Seconds of each round
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Rounds with a scrub, and as many without
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
    /// Size of the volume
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = size)]
    pub volume: u64,
    /// Size of the fast drive
    #[arg(long, value_name = "SIZE", default_value = "3G", value_parser = size)]
    pub fast: u64,
    /// Where modelled disks are.
    #[command(flatten)]
    pub behind: Behind,
}

/// `viewers`.
#[derive(Args, Debug)]
pub struct Viewers {
    /// Viewers at a time, at most 60
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=60))]
    pub viewers: u32,
    /// Seconds of each round
    #[arg(long, default_value_t = 6)]
    pub seconds: u64,
    /// Rounds with viewers, and as many without
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
    /// Size of the volume
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = size)]
    pub volume: u64,
    /// Size of the fast drive
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub fast: u64,
    /// Where modelled disks are.
    #[command(flatten)]
    pub behind: Behind,
}

/// `snapshots`.
#[derive(Args, Debug)]
pub struct Snapshots {
    /// Seconds of each round
    #[arg(long, default_value_t = 5)]
    pub seconds: u64,
    /// Rounds of each measurement, with snapshots, and as many without
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
    /// Snapshots that are taken under load, at least: longer rounds, so that the 99th percentile is one
    #[arg(long, default_value_t = 200)]
    pub taken: u32,
    /// Measurements, of all: in their own order
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<Part>,
    /// Snapshots that are read through
    #[arg(long, default_value_t = 100)]
    pub chain: u32,
    /// Levels of clones that are read through
    #[arg(long, default_value_t = 8)]
    pub levels: u32,
    /// Clones that are made of one snapshot; 100 of them, or as many as there are, boot
    #[arg(long, default_value_t = 1000)]
    pub clones: u32,
    /// Snapshots that are taken and deleted in random order; 0: none
    #[arg(long, default_value_t = 1000)]
    pub deleted: u32,
    /// Snapshots that are taken of ten volumes together
    #[arg(long, default_value_t = 10_000)]
    pub many: u32,
    /// Size of the volume, and of the one without snapshots
    #[arg(long, value_name = "SIZE", default_value = "1T", value_parser = size)]
    pub volume: u64,
    /// How much of each is in use: written, and read
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = size)]
    pub used: u64,
    /// Size of the fast drive
    #[arg(long, value_name = "SIZE", default_value = "12G", value_parser = size)]
    pub fast: u64,
    /// Where modelled disks are.
    #[command(flatten)]
    pub behind: Behind,
}

impl Snapshots {
    /// Whether this is to be measured.
    pub fn has(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// `sessions`.
#[derive(Args, Debug)]
pub struct Sessions {
    /// Number of concurrent logins
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=4000))]
    pub sessions: u32,
    /// How many times
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// Sessions that read in the boot storm
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u16).range(1..=4000))]
    pub booting: u16,
    /// Seconds of the boot storm
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
    /// Size of the volume
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub size: u64,
}

/// `increments`.
#[derive(Args, Debug)]
pub struct Increments {
    /// The unit: iscsi://ADDRESS:PORT/TARGET/LUN. Its first blocks are written over
    pub lun: Lun,
    /// Initiators, each with a name and a session of its own
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub initiators: u8,
    /// How far each counts
    #[arg(long, default_value_t = 500)]
    pub counts: u64,
    /// Where chance begins
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// A measurement of `snapshots`.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Taking them under load
    Taking,
    /// The first writes after one
    Writing,
    /// Deleting many in random order
    Deleting,
    /// Reading through many, and through clones of clones
    Reading,
    /// Making many clones, and booting them
    Cloning,
    /// Ten thousand of ten volumes
    Many,
}

/// A size in bytes.
pub fn size(text: &str) -> Result<u64, units::SizeError> {
    units::parse_bytes(text)
}

fn rates(text: &str) -> Result<[u64; 2], String> {
    let parsed = text
        .split_once(':')
        .map(|(fast, slow)| (fast.parse(), slow.parse()));
    match parsed {
        Some((Ok(fast), Ok(slow))) if fast > 0 && slow > 0 => Ok([fast, slow]),
        _ => Err("write two numbers of requests a second, like 15000:5000".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_two_numbers() {
        assert_eq!(rates("15000:5000"), Ok([15_000, 5_000]));
        for wrong in ["", "15000", "15000:", "0:1", "1:-1", "1:2:3"] {
            assert!(rates(wrong).is_err(), "{wrong}");
        }
    }
}
