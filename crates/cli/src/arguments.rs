//! The command line's grammar: commands, options and their help texts (clap).

use crate::access_arguments::{Audit, Token};
use crate::context_arguments::Context;
use crate::drive_arguments::Drive;
use crate::event_arguments::{Alert, Event, History};
use crate::export_arguments::{Export, Session};
use crate::job_arguments::Job;
use crate::list_arguments::{ListOptions, NamedList};
use crate::map_arguments::{EXPLAIN_AFTER, Explain, Map, Moves};
use crate::placement_arguments::Placement;
use crate::pool_arguments::PoolSet;
use crate::qos_arguments::{ChosenPolicy, FirstPolicy, Qos};
use crate::schedule_arguments::Schedule;
use crate::serve_arguments::Serve;
use crate::server_arguments::Server;
use crate::stream_arguments::{Receive, Send};
use crate::target_arguments::Targets;
use crate::transport::DaemonSelection;
use crate::why_arguments::{WHY_AFTER, Why};
use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::ffi::OsString;
use std::path::PathBuf;

/// Hybrid storage: pools of RAM, flash and disks with volumes, exported to virtual machines and
/// hosts.
#[derive(Parser, Debug)]
#[command(name = "convect", version, arg_required_else_help = true, after_long_help = AFTER)]
pub struct Arguments {
    /// The daemon to connect to.
    #[command(flatten)]
    pub reach: DaemonSelection,
    /// Print the response of the HTTP API as JSON
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
    /// Colour states and maps; auto: on a terminal, unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        help_heading = "Output",
        value_name = "WHEN",
        default_value_t
    )]
    pub color: ColorChoice,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

const AFTER: &str = "\
Drives: file:PATH[?size=8G], nvme:/dev/ngXnY, ram:NAME?size=1G, null:NAME?size=1T or \
model:hdd-7200[,seed=N][,iops=N]:SPEC; a bare absolute path means file:PATH.";

/// Commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Serve pools, volumes and exports until SIGTERM or SIGINT
    Serve(Serve),
    /// Inspect drives
    #[command(subcommand)]
    Drive(Drive),
    /// Inspect vdrives
    #[command(subcommand)]
    Vdrive(Vdrive),
    /// Manage pools
    #[command(subcommand)]
    Pool(Pool),
    /// Manage volumes
    #[command(subcommand)]
    Volume(Volume),
    /// Manage snapshots and clones
    #[command(subcommand)]
    Snapshot(Snapshot),
    /// Send a full or incremental snapshot stream to the standard output
    Send(Send),
    /// Receive a snapshot stream from the standard input into a volume
    Receive(Receive),
    /// Export volumes to hosts and virtual machines
    #[command(subcommand)]
    Export(Export),
    /// List and disconnect sessions of hosts
    #[command(subcommand)]
    Session(Session),
    /// Show a volume's data by tier as a strip of cells: RAM red, fast orange, slow blue, empty
    /// grey
    Map(Map),
    /// Explain where a block is stored, since when, why it was moved there and what it displaced
    #[command(after_help = EXPLAIN_AFTER)]
    Explain(Explain),
    /// Explain why a volume is slow, or was: causes by the latency that they explain, and what to do
    #[command(after_help = WHY_AFTER)]
    Why(Why),
    /// Manage quality of service: guaranteed IOPS, bandwidth and latency
    #[command(subcommand)]
    Qos(Qos),
    /// Show read latency since the pool was opened, by the tier that served the reads
    Latency {
        /// Pool or volume
        #[arg(value_name = "POOL[/VOL]")]
        name: String,
    },
    /// Manage jobs
    #[command(subcommand)]
    Job(Job),
    /// List or follow events
    #[command(subcommand)]
    Event(Event),
    /// Manage alerts and notification targets
    #[command(subcommand)]
    Alert(Alert),
    /// Show metrics of a pool, tier, drive, volume or export over time
    History(History),
    /// Show live load of pools and volumes, full screen; with --json one line a second
    #[command(after_help = TOP_AFTER)]
    Top,
    /// Create, list and revoke API tokens
    #[command(subcommand)]
    Token(Token),
    /// Manage contexts: named daemons on other hosts
    #[command(subcommand)]
    Context(Context),
    /// Manage the other daemons that this one monitors
    #[command(subcommand)]
    Server(Server),
    /// Show the audit log, newest first
    Audit(Audit),
    /// Check an offline pool (fsck)
    #[command(after_help = CHECK_AFTER)]
    Check(Check),
    /// Repair an offline pool from its redundancy; a dry run without --yes
    #[command(after_help = CHECK_AFTER)]
    Repair(Repair),
    /// Give a copy of an offline pool new identities, so that a host can open it beside the original
    #[command(after_help = REIDENTIFY_AFTER)]
    Reidentify(Reidentify),
    /// Dump records of an offline pool
    #[command(subcommand)]
    Dump(Dump),
    /// Restore a volume from an offline pool to a file, as far as it is readable
    #[command(after_help = RESTORE_AFTER)]
    Restore(Restore),
    /// Run demonstrations and benchmarks, and replay block traces through the placement policy
    #[command(disable_help_flag = true)]
    Lab {
        /// Subcommand and its arguments; see `convect lab --help`
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARGUMENTS"
        )]
        arguments: Vec<OsString>,
    },
    /// Print shell completions
    Completions {
        /// Shell to print completions for
        shell: Shell,
    },
    /// Write manual pages to a directory
    Man {
        /// Output directory
        dir: PathBuf,
    },
}

