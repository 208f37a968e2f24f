//! What can be written on the command line.

use crate::access_arguments::{Audit, Token};
use crate::context_arguments::Context;
use crate::drive_arguments::Drive;
use crate::event_arguments::{Alert, Event, History};
use crate::export_arguments::{Export, Session};
use crate::job_arguments::Job;
use crate::map_arguments::{EXPLAIN_AFTER, Explain, Map, Moves};
use crate::placement_arguments::Placement;
use crate::pool_arguments::PoolSet;
use crate::qos_arguments::{ChosenPolicy, FirstPolicy, Qos};
use crate::serve_arguments::Serve;
use crate::server_arguments::Server;
use crate::stream_arguments::{Receive, Send};
use crate::target_arguments::Targets;
use crate::way::Reach;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::ffi::OsString;
use std::path::PathBuf;

/// Hybrid storage: pools of RAM, flash and disks, volumes in them, exported to virtual machines
/// and hosts.
#[derive(Parser, Debug)]
#[command(name = "convect", version, arg_required_else_help = true, after_long_help = AFTER)]
pub struct Arguments {
    /// Which daemon.
    #[command(flatten)]
    pub reach: Reach,
    /// Print what the HTTP interface answers, as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const AFTER: &str = "\
Drives are written as file:PATH[?size=8G], nvme:/dev/ngXnY, ram:NAME?size=1G, null:NAME?size=1T, or \
model:hdd-7200[,seed=N][,iops=N]:SPEC; a bare absolute path means file:PATH.\n\
Exit codes: 0 done; 1 refused or failed; 2 wrong usage; 130 left with Ctrl-C.";

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Serve pools, volumes and exports until SIGTERM or SIGINT
    Serve(Serve),
    /// Look at drives
    #[command(subcommand)]
    Drive(Drive),
    /// Look at vdrives
    #[command(subcommand)]
    Vdrive(Vdrive),
    /// Make, look at and end pools
    #[command(subcommand)]
    Pool(Pool),
    /// Make, look at and end volumes
    #[command(subcommand)]
    Volume(Volume),
    /// Take, look at, clone and end snapshots of volumes
    #[command(subcommand)]
    Snapshot(Snapshot),
    /// Write a snapshot, or what it has otherwise than one before, as a stream
    Send(Send),
    /// Make a volume, or bring one on, from a stream
    Receive(Receive),
    /// Offer volumes to hosts and virtual machines
    #[command(subcommand)]
    Export(Export),
    /// Look at hosts' sessions with exports, and end them
    #[command(subcommand)]
    Session(Session),
    /// Show where a volume lies: RAM red, fast orange, slow blue, empty grey
    Map(Map),
    /// Say where a block lies, since when, why it was moved there and what it displaced
    #[command(after_help = EXPLAIN_AFTER)]
    Explain(Explain),
    /// Guarantee volumes operations, bandwidth and latency, and see what they attain
    #[command(subcommand)]
    Qos(Qos),
    /// Show how long reads of a pool or a volume took since the pool was opened, by where blocks came from
    Latency {
        /// The pool or the volume
        #[arg(value_name = "POOL[/VOL]")]
        name: String,
    },
    /// Look at long work
    #[command(subcommand)]
    Job(Job),
    /// List what happened, or watch it happen
    #[command(subcommand)]
    Event(Event),
    /// List what is wrong now
    #[command(subcommand)]
    Alert(Alert),
    /// Show how a pool, a tier, a drive, a volume or an export did over time
    History(History),
    /// Show what pools and volumes do now, full screen, until Ctrl-C; with --json a line a second
    Top,
    /// Make, look at and take back tokens, which the page and remote programs show
    #[command(subcommand)]
    Token(Token),
    /// Name daemons on other hosts, and choose the one that commands are for
    #[command(subcommand)]
    Context(Context),
    /// Look at other daemons from this one, beside each other
    #[command(subcommand)]
    Server(Server),
    /// Print who changed what and when, newest first
    Audit(Audit),
    /// Look whether a pool that is not in use is whole
    #[command(after_help = CHECK_AFTER)]
    Check(Check),
    /// Mend what redundancy allows of a pool that is not in use; without --yes only say what
    #[command(after_help = CHECK_AFTER)]
    Repair(Repair),
    /// Give a copy of a pool's drives identities of its own, so that a host can have it beside the original
    #[command(after_help = REIDENTIFY_AFTER)]
    Reidentify(Reidentify),
    /// Print any record of a pool that is not in use
    #[command(subcommand)]
    Dump(Dump),
    /// Copy a volume out of a pool that is not in use, as far as it can be read
    #[command(after_help = RESTORE_AFTER)]
    Restore(Restore),
    /// Demonstrations, benchmarks, and block traces replayed through the placement policy
    #[command(disable_help_flag = true)]
    Lab {
        /// What `convect lab --help` lists
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARGUMENTS"
        )]
        arguments: Vec<OsString>,
    },
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages into a folder
    Man {
        /// The folder
        dir: PathBuf,
    },
}

