//! Arguments of `export` and `session`.

use clap::Subcommand;

/// `export`.
#[derive(Subcommand, Debug)]
pub enum Export {
    /// Export a volume, now and after every start of the daemon
    #[command(after_help = "Without parameters it lists those of the protocol.")]
    Create {
        /// The export's name
        name: String,
        /// The volume, or a snapshot (read only)
        #[arg(value_name = "POOL/VOL[@SNAPSHOT]")]
        volume: String,
        /// The protocol: vhost-user-blk, nbd, fuse or iscsi
        #[arg(value_name = "PROTOCOL")]
        kind: String,
        /// Whose reads and writes all come through it, as `volume set --bypass` names them; may stand among the
        /// parameters as well
        #[arg(long, value_name = "NAME")]
        initiator: Option<String>,
        /// Of a snapshot: hosts may write. A clone of it is made, with the export's name, and exported in its place;
        /// it stays when the export ends. May stand among the parameters as well
        #[arg(long)]
        writable: bool,
        /// Its parameters
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
    List,
    /// Show an export and how to use it
    Show {
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

/// `session`.
#[derive(Subcommand, Debug)]
pub enum Session {
    /// List the sessions of hosts
    List,
    /// Disconnect a session; the host may reconnect unless its access is revoked
    End {
        /// Its number
        id: u64,
    },
}
