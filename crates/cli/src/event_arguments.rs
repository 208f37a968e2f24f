//! Arguments of `convect event`, `history` and `alert`.

use crate::list_arguments::{ListOptions, NamedList};
use api::Secret;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Event filters.
#[derive(Args, Debug)]
pub struct EventFilter {
    /// Minimum severity
    #[arg(long, value_parser = ["info", "warning", "critical"])]
    pub severity: Option<String>,
    /// Only events with these codes (docs/events.md)
    #[arg(long, value_name = "CODE,...")]
    pub code: Option<String>,
    /// Only events of this pool
    #[arg(long)]
    pub pool: Option<String>,
}

/// Subcommands of `convect event`.
#[derive(Subcommand, Debug)]
pub enum Event {
    /// List events, newest first
    List {
        #[command(flatten)]
        which: EventFilter,
        /// Number of events to show, 1 to 1000
        #[arg(long, value_name = "NUMBER", default_value_t = 50)]
        limit: usize,
        /// Only events before this event number
        #[arg(long, value_name = "NUMBER")]
        before: Option<u64>,
        #[command(flatten)]
        options: ListOptions,
    },
    /// Follow new events until Ctrl-C
    Watch,
}

/// Arguments of `convect history`.
#[derive(Args, Debug)]
pub struct History {
    /// Pool or volume
    #[arg(value_name = "POOL[/VOL]")]
    pub of: String,
    /// A tier of the pool
    #[arg(long, value_parser = ["ram", "fast", "slow"])]
    pub tier: Option<String>,
    /// A vdrive of the pool, by its number
    #[arg(long, value_name = "N", conflicts_with = "tier")]
    pub vdrive: Option<u8>,
    /// A drive of the pool, by its specification
    #[arg(long, value_name = "SPEC", conflicts_with_all = ["tier", "vdrive"])]
    pub drive: Option<String>,
    /// An export of the pool
    #[arg(long, value_name = "NAME", conflicts_with_all = ["tier", "vdrive", "drive"])]
    pub export: Option<String>,
    /// A quality-of-service policy of the pool: sum over its volumes
    #[arg(long, value_name = "NAME", conflicts_with_all = ["tier", "vdrive", "drive", "export"])]
    pub policy: Option<String>,
    /// Time range, like 10m, 1h or 30d
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub last: String,
    /// Step length [default: chosen to fit the time range]
    #[arg(long, value_name = "TIME")]
    pub step: Option<String>,
    /// Only these metrics
    #[arg(long, value_name = "NAME,...")]
    pub series: Option<String>,
    /// Print all steps, not only the last 20
    #[arg(long)]
    pub all: bool,
}

/// Subcommands of `convect alert`.
#[derive(Subcommand, Debug)]
pub enum Alert {
    /// List the open alerts with what to do; as a table with -o, -H, -p or --sort
    List(ListOptions),
    /// Manage notification targets: webhooks and e-mail
    #[command(subcommand)]
    Target(Box<Target>),
}

/// Subcommands of `convect alert target`.
#[derive(Subcommand, Debug)]
pub enum Target {
    /// Create a target
    #[command(subcommand)]
    Create(Create),
    /// List the targets and the state of their deliveries
    List(NamedList),
    /// Delete a target
    Delete {
        /// Name of the target
        name: String,
        /// Skip confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Send a test event to a target and report whether it was accepted
    Test {
        /// The target
        name: String,
    },
}

/// Options common to all targets.
#[derive(Args, Debug)]
pub struct Common {
    /// Name of the target
    pub name: String,
    /// Minimum severity of events to send
    #[arg(long, default_value = "warning", value_parser = ["info", "warning", "critical"])]
    pub severity: String,
    /// File of CA certificates (PEM) to trust in addition to the system's
    #[arg(long, value_name = "FILE")]
    pub trust: Option<PathBuf>,
}

/// Subcommands of `convect alert target create`.
#[derive(Subcommand, Debug)]
pub enum Create {
    /// Webhook: POST each event as JSON
    Webhook {
        #[command(flatten)]
        common: Common,
        /// URL: https://HOST[:PORT]/PATH, or http
        #[arg(long)]
        url: Secret,
        /// File with the secret for signing requests (HMAC-SHA256); - for the standard input
        #[arg(long, value_name = "FILE")]
        secret_file: Option<PathBuf>,
    },
    /// E-mail over SMTP
    #[command(override_usage = EMAIL_USAGE)]
    Email {
        #[command(flatten)]
        common: Common,
        /// Mail server
        #[arg(long, value_name = "HOST")]
        mail_server: String,
        /// Port of the mail server [default: 587, 465 or 25, depending on --security]
        #[arg(long)]
        port: Option<u16>,
        /// Transport security: starttls, tls, or plain (this host only)
        #[arg(long, default_value = "starttls", value_parser = ["starttls", "tls", "plain"])]
        security: String,
        /// User name to log in with
        #[arg(long, requires = "password_file")]
        user: Option<String>,
        /// File with the password; - for the standard input
        #[arg(long, value_name = "FILE", requires = "user")]
        password_file: Option<PathBuf>,
        /// Sender address
        #[arg(long, value_name = "ADDRESS")]
        from: String,
        /// Recipient address; repeat for each
        #[arg(long, value_name = "ADDRESS", required = true)]
        to: Vec<String>,
    },
}

const EMAIL_USAGE: &str = "\
convect alert target create email [OPTIONS] --mail-server <HOST>
           --from <ADDRESS> --to <ADDRESS>... <NAME>";
