//! Arguments of `convect qos`, and QoS options of `convect volume`.

use crate::list_arguments::ListOptions;
use crate::placement_arguments::Reaction;
use clap::{Args, Subcommand};

const CREATE_AFTER: &str = "\
A minimum is guaranteed while the volume has queued requests. With minimums of both IOPS and bandwidth, \
the one reached first counts. Unused guaranteed capacity is available to other volumes.";

const GROUP_AFTER: &str = "\
Minimums and maximums apply to the sum of the group's volumes; clones join the group of their origin.";

/// Subcommands of `convect qos`.
#[derive(Subcommand, Debug)]
pub enum Qos {
    /// Show guarantees and attained performance of volumes with policies
    Status {
        /// The pool
        pool: String,
    },
    /// Check whether a pool can guarantee the minimums of existing and planned volumes
    Check {
        /// The pool
        pool: String,
        /// Policy of the planned volumes, by name or number
        #[arg(long)]
        policy: Option<String>,
        /// Number of planned volumes [default: 1]
        #[arg(long, requires = "policy", value_name = "N")]
        volumes: Option<u32>,
    },
    /// Manage the policies of a pool
    #[command(subcommand)]
    Policy(QosPolicy),
    /// Manage groups of volumes that share a policy
    #[command(subcommand)]
    Group(QosGroup),
}

/// Subcommands of `convect qos group`.
#[derive(Subcommand, Debug)]
pub enum QosGroup {
    /// List the groups of a pool with their volumes
    List {
        /// The pool
        pool: String,
        #[command(flatten)]
        options: ListOptions,
    },
    /// Show a group and the combined performance of its volumes
    Show {
        /// The group
        #[arg(value_name = "POOL/GROUP")]
        group: String,
    },
    /// Create a group of volumes that share the limits of one policy
    #[command(after_help = GROUP_AFTER)]
    Create {
        /// The group
        #[arg(value_name = "POOL/GROUP")]
        group: String,
        /// Policy, by name or number
        #[arg(long)]
        policy: String,
        /// Allow minimums that exceed what the pool can guarantee
        #[arg(long)]
        overcommit: bool,
    },
    /// Change the policy of a group
    #[command(after_help = GROUP_AFTER)]
    Set {
        /// The group
        #[arg(value_name = "POOL/GROUP")]
        group: String,
        /// Policy, by name or number
        #[arg(long)]
        policy: String,
        /// Allow minimums that exceed what the pool can guarantee
        #[arg(long)]
        overcommit: bool,
    },
    /// Delete an empty group
    Delete {
        /// The group
        #[arg(value_name = "POOL/GROUP")]
        group: String,
    },
}

/// Subcommands of `convect qos policy`.
#[derive(Subcommand, Debug)]
pub enum QosPolicy {
    /// List the policies of a pool
    List {
        /// The pool
        pool: String,
        #[command(flatten)]
        options: ListOptions,
    },
    /// Show a policy
    Show {
        /// Policy, by name or number
        #[arg(value_name = "POOL/POLICY")]
        policy: String,
    },
    /// Create a policy
    #[command(after_help = CREATE_AFTER, group = clap::ArgGroup::new("figure").multiple(true))]
    Create {
        /// Name of the policy
        #[arg(value_name = "POOL/POLICY")]
        policy: String,
        /// The limits.
        #[command(flatten)]
        figures: Figures,
    },
    /// Change a policy for all volumes that use it
    #[command(
        after_help = CREATE_AFTER,
        group = clap::ArgGroup::new("figure").required(true).multiple(true),
        override_usage = "convect qos policy set <POOL/POLICY> <OPTIONS>"
    )]
    Set {
        /// Policy, by name or number
        #[arg(value_name = "POOL/POLICY")]
        policy: String,
        /// The limits to change.
        #[command(flatten)]
        figures: Figures,
        /// Allow minimums that exceed what the pool can guarantee
        #[arg(long)]
        overcommit: bool,
    },
    /// Delete a policy that no volume and no group uses
    Delete {
        /// Policy, by name or number
        #[arg(value_name = "POOL/POLICY")]
        policy: String,
    },
}

/// Limits of a policy.
#[derive(Args, Debug)]
pub struct Figures {
    /// Service level: under contention, level 1 keeps its minimum longest and level 5 loses it
    /// first
    #[arg(long, value_name = "1-5", group = "figure")]
    pub level: Option<u8>,
    /// Guaranteed IOPS, or none
    #[arg(long, value_name = "N|none", group = "figure")]
    pub min_iops: Option<String>,
    /// Guaranteed bandwidth in bytes per second, or none
    #[arg(long, value_name = "SIZE|none", group = "figure")]
    pub min_bandwidth: Option<String>,
    /// Maximum IOPS, or none
    #[arg(long, value_name = "N|none", group = "figure")]
    pub max_iops: Option<String>,
    /// Maximum bandwidth in bytes per second, or none
    #[arg(long, value_name = "SIZE|none", group = "figure")]
    pub max_bandwidth: Option<String>,
    /// Burst: seconds' worth of the maximum that an idle volume may accumulate
    #[arg(long, value_name = "SECONDS", group = "figure")]
    pub burst: Option<u32>,
    /// Target p99 latency, or none
    #[arg(long, value_name = "TIME|none", group = "figure")]
    pub max_latency: Option<String>,
    /// Weight for sharing spare capacity, 1 to 10000; volumes without a policy have 100
    #[arg(long, value_name = "N", group = "figure")]
    pub weight: Option<u32>,
    /// How eagerly data is promoted to the fast tier; normal: according to the level
    #[arg(long, group = "figure")]
    pub reaction: Option<Reaction>,
    /// Guaranteed fast-tier space of each volume, or none; a group's volumes share it
    #[arg(long, value_name = "SIZE|none", group = "figure")]
    pub fast_floor: Option<String>,
    /// Guaranteed percentage of the RAM cache of each volume, at most 75, or none; a group's
    /// volumes share it
    #[arg(long, value_name = "PERCENT|none", group = "figure")]
    pub ram_share: Option<String>,
}

/// QoS options of `convect volume create`.
#[derive(Args, Debug)]
pub struct FirstPolicy {
    /// QoS policy, by name or number: see `convect qos policy list`
    #[arg(long)]
    pub policy: Option<String>,
    /// QoS group whose policy the volume shares: see `convect qos group list`
    #[arg(long, conflicts_with = "policy")]
    pub group: Option<String>,
    /// Allow minimums that exceed what the pool can guarantee
    #[arg(long, requires = "policy")]
    pub overcommit: bool,
}

/// QoS options of `convect volume set`.
#[derive(Args, Debug)]
pub struct ChosenPolicy {
    /// QoS policy, by name or number, or none
    #[arg(long, value_name = "POLICY|none", group = "what")]
    pub policy: Option<String>,
    /// QoS group whose policy the volume shares, or none
    #[arg(
        long,
        value_name = "GROUP|none",
        group = "what",
        conflicts_with = "policy"
    )]
    pub group: Option<String>,
    /// Allow minimums that exceed what the pool can guarantee
    #[arg(long, requires = "policy")]
    pub overcommit: bool,
}