const REIDENTIFY_AFTER: &str = "\
Nothing but identities (and with --name the name) changes. What is interrupted is ended by the same command.

Examples:
  convect reidentify file:/copy/fast.img file:/copy/slow.img --name lab --yes
  convect reidentify /dev/sdc /dev/sdd";
const CHECK_AFTER: &str = "\
No daemon is needed, and none may have the drives open. Exit codes: 0 the pool is whole; 1 something \
is wrong and nothing is lost; 2 data is lost, or wrong usage; 8 it could not be looked at.";

const DIFF_AFTER: &str = "\
Offsets and lengths are bytes, in whole blocks of 4 KiB; no data is read. A block that was written \
again with the same content counts as changed. With --json a line is an answer of the interface: put \
the ranges of all lines together.";

const PROMOTE_AFTER: &str = "\
It takes over the snapshot that it was made from and those before it, with their names and holds, so \
that the volume that it was cloned from can be deleted. Nothing is copied.";

const SET_AFTER: &str = "\
At its quota a volume's writes that need a new block fail with \"no space\"; what is there can be \
overwritten, as far as no snapshot has it, and discards and deleted snapshots make room again.

What is reserved is kept from other volumes, whether it is used or not; it counts what snapshots hold, \
too. Beyond it the volume takes what is free, up to its quota.

Pins are widened to whole 64 KiB; a later one counts where it lies over others, and a volume has at most 16. \
What is pinned to the fast tier is brought there in the background and stays; what is pinned to the slow one \
goes there soon after it is written. Pins to the fast tier and floors together may not be more than it has \
beside a sixteenth for writes.

Targets enforce nothing: an alert `target_unmet` tells when they were not met for a minute (docs/events.md).";

const WARN_AFTER: &str = "\
80,90,95 until others are chosen. They hold for the pool's space, for its metadata region, and where there \
are two tiers for data that is to sink and for the slow one. The log tells of each once, and `pool list` \
and `pool status` as long as it is so.";

const RESTORE_AFTER: &str = "\
No daemon is needed, and none may have the drives open; nothing is written to them. Exit codes: \
0 all was copied; 2 some could not be read, which is listed and left as holes, or wrong usage; 8 \
nothing was copied.";

/// Drives of a pool that is not in use.
#[derive(Args, Debug)]
pub struct Drives {
    /// A drive of the pool; again for each
    #[arg(long = "drive", required = true, value_name = "DRIVE", num_args = 1..)]
    pub drives: Vec<String>,
}