const REIDENTIFY_AFTER: &str = "\
Only the identities (and with --name the name) change. To finish an interrupted run, repeat the command.";
const CHECK_AFTER: &str = "\
Needs no daemon; no daemon may have the drives open.";

const TOP_AFTER: &str = "\
Keys: q quit, ? help, s sort by the next figure, S reverse, / filter by name, a show idle volumes too, \
arrows and PgUp, PgDn scroll.";

const DIFF_AFTER: &str = "\
Offsets and lengths are in bytes, multiples of 4 KiB blocks; no data is read. A block that was rewritten \
with the same content counts as changed. With --json each line is one response of the HTTP API: \
concatenate the ranges of all lines.";

const PROMOTE_AFTER: &str = "\
The clone takes over its origin and all earlier snapshots, with their names and holds. The volume that \
it was cloned from can be deleted afterwards. No data is copied.";

const SET_AFTER: &str = "\
A volume at its quota fails writes that need a new block with \"no space\". Blocks that no snapshot \
references can still be overwritten; discards and deleting snapshots free space.

A reservation is kept from other volumes, used or not, and includes space held by snapshots. \
Beyond it the volume uses free space, up to its quota.

Pins are widened to 64 KiB extents; a later pin overrides earlier ones where they overlap; a volume has at most 16. \
Data pinned to the fast tier is promoted in the background and not evicted; data pinned to the slow tier \
is written back soon after it is written. Fast-tier pins and floors together may use at most 15/16 of \
the fast tier; the rest is for writes.

Targets enforce nothing: an alert `target_unmet` tells when they were not met for a minute (docs/events.md).";

const WARN_AFTER: &str = "\
Default: 80,90,95. The levels apply to the pool's space, its metadata region and, in pools with two tiers, \
dirty data on the fast tier and space on the slow tier. Reaching a level is logged once; `pool list` and \
`pool status` show the warning while it lasts.";

const RESTORE_AFTER: &str = "\
Needs no daemon; no daemon may have the drives open. The drives are not written to.";

/// Drives of an offline pool.
#[derive(Args, Debug)]
pub struct Drives {
    /// Drive of the pool; repeat for each
    #[arg(long = "drive", required = true, value_name = "DRIVE", num_args = 1..)]
    pub drives: Vec<String>,
}

