//! What can be written about quality of service on the command line.

use clap::{Args, Subcommand};

const CREATE_AFTER: &str = "\
A minimum is guaranteed while the volume has work queued; of operations and bytes a second the one counts that is reached \
first. What others do not use is anyone's.\n\
Example: convect qos policy create tank/gold --level 2 --min-iops 20000 --max-latency 5ms";

const GROUP_AFTER: &str = "\
The minimums and maximums hold for the sum of its volumes; clones are in the group of their origin.\n\
Example: convect qos group create tank/accounting --policy business-critical\n\
         convect volume set tank/ledger --group accounting";

const POLICY_AFTER: &str = "\
Example: convect qos check tank --policy mission-critical --volumes 3";

/// `qos`.
#[derive(Subcommand, Debug)]
pub enum Qos {
    /// Show the guarantees of volumes with policies and what they attain
    Status {
        /// The pool
        pool: String,
    },
    /// Check whether a pool can keep the minimums of its volumes, and of planned ones
    #[command(after_help = POLICY_AFTER)]
    Check {
        /// The pool
        pool: String,
        /// Policy of volumes that are planned, by its name or number
        #[arg(long)]
        policy: Option<String>,
        /// How many volumes are planned [default: 1]
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

/// `qos group`.
#[derive(Subcommand, Debug)]
pub enum QosGroup {
    /// List the groups of a pool with their volumes
    List {
        /// The pool
        pool: String,
    },
    /// Show a group and what its volumes attained together
    Show {
        /// The group
        #[arg(value_name = "POOL/GROUP")]
        group: String,
    },
    /// Create a group whose volumes share the figures of a policy
    #[command(after_help = GROUP_AFTER)]
    Create {
        /// The group
        #[arg(value_name = "POOL/GROUP")]
        group: String,
        /// The policy, by its name or number
        #[arg(long)]
        policy: String,
        /// Even when the pool can no longer keep all minimums
        #[arg(long)]
        overcommit: bool,
    },
    /// Change the policy of a group
    #[command(after_help = GROUP_AFTER)]
    Set {
        /// The group
        #[arg(value_name = "POOL/GROUP")]
        group: String,
        /// The policy, by its name or number
        #[arg(long)]
        policy: String,
        /// Even when the pool can no longer keep all minimums
        #[arg(long)]
        overcommit: bool,
    },
    /// Delete a group that no volume is in
    Delete {
        /// The group
        #[arg(value_name = "POOL/GROUP")]
        group: String,
    },
}

/// `qos policy`.
#[derive(Subcommand, Debug)]
pub enum QosPolicy {
    /// List the policies of a pool
    List {
        /// The pool
        pool: String,
    },
    /// Show a policy
    Show {
        /// The policy, by its name or number
        #[arg(value_name = "POOL/POLICY")]
        policy: String,
    },
    /// Create a policy
    #[command(after_help = CREATE_AFTER, group = clap::ArgGroup::new("figure").multiple(true))]
    Create {
        /// The policy
        #[arg(value_name = "POOL/POLICY")]
        policy: String,
        /// Its limits
        #[command(flatten)]
        figures: Figures,
    },
    /// Change a policy for all volumes that have it
    #[command(after_help = CREATE_AFTER, group = clap::ArgGroup::new("figure").required(true).multiple(true))]
    Set {
        /// The policy, by its name or number
        #[arg(value_name = "POOL/POLICY")]
        policy: String,
        /// What is changed
        #[command(flatten)]
        figures: Figures,
        /// Even when the pool can no longer keep all minimums
        #[arg(long)]
        overcommit: bool,
    },
    /// Delete a policy that no volume and no group has
    Delete {
        /// The policy, by its name or number
        #[arg(value_name = "POOL/POLICY")]
        policy: String,
    },
}

/// Figures of a policy.
#[derive(Args, Debug)]
pub struct Figures {
    /// Service level: 1 keeps its minimum longest, 5 loses it first
    #[arg(long, value_name = "1-5", group = "figure")]
    pub level: Option<u8>,
    /// Guaranteed IOPS, or none
    #[arg(long, value_name = "N|none", group = "figure")]
    pub min_iops: Option<String>,
    /// Guaranteed bandwidth in bytes a second, or none
    #[arg(long, value_name = "SIZE|none", group = "figure")]
    pub min_bandwidth: Option<String>,
    /// Most IOPS, or none
    #[arg(long, value_name = "N|none", group = "figure")]
    pub max_iops: Option<String>,
    /// Most bandwidth in bytes a second, or none
    #[arg(long, value_name = "SIZE|none", group = "figure")]
    pub max_bandwidth: Option<String>,
    /// Burst: seconds of its maximum that an idle volume may save up
    #[arg(long, value_name = "SECONDS", group = "figure")]
    pub burst: Option<u32>,
    /// Target p99 latency, or none
    #[arg(long, value_name = "TIME|none", group = "figure")]
    pub max_latency: Option<String>,
    /// Weight in sharing what is left over, 1 to 10000; volumes without a policy have 100
    #[arg(long, value_name = "N", group = "figure")]
    pub weight: Option<u32>,
}

/// `volume create`: the policy that it has.
#[derive(Args, Debug)]
pub struct FirstPolicy {
    /// Its quality-of-service policy, by its name or number: see `convect qos policy list`
    #[arg(long)]
    pub policy: Option<String>,
    /// Group whose policy it shares: see `convect qos group list`
    #[arg(long, conflicts_with = "policy")]
    pub group: Option<String>,
    /// Assign the policy even when the pool can no longer keep all minimums
    #[arg(long, requires = "policy")]
    pub overcommit: bool,
}

/// `volume set`: the policy that it has.
#[derive(Args, Debug)]
pub struct ChosenPolicy {
    /// Its quality-of-service policy, by its name or number, or none
    #[arg(long, value_name = "POLICY|none", group = "what")]
    pub policy: Option<String>,
    /// Group whose policy it shares, or none
    #[arg(
        long,
        value_name = "GROUP|none",
        group = "what",
        conflicts_with = "policy"
    )]
    pub group: Option<String>,
    /// Assign the policy even when the pool can no longer keep all minimums
    #[arg(long, requires = "policy")]
    pub overcommit: bool,
}