/// `dump`.
#[derive(Subcommand, Debug)]
pub enum Dump {
    /// The labels of every drive and the description of the pool
    Label {
        /// The drives
        #[command(flatten)]
        from: Drives,
    },
    /// The checkpoints of a shard, or of all
    #[command(override_usage = "convect dump checkpoint [SHARD] --drive <DRIVE>...")]
    Checkpoint {
        /// The shard
        shard: Option<u16>,
        /// The drives
        #[command(flatten)]
        from: Drives,
    },
    /// The records of a shard's journal that opening the pool would play
    #[command(override_usage = "convect dump journal [SHARD] --drive <DRIVE>...")]
    Journal {
        /// The shard
        shard: Option<u16>,
        /// The drives
        #[command(flatten)]
        from: Drives,
    },
    /// What lies at a block of the metadata region
    #[command(override_usage = "convect dump page <BLOCK> --drive <DRIVE>...")]
    Page {
        /// The block, as other dumps show it after `0:`
        block: u64,
        /// The drives
        #[command(flatten)]
        from: Drives,
    },
    /// The map of a volume, a line a chunk of 1 MiB; or one chunk's
    #[command(override_usage = "convect dump map <VOLUME> [CHUNK] --drive <DRIVE>...")]
    Map {
        /// The volume, without the pool's name
        volume: String,
        /// The chunk
        chunk: Option<u32>,
        /// The drives
        #[command(flatten)]
        from: Drives,
    },
    /// The groups of space that a shard has
    #[command(override_usage = "convect dump space [SHARD] --drive <DRIVE>...")]
    Space {
        /// The shard
        shard: Option<u16>,
        /// The drives
        #[command(flatten)]
        from: Drives,
    },
}

/// `restore`.
#[derive(Args, Debug)]
#[command(override_usage = "convect restore <VOLUME> --to <FILE> --drive <DRIVE>...")]
pub struct Restore {
    /// The volume, without the pool's name
    pub volume: String,
    /// The new file that it is copied to, sparse
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// The drives
    #[command(flatten)]
    pub from: Drives,
}

/// `check`.
#[derive(Args, Debug)]
pub struct Check {
    /// The drives of the pool, all that are there
    #[arg(required = true, value_name = "DRIVE")]
    pub drives: Vec<String>,
    /// Read every block of data, too, and compare it with its checksum
    #[arg(long)]
    pub data: bool,
}

/// `repair`.
#[derive(Args, Debug)]
pub struct Repair {
    /// The drives of the pool, all that are there
    #[arg(required = true, value_name = "DRIVE")]
    pub drives: Vec<String>,
    /// Read every block of data, too, and mend those that are wrong
    #[arg(long)]
    pub data: bool,
    /// Do it
    #[arg(long)]
    pub yes: bool,
}

/// `reidentify`.
#[derive(Args, Debug)]
pub struct Reidentify {
    /// The drives of the copy, all of them
    #[arg(required = true, value_name = "DRIVE")]
    pub drives: Vec<String>,
    /// Another name for the copy, too
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

/// `vdrive`.
#[derive(Subcommand, Debug)]
pub enum Vdrive {
    /// List the vdrives of a pool and their drives
    List {
        /// The pool
        pool: String,
    },
}

/// Where new space begins.
#[derive(ValueEnum, Clone, Copy, Debug, Default)]
pub enum Policy {
    /// Written data is absorbed by the fast tier and sinks to its slow home soon
    #[default]
    SlowFirst,
    /// Written data stays on the fast tier until its space is needed
    FastFirst,
}

/// A switch.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Switch {
    /// Yes
    On,
    /// No
    Off,
}

