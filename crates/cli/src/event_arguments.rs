//! Events and alerts on the command line.

use api::Secret;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Which events.
#[derive(Args, Debug)]
pub struct Which {
    /// Only those that matter at least so much
    #[arg(long, value_parser = ["info", "warning", "critical"])]
    pub severity: Option<String>,
    /// Only those of these codes (docs/events.md)
    #[arg(long, value_name = "CODE,...")]
    pub code: Option<String>,
    /// Only those of this pool
    #[arg(long)]
    pub pool: Option<String>,
}

/// `event`.
#[derive(Subcommand, Debug)]
pub enum Event {
    /// List what happened, newest first
    List {
        #[command(flatten)]
        which: Which,
        /// How many events, 1 to 1000
        #[arg(long, value_name = "NUMBER", default_value_t = 50)]
        limit: usize,
        /// Only those with a smaller number than this
        #[arg(long, value_name = "NUMBER")]
        before: Option<u64>,
    },
    /// Print what happens from now on, until Ctrl-C
    Watch,
}

/// `history`.
#[derive(Args, Debug)]
pub struct History {
    /// A volume, or a pool
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
    /// A quality-of-service policy of the pool: the volumes that have it together
    #[arg(long, value_name = "NAME", conflicts_with_all = ["tier", "vdrive", "drive", "export"])]
    pub policy: Option<String>,
    /// How far back, like 10m, 1h or 30d
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub last: String,
    /// How long a step is; what fits when left out
    #[arg(long, value_name = "TIME")]
    pub step: Option<String>,
    /// Only these figures
    #[arg(long, value_name = "NAME,...")]
    pub series: Option<String>,
    /// All steps, not only the last 20
    #[arg(long)]
    pub all: bool,
}

/// `alert`.
#[derive(Subcommand, Debug)]
pub enum Alert {
    /// List what is wrong now; with nothing wrong it prints nothing
    List,
    /// Have somebody told of events, by webhook or e-mail
    #[command(subcommand)]
    Target(Box<Target>),
}

/// `alert target`.
#[derive(Subcommand, Debug)]
pub enum Target {
    /// Make a target, which is told of events from now on
    #[command(subcommand)]
    Create(Create),
    /// List the targets, and how they do; without secrets
    List,
    /// Tell a target no more
    Delete {
        /// Its name
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Send an event that is none, and say whether it was taken
    Test {
        /// The target
        name: String,
    },
}

/// What all targets have.
#[derive(Args, Debug)]
pub struct Common {
    /// Its name
    pub name: String,
    /// It is told of events that matter at least so much
    #[arg(long, default_value = "warning", value_parser = ["info", "warning", "critical"])]
    pub severity: String,
    /// A file of certificates that it is trusted by, besides the system's
    #[arg(long, value_name = "FILE")]
    pub trust: Option<PathBuf>,
}

/// `alert target create`.
#[derive(Subcommand, Debug)]
pub enum Create {
    /// A POST of JSON for each event
    Webhook {
        #[command(flatten)]
        common: Common,
        /// https://HOST[:PORT]/PATH, or with http
        #[arg(long)]
        url: Secret,
        /// A file with what requests are signed with (HMAC-SHA256); - is the standard input
        #[arg(long, value_name = "FILE")]
        secret_file: Option<PathBuf>,
    },
    /// Mail
    Email {
        #[command(flatten)]
        common: Common,
        /// The mail server
        #[arg(long, value_name = "HOST")]
        mail_server: String,
        /// Its port; 587, 465 or 25 by its security when left out
        #[arg(long)]
        port: Option<u16>,
        /// starttls, tls, or plain on this host
        #[arg(long, default_value = "starttls", value_parser = ["starttls", "tls", "plain"])]
        security: String,
        /// Who logs in there
        #[arg(long, requires = "password_file")]
        user: Option<String>,
        /// A file with the password; - is the standard input
        #[arg(long, value_name = "FILE", requires = "user")]
        password_file: Option<PathBuf>,
        /// The sender's address
        #[arg(long, value_name = "ADDRESS")]
        from: String,
        /// A receiver's address; may be given again
        #[arg(long, value_name = "ADDRESS", required = true)]
        to: Vec<String>,
    },
}
