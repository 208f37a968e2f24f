//! Arguments of `convect export` and `convect session`.

use crate::list_arguments::NamedList;
use clap::Subcommand;

/// Subcommands of `convect export`.
#[derive(Subcommand, Debug)]
pub enum Export {
    /// Export a volume, now and after every restart of the daemon
    #[command(
        after_help = "Without parameters, lists the parameters of the protocol.",
        override_usage = CREATE_USAGE
    )]
    Create {
        /// Name of the export
        name: String,
        /// Volume, or snapshot (read-only)
        #[arg(value_name = "POOL/VOL[@SNAPSHOT]")]
        volume: String,
        /// Protocol: vhost-user-blk, nbd, fuse or iscsi
        #[arg(value_name = "PROTOCOL")]
        kind: String,
        /// Initiator name of all I/O through this export, as used by `volume set --bypass`; may
        /// also follow the parameters
        #[arg(long, value_name = "NAME")]
        initiator: Option<String>,
        /// For a snapshot: export a writable clone of it instead, named like the export; the clone
        /// is kept when the export is deleted. May also follow the parameters
        #[arg(long)]
        writable: bool,
        /// Parameters of the protocol
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "--KEY VALUE"
        )]
        parameters: Vec<String>,
    },
    /// Change parameters while hosts are connected, where the protocol allows it; an empty value removes one
    Set {
        /// The export
        #[arg(value_name = "[POOL/]NAME")]
        name: String,
        /// The parameters to change
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            required = true,
            value_name = "--KEY VALUE"
        )]
        parameters: Vec<String>,
    },
    /// List the exports
    List(NamedList),
    /// Show an export and how to use it
    Show {
        /// The export
        #[arg(value_name = "[POOL/]NAME")]
        name: String,
    },
    /// Disable an export: it keeps its parameters, but serves no hosts
    Disable {
        /// The export
        #[arg(value_name = "[POOL/]NAME")]
        name: String,
        /// Continue although hosts are connected: they lose access
        #[arg(long)]
        force: bool,
    },
    /// Enable an export again
    Enable {
        /// The export
        #[arg(value_name = "[POOL/]NAME")]
        name: String,
    },
    /// Delete an export
    Delete {
        /// The export
        #[arg(value_name = "[POOL/]NAME")]
        name: String,
        /// Skip confirmation
        #[arg(long)]
        yes: bool,
    },
}

const CREATE_USAGE: &str = "\
convect export create [OPTIONS] <NAME> <POOL/VOL[@SNAPSHOT]> <PROTOCOL>
           [--KEY VALUE]...";

/// Subcommands of `convect session`.
#[derive(Subcommand, Debug)]
pub enum Session {
    /// List the sessions of hosts; named by their initiators
    List(NamedList),
    /// Disconnect a session; the host may reconnect unless its access is revoked
    End {
        /// Number of the session
        id: u64,
    },
}
