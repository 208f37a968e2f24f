//! Tokens and the log of changes on the command line.

use api::v1::Role;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

/// `token`.
#[derive(Subcommand, Debug)]
pub enum Token {
    /// Create a token and print it once
    Create {
        /// Its name
        name: String,
        /// Role: viewer (read only), operator (volumes, snapshots and exports) or admin (everything)
        #[arg(long, value_parser = PossibleValuesParser::new(["viewer", "operator", "admin"]).map(role))]
        role: Role,
        /// Lifetime, like 12h or 90d
        #[arg(long, value_name = "TIME", default_value = "90d")]
        expires: String,
    },
    /// List the tokens
    List,
    /// Revoke a token and its sessions
    Revoke {
        /// Its name
        name: String,
        /// Skip confirmation
        #[arg(long)]
        yes: bool,
    },
}

/// `audit`.
#[derive(Args, Debug)]
pub struct Audit {
    /// Number of entries
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub limit: usize,
}

fn role(text: String) -> Role {
    match text.as_str() {
        "admin" => Role::Admin,
        "operator" => Role::Operator,
        _ => Role::Viewer,
    }
}