/// `pool create`.
#[derive(Args, Debug)]
pub struct PoolCreate {
    /// The pool's name
    pub name: String,
    /// A tier, a layout if not concat, and drives; again for each vdrive: `fast /dev/nvme0n1
    /// slow stripe:64k /dev/sda /dev/sdb`. Layouts: concat, stripe[:CHUNK], mirror
    #[arg(required = true, value_name = "fast|slow [LAYOUT] SPEC...")]
    pub vdrives: Vec<String>,
    /// Where new space begins
    #[arg(long, value_enum, default_value_t)]
    pub policy: Policy,
    /// Single-threaded engines; 0 is one a core
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub shards: u16,
    /// Take drives that bear something else, which is lost
    #[arg(long)]
    pub force: bool,
    /// Accept that the loss of an unmirrored fast drive loses data
    #[arg(long)]
    pub accept_unmirrored: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

/// `pool`.
#[derive(Subcommand, Debug)]
pub enum Pool {
    /// Make a pool
    Create(PoolCreate),
    /// List the pools
    List,
    /// Show a pool, its vdrives and its drives
    #[command(visible_alias = "show")]
    Status {
        /// The pool
        name: String,
    },
    /// Close a pool, for another host to import
    Export {
        /// The pool
        name: String,
    },
    /// Open a pool from its drives; without a name, list what could be opened
    #[command(override_usage = "convect pool import [OPTIONS] [NAME] --drive <SPEC>...")]
    Import {
        /// The pool's name or id
        name: Option<String>,
        /// A drive to look at; again for each
        #[arg(long = "drive", required = true, value_name = "SPEC", num_args = 1..)]
        drives: Vec<String>,
        /// Open it though drives are missing
        #[arg(long)]
        degraded: bool,
        /// Open it though a drive or its metadata was put back to an earlier state: what was written since is lost
        #[arg(long)]
        accept_old: bool,
    },
    /// Forget a pool and everything in it
    Destroy {
        /// The pool
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Add a vdrive to a pool
    Add {
        /// The pool
        name: String,
        /// A tier, a layout if not concat, and drives, as for `pool create`
        #[arg(required = true, value_name = "fast|slow [LAYOUT] SPEC...")]
        vdrive: Vec<String>,
        /// Take drives that bear something else, which is lost
        #[arg(long)]
        force: bool,
    },
    /// Move everything off a vdrive and take it out of the pool
    Remove {
        /// The pool
        name: String,
        /// The vdrive's number
        vdrive: u8,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Do not wait
        #[arg(long)]
        background: bool,
    },
    /// Bring a drive back into its mirrors; what it lacks is copied
    Online {
        /// The pool
        name: String,
        /// The drive, as `pool status` names it, or by its id
        drive: String,
        /// Also when it was used without the pool's other drives: all of it is overwritten
        #[arg(long)]
        force: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Do not wait
        #[arg(long)]
        background: bool,
    },
    /// Take a drive out of its mirrors and let it go, until `pool online`
    Offline {
        /// The pool
        name: String,
        /// The drive
        drive: String,
    },
    /// Put a new drive in the place of one of a mirror's and fill it
    Replace {
        /// The pool
        name: String,
        /// The old drive; it may be missing
        old: String,
        /// The new drive, at least as large
        new: String,
        /// Take a drive that bears something else, which is lost
        #[arg(long)]
        force: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Do not wait
        #[arg(long)]
        background: bool,
    },
    /// Show what pools do: IOPS, bandwidth, mean latency, share served by each tier
    Iostat {
        /// The pool; all when left out
        name: Option<String>,
        /// Print what was done in each period of so many seconds
        #[arg(long, value_name = "SECS", num_args = 0..=1, default_missing_value = "1")]
        watch: Option<f64>,
        /// End after so many periods
        #[arg(long, requires = "watch")]
        count: Option<u64>,
    },
    /// Show what a pool moved between RAM and its tiers since it was opened, by reason
    Moves(Moves),
    /// Forecast what other sizes of the fast tier would give a pool and its volumes, by the traffic of late
    WhatIf {
        /// The pool
        name: String,
    },
    /// Read and check every copy of everything in a pool, and mend what is not right
    Scrub {
        /// The pool
        name: String,
        /// Bytes a second at most; the daemon's configuration says when left out
        #[arg(long)]
        rate: Option<String>,
        /// Wait for its end, and fail when something is lost
        #[arg(long)]
        wait: bool,
        /// End the scrub that runs
        #[arg(long, conflicts_with_all = ["rate", "wait"])]
        cancel: bool,
    },
    /// Change how much promotion of a pool may write
    Set(PoolSet),
    /// Choose at which levels it is warned that a pool fills
    #[command(after_help = WARN_AFTER)]
    Warn {
        /// The pool
        name: String,
        /// The levels in per cent: at most 8 growing numbers from 10 to 100
        #[arg(
            long,
            value_name = "PERCENT,...",
            value_delimiter = ',',
            required_unless_present = "off"
        )]
        at: Vec<u8>,
        /// Do not warn
        #[arg(long, conflicts_with = "at")]
        off: bool,
    },
    /// Hold or release promotion into RAM and the fast tier
    HoldPromotion {
        /// The pool
        name: String,
        /// Hold or release
        state: Switch,
    },
    /// Write everything back to its slow home and forget all clean copies
    Cool {
        /// The pool
        name: String,
    },
}