/// Subcommands of `convect dump`.
#[derive(Subcommand, Debug)]
pub enum Dump {
    /// Dump the labels of every drive and the pool description
    Label {
        /// The drives
        #[command(flatten)]
        from: Drives,
    },
    /// Dump the checkpoints of one shard, or of all
    #[command(override_usage = "convect dump checkpoint [SHARD] --drive <DRIVE>...")]
    Checkpoint {
        /// The shard
        shard: Option<u16>,
        /// The drives
        #[command(flatten)]
        from: Drives,
    },
    /// Dump the journal records of a shard that recovery would replay
    #[command(override_usage = "convect dump journal [SHARD] --drive <DRIVE>...")]
    Journal {
        /// The shard
        shard: Option<u16>,
        /// The drives
        #[command(flatten)]
        from: Drives,
    },
    /// Dump a block of the metadata region
    #[command(override_usage = "convect dump page <BLOCK> --drive <DRIVE>...")]
    Page {
        /// Block number, as other dumps print it after `0:`
        block: u64,
        /// The drives
        #[command(flatten)]
        from: Drives,
    },
    /// Dump the map of a volume, one line per 1 MiB chunk, or of one chunk
    #[command(override_usage = "convect dump map <VOLUME> [CHUNK] --drive <DRIVE>...")]
    Map {
        /// Volume name, without the pool
        volume: String,
        /// Chunk number
        chunk: Option<u32>,
        /// The drives
        #[command(flatten)]
        from: Drives,
    },
    /// Dump the space groups owned by a shard, or by all
    #[command(override_usage = "convect dump space [SHARD] --drive <DRIVE>...")]
    Space {
        /// The shard
        shard: Option<u16>,
        /// The drives
        #[command(flatten)]
        from: Drives,
    },
}

/// Arguments of `convect restore`.
#[derive(Args, Debug)]
#[command(override_usage = "convect restore <VOLUME> --to <FILE> --drive <DRIVE>...")]
pub struct Restore {
    /// Volume name, without the pool
    pub volume: String,
    /// Output file; it must not exist and is written sparse
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// The drives
    #[command(flatten)]
    pub from: Drives,
}

/// Arguments of `convect check`.
#[derive(Args, Debug)]
pub struct Check {
    /// All available drives of the pool
    #[arg(required = true, value_name = "DRIVE")]
    pub drives: Vec<String>,
    /// Also read every data block and verify its checksum
    #[arg(long)]
    pub data: bool,
}

/// Arguments of `convect repair`.
#[derive(Args, Debug)]
pub struct Repair {
    /// All available drives of the pool
    #[arg(required = true, value_name = "DRIVE")]
    pub drives: Vec<String>,
    /// Also read every data block and repair corrupt ones
    #[arg(long)]
    pub data: bool,
    /// Apply the repairs
    #[arg(long)]
    pub yes: bool,
}

/// Arguments of `convect reidentify`.
#[derive(Args, Debug)]
pub struct Reidentify {
    /// All drives of the copy
    #[arg(required = true, value_name = "DRIVE")]
    pub drives: Vec<String>,
    /// New name for the copy
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Skip confirmation
    #[arg(long)]
    pub yes: bool,
}

/// Subcommands of `convect vdrive`.
#[derive(Subcommand, Debug)]
pub enum Vdrive {
    /// List the vdrives of a pool and their drives
    List {
        /// The pool
        pool: String,
        #[command(flatten)]
        options: ListOptions,
    },
}

/// When written data is moved from the fast to the slow tier.
#[derive(ValueEnum, Clone, Copy, Debug, Default)]
pub enum Policy {
    /// Writes go to the fast tier and are written back to the slow tier soon
    #[default]
    SlowFirst,
    /// Writes stay on the fast tier until its space is needed
    FastFirst,
}

/// On or off.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Switch {
    /// Yes
    On,
    /// No
    Off,
}

