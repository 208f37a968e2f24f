//! Arguments of `convect token` and `convect audit`.

use crate::list_arguments::{ListOptions, NamedList};
use api::v1::Role;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

/// Subcommands of `convect token`.
#[derive(Subcommand, Debug)]
pub enum Token {
    /// Create a token and print it once
    Create {
        /// Name of the token
        name: String,
        /// Role: viewer (read only), operator (volumes, snapshots and exports) or admin (everything)
        #[arg(long, value_parser = PossibleValuesParser::new(["viewer", "operator", "admin"]).map(role))]
        role: Role,
        /// Lifetime, like 12h or 90d
        #[arg(long, value_name = "TIME", default_value = "90d")]
        expires: String,
    },
    /// List the tokens
    List(NamedList),
    /// Revoke a token and its sessions
    Revoke {
        /// Name of the token
        name: String,
        /// Skip confirmation
        #[arg(long)]
        yes: bool,
    },
}

/// Arguments of `convect audit`.
#[derive(Args, Debug)]
pub struct Audit {
    /// Number of entries to show
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub limit: usize,
    /// How to print it.
    #[command(flatten)]
    pub options: ListOptions,
}

fn role(text: String) -> Role {
    match text.as_str() {
        "admin" => Role::Admin,
        "operator" => Role::Operator,
        _ => Role::Viewer,
    }
}