/// `volume`.
#[derive(Subcommand, Debug)]
pub enum Volume {
    /// Make a volume
    Create {
        /// The volume
        #[arg(value_name = "POOL/VOL")]
        volume: String,
        /// Its size
        #[arg(long)]
        size: String,
        /// Reserve all of its space at once
        #[arg(long)]
        thick: bool,
        /// The most that it and its snapshots may take of the pool
        #[arg(long, value_name = "SIZE")]
        quota: Option<String>,
        /// What the pool keeps for it and its snapshots
        #[arg(long, value_name = "SIZE")]
        reservation: Option<String>,
        /// Bytes of an LBA: 512 or 4096
        #[arg(long, default_value_t = 512)]
        lba: u32,
        #[command(flatten)]
        policy: FirstPolicy,
    },
    /// List the volumes of a pool, or all
    List {
        /// The pool
        pool: Option<String>,
    },
    /// Show a volume
    Show {
        /// The volume
        #[arg(value_name = "POOL/VOL")]
        volume: String,
    },
    /// Give a volume another size
    Resize {
        /// The volume
        #[arg(value_name = "POOL/VOL")]
        volume: String,
        /// Its new size
        size: String,
        /// It may become smaller: what lies beyond is lost
        #[arg(long)]
        shrink: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Change what a volume may take of its pool, what is kept for it, its placement and its policy, while it is used
    #[command(
        after_help = SET_AFTER,
        group = clap::ArgGroup::new("what").required(true).multiple(true)
    )]
    Set {
        /// The volume
        #[arg(value_name = "POOL/VOL")]
        volume: String,
        /// The most that it and its snapshots may take of the pool, or none
        #[arg(long, value_name = "SIZE|none", group = "what")]
        quota: Option<String>,
        /// What the pool keeps for it and its snapshots, or none
        #[arg(long, value_name = "SIZE|none", group = "what")]
        reservation: Option<String>,
        #[command(flatten)]
        placement: Placement,
        #[command(flatten)]
        targets: Targets,
        #[command(flatten)]
        policy: ChosenPolicy,
    },
    /// Give a clone the snapshots that it stands on; what it was cloned from is a clone then
    #[command(after_help = PROMOTE_AFTER)]
    Promote {
        /// The clone
        #[arg(value_name = "POOL/VOL")]
        volume: String,
    },
    /// Delete a volume
    Delete {
        /// The volume
        #[arg(value_name = "POOL/VOL")]
        volume: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Do not wait for its space
        #[arg(long)]
        background: bool,
    },
}