/// Arguments of `convect pool create`.
#[derive(Args, Debug)]
pub struct PoolCreate {
    /// Name of the pool
    pub name: String,
    /// Tier, layout (default: concat) and drives of each vdrive: `fast /dev/nvme0n1 slow stripe:64k
    /// /dev/sda /dev/sdb`. Layouts: concat, stripe[:CHUNK], mirror
    #[arg(required = true, value_name = "fast|slow [LAYOUT] SPEC...")]
    pub vdrives: Vec<String>,
    /// When written data is moved from the fast to the slow tier
    #[arg(long, value_enum, default_value_t)]
    pub policy: Policy,
    /// Number of shards; 0 means one per CPU core
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub shards: u16,
    /// Overwrite drives that contain data (destroys it)
    #[arg(long)]
    pub force: bool,
    /// Accept that data is lost when an unmirrored fast drive fails
    #[arg(long)]
    pub accept_unmirrored: bool,
    /// Skip confirmation
    #[arg(long)]
    pub yes: bool,
}

/// Subcommands of `convect pool`.
#[derive(Subcommand, Debug)]
pub enum Pool {
    /// Create a pool
    Create(PoolCreate),
    /// List the pools
    List(NamedList),
    /// Show pools, their vdrives and their drives
    #[command(visible_alias = "show")]
    Status {
        /// Pools, or patterns like 'ta*' [default: all]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// Close a pool, so that another host can import it
    Export {
        /// The pool
        name: String,
        /// Continue although hosts are connected: they lose access
        #[arg(long)]
        force: bool,
    },
    /// Open a pool from its drives; without a name, list the pools found on them
    #[command(override_usage = "convect pool import [OPTIONS] [NAME] --drive <SPEC>...")]
    Import {
        /// The pool's name or id
        name: Option<String>,
        /// Drive to search; repeat for each. The pool's other drives are found by its label
        #[arg(long = "drive", value_name = "SPEC", num_args = 1..)]
        drives: Vec<String>,
        /// Directory whose files and block devices are searched; repeat for each
        /// [default, without --drive: /dev/disk/by-id]
        #[arg(short = 'd', long = "dir", value_name = "DIR")]
        folders: Vec<PathBuf>,
        /// Open the pool although drives are missing
        #[arg(long)]
        degraded: bool,
        /// Open it although a drive was restored to an earlier state: what was written since is lost
        #[arg(long)]
        accept_old: bool,
    },
    /// Destroy a pool and all data in it
    Destroy {
        /// The pool
        name: String,
        /// Destroy it although volumes are exported: their hosts lose access
        #[arg(long)]
        force: bool,
        /// Skip confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Add a vdrive to a pool
    Add {
        /// The pool
        name: String,
        /// Tier, layout and drives of the vdrive, as for `pool create`
        #[arg(required = true, value_name = "fast|slow [LAYOUT] SPEC...")]
        vdrive: Vec<String>,
        /// Overwrite drives that contain data (destroys it)
        #[arg(long)]
        force: bool,
    },
    /// Evacuate a vdrive and remove it from the pool
    Remove {
        /// The pool
        name: String,
        /// Number of the vdrive
        vdrive: u8,
        /// Skip confirmation
        #[arg(long)]
        yes: bool,
        /// Return immediately; the job continues in the background
        #[arg(long)]
        background: bool,
    },
    /// Bring a drive back online and resync its mirrors
    Online {
        /// The pool
        name: String,
        /// The drive, as shown by `pool status`, or its id
        drive: String,
        /// Accept a drive that was used without the pool's other drives; it is overwritten
        /// completely
        #[arg(long)]
        force: bool,
        /// Skip confirmation
        #[arg(long)]
        yes: bool,
        /// Return immediately; the job continues in the background
        #[arg(long)]
        background: bool,
    },
    /// Take a drive of a mirror offline until `pool online`
    Offline {
        /// The pool
        name: String,
        /// The drive
        drive: String,
    },
    /// Replace a drive of a mirror and resilver the new one
    Replace {
        /// The pool
        name: String,
        /// The old drive; may be missing
        old: String,
        /// The new drive, at least as large
        new: String,
        /// Overwrite a drive that contains data (destroys it)
        #[arg(long)]
        force: bool,
        /// Skip confirmation
        #[arg(long)]
        yes: bool,
        /// Return immediately; the job continues in the background
        #[arg(long)]
        background: bool,
    },
    /// Show I/O statistics of pools: IOPS, bandwidth, mean latency, share served by each tier
    Iostat {
        /// The pool [default: all]
        name: Option<String>,
        /// Print a report every SECS seconds
        #[arg(long, value_name = "SECS", num_args = 0..=1, default_missing_value = "1")]
        watch: Option<f64>,
        /// Stop after N reports
        #[arg(long, requires = "watch")]
        count: Option<u64>,
    },
    /// Show how much data a pool moved between RAM and its tiers since it was opened, by reason
    Moves(Moves),
    /// Forecast hit rates with other sizes of the fast tier, from recent traffic
    WhatIf {
        /// The pool
        name: String,
    },
    /// Scrub a pool: verify every copy of all data and repair what is corrupt
    Scrub {
        /// The pool
        name: String,
        /// Maximum bytes per second [default: from the daemon's configuration]
        #[arg(long)]
        rate: Option<String>,
        /// Wait until the scrub has finished; fail if data was lost
        #[arg(long)]
        wait: bool,
        /// Cancel the running scrub
        #[arg(long, conflicts_with_all = ["rate", "wait"])]
        cancel: bool,
    },
    /// Change settings of a pool
    Set(PoolSet),
    /// Set the fill levels at which a warning is raised
    #[command(after_help = WARN_AFTER)]
    Warn {
        /// The pool
        name: String,
        /// Levels in percent: at most 8 ascending numbers from 10 to 100
        #[arg(
            long,
            value_name = "PERCENT,...",
            value_delimiter = ',',
            required_unless_present = "off"
        )]
        at: Vec<u8>,
        /// Disable warnings
        #[arg(long, conflicts_with = "at")]
        off: bool,
    },
    /// Pause or resume promotion into RAM and the fast tier
    HoldPromotion {
        /// The pool
        name: String,
        /// Pause or resume
        state: Switch,
    },
    /// Flush and drop the fast-tier cache: write back all dirty data and evict all clean copies
    Cool {
        /// The pool
        name: String,
    },
}