/// `snapshot`.
#[derive(Subcommand, Debug)]
pub enum Snapshot {
    /// Take a snapshot of a volume, or of several at one moment
    Create {
        /// The snapshots, of one pool and with one name
        #[arg(value_name = "POOL/VOL@NAME", required = true)]
        snapshots: Vec<String>,
    },
    /// List the snapshots of a pool, of a volume, or all, with what each of them alone has (UNIQUE)
    List {
        /// Seconds to look for what each alone has, at most 20
        #[arg(long, value_name = "SECONDS", default_value_t = 1)]
        wait: u64,
        /// The pool or volume
        #[arg(value_name = "POOL[/VOL]")]
        of: Option<String>,
    },
    /// Give a snapshot another name
    Rename {
        /// The snapshot
        #[arg(value_name = "POOL/VOL@NAME")]
        snapshot: String,
        /// Its new name
        name: String,
    },
    /// Keep a snapshot from being deleted
    Hold {
        /// The snapshot
        #[arg(value_name = "POOL/VOL@NAME")]
        snapshot: String,
    },
    /// Let a snapshot be deleted again
    Release {
        /// The snapshot
        #[arg(value_name = "POOL/VOL@NAME")]
        snapshot: String,
    },
    /// Delete snapshots
    Delete {
        /// The snapshots
        #[arg(value_name = "POOL/VOL@NAME", required = true)]
        snapshots: Vec<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Make a volume that begins as a snapshot is
    Clone {
        /// The snapshot
        #[arg(value_name = "POOL/VOL@NAME")]
        snapshot: String,
        /// Name of the new volume, in the same pool
        volume: String,
    },
    /// List what was written or discarded between a snapshot and what stands on it
    #[command(after_help = DIFF_AFTER)]
    Diff {
        /// The snapshot
        #[arg(value_name = "POOL/VOL@NAME")]
        from: String,
        /// A later snapshot, a clone, or a volume as it is now; the snapshot's volume when left out
        #[arg(value_name = "POOL/VOL[@NAME]")]
        to: Option<String>,
    },
    /// Have snapshots taken by themselves
    #[command(subcommand)]
    Schedule(Schedule),
    /// Make a volume as it was when a snapshot was taken
    Rollback {
        /// The snapshot
        #[arg(value_name = "POOL/VOL@NAME")]
        snapshot: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// `snapshot schedule`.
#[derive(Subcommand, Debug)]
pub enum Schedule {
    /// Have snapshots taken of a volume, or of several at one moment, and the oldest deleted
    #[command(after_help = SCHEDULE_AFTER)]
    Set {
        /// The schedule's volumes and its name, with which the names of its snapshots begin
        #[arg(value_name = "POOL/VOL@NAME", required = true)]
        schedules: Vec<String>,
        /// From one to the next: 1m to 366d
        #[arg(long, value_name = "SPAN")]
        every: String,
        /// Snapshots that are kept of each volume
        #[arg(long, value_name = "N")]
        keep: u32,
    },
    /// List the schedules of a pool, of a volume, or all
    List {
        /// The pool or volume
        #[arg(value_name = "POOL[/VOL]")]
        of: Option<String>,
    },
    /// Take volumes out of their schedules; the snapshots stay
    Remove {
        /// The volumes and the schedule's name
        #[arg(value_name = "POOL/VOL@NAME", required = true)]
        schedules: Vec<String>,
    },
}

const SCHEDULE_AFTER: &str = "\
They are due at whole multiples of the span, UTC: 15m at each quarter of an hour, 1d at midnight, 7d \
on Mondays. Those that are held, cloned from, exported or renamed are not deleted and do not count.";

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory;

    fn longs(command: &clap::Command, global: bool) -> Vec<String> {
        let options = command.get_arguments();
        let options = options.filter(|option| option.is_global_set() == global);
        options
            .filter_map(|option| option.get_long().map(str::to_owned))
            .collect()
    }

    /// Options of `command` and those below it that have the name of one that all commands have.
    fn hiding(command: &clap::Command, everywhere: &[String]) -> Vec<String> {
        let own = longs(command, false).into_iter();
        let own = own.filter(|name| everywhere.contains(name));
        let mut found: Vec<String> = own
            .map(|name| format!("{} --{name}", command.get_name()))
            .collect();
        let below = command.get_subcommands();
        found.extend(below.flat_map(|below| hiding(below, everywhere)));
        found
    }

    #[test]
    fn no_command_has_an_option_with_the_name_of_one_that_all_have() {
        let command = Arguments::command();
        let everywhere = longs(&command, true);
        assert!(everywhere.iter().any(|name| name == "server"));
        assert_eq!(hiding(&command, &everywhere), Vec::<String>::new());
    }
}