/// Subcommands of `convect volume`.
#[derive(Subcommand, Debug)]
pub enum Volume {
    /// Create a volume
    Create {
        /// The volume
        #[arg(value_name = "POOL/VOL")]
        volume: String,
        /// Size of the volume
        #[arg(long)]
        size: String,
        /// Reserve its full size now
        #[arg(long)]
        thick: bool,
        /// Quota: maximum space for the volume and its snapshots
        #[arg(long, value_name = "SIZE")]
        quota: Option<String>,
        /// Reservation: space guaranteed to the volume and its snapshots
        #[arg(long, value_name = "SIZE")]
        reservation: Option<String>,
        /// Logical block size in bytes: 512 or 4096
        #[arg(long, default_value_t = 512)]
        lba: u32,
        #[command(flatten)]
        policy: FirstPolicy,
    },
    /// List the volumes of a pool, or all
    List(NamedList),
    /// Show a volume
    Show {
        /// The volume
        #[arg(value_name = "POOL/VOL")]
        volume: String,
    },
    /// Resize a volume
    Resize {
        /// The volume
        #[arg(value_name = "POOL/VOL")]
        volume: String,
        /// New size
        size: String,
        /// Allow shrinking: data beyond the new size is lost
        #[arg(long)]
        shrink: bool,
        /// Shrink it although hosts are connected
        #[arg(long, requires = "shrink")]
        force: bool,
        /// Skip confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Change settings of a volume while it is in use: quota, reservation, placement, policy
    #[command(
        after_help = SET_AFTER,
        group = clap::ArgGroup::new("what").required(true).multiple(true),
        override_usage = "convect volume set <POOL/VOL> <OPTIONS>"
    )]
    Set {
        /// The volume
        #[arg(value_name = "POOL/VOL")]
        volume: String,
        /// Quota: maximum space for the volume and its snapshots, or none
        #[arg(long, value_name = "SIZE|none", group = "what")]
        quota: Option<String>,
        /// Reservation: space guaranteed to the volume and its snapshots, or none
        #[arg(long, value_name = "SIZE|none", group = "what")]
        reservation: Option<String>,
        #[command(flatten)]
        placement: Placement,
        #[command(flatten)]
        targets: Targets,
        #[command(flatten)]
        policy: ChosenPolicy,
    },
    /// Promote a clone: swap it with its origin
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
        /// Delete its exports, too, although hosts may be connected
        #[arg(long)]
        force: bool,
        /// Skip confirmation
        #[arg(long)]
        yes: bool,
        /// Return immediately; space is freed in the background
        #[arg(long)]
        background: bool,
    },
}

/// Subcommands of `convect snapshot`.
#[derive(Subcommand, Debug)]
pub enum Snapshot {
    /// Create a snapshot of a volume, or of several volumes atomically
    Create {
        /// Snapshots to create, all in one pool and with the same name
        #[arg(value_name = "POOL/VOL@NAME", required = true)]
        snapshots: Vec<String>,
    },
    /// List snapshots with the space that only each of them uses (UNIQUE)
    List {
        /// Seconds to spend on computing UNIQUE, at most 20
        #[arg(long, value_name = "SECONDS", default_value_t = 1)]
        wait: u64,
        #[command(flatten)]
        list: NamedList,
    },
    /// Rename a snapshot
    Rename {
        /// The snapshot
        #[arg(value_name = "POOL/VOL@NAME")]
        snapshot: String,
        /// New name
        name: String,
    },
    /// Hold a snapshot to prevent its deletion
    Hold {
        /// The snapshot
        #[arg(value_name = "POOL/VOL@NAME")]
        snapshot: String,
    },
    /// Release the hold on a snapshot
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
        /// Delete their exports, too, although hosts may be connected
        #[arg(long)]
        force: bool,
        /// Skip confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Create a clone from a snapshot
    Clone {
        /// The snapshot
        #[arg(value_name = "POOL/VOL@NAME")]
        snapshot: String,
        /// Name of the new volume, in the same pool
        volume: String,
    },
    /// List the ranges that changed between a snapshot and a later snapshot, a clone or the volume
    #[command(after_help = DIFF_AFTER)]
    Diff {
        /// The snapshot
        #[arg(value_name = "POOL/VOL@NAME")]
        from: String,
        /// A later snapshot, a clone or a volume [default: the snapshot's volume]
        #[arg(value_name = "POOL/VOL[@NAME]")]
        to: Option<String>,
    },
    /// Manage snapshot schedules
    #[command(subcommand)]
    Schedule(Schedule),
    /// Roll a volume back to a snapshot
    Rollback {
        /// The snapshot
        #[arg(value_name = "POOL/VOL@NAME")]
        snapshot: String,
        /// Roll back although the volume is exported: hosts are disconnected meanwhile
        #[arg(long)]
        force: bool,
        /// Skip confirmation
        #[arg(long)]
        yes: bool,
    },
}

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

    /// Options of `command` and its subcommands that shadow a global option.
    fn shadowing_options(command: &clap::Command, everywhere: &[String]) -> Vec<String> {
        let own = longs(command, false).into_iter();
        let own = own.filter(|name| everywhere.contains(name));
        let mut found: Vec<String> = own
            .map(|name| format!("{} --{name}", command.get_name()))
            .collect();
        let below = command.get_subcommands();
        found.extend(below.flat_map(|below| shadowing_options(below, everywhere)));
        found
    }

    #[test]
    fn no_option_shadows_a_global_option() {
        let command = Arguments::command();
        let everywhere = longs(&command, true);
        assert!(everywhere.iter().any(|name| name == "server"));
        assert_eq!(
            shadowing_options(&command, &everywhere),
            Vec::<String>::new()
        );
    }
}
