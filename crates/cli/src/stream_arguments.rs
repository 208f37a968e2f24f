//! Arguments of `convect send` and `convect receive`.

use clap::Args;

/// Arguments of `convect send`.
#[derive(Args, Debug)]
#[command(after_help = SEND_AFTER)]
pub struct Send {
    /// Snapshot to send
    #[arg(value_name = "POOL/VOL@NAME")]
    pub snapshot: String,
    /// Incremental: send only changes since this snapshot, which the receiver must have
    #[arg(long, value_name = "NAME")]
    pub from: Option<String>,
    /// Resume an interrupted stream with the receiver's token
    #[arg(long, value_name = "TOKEN", conflicts_with = "from")]
    pub resume: Option<String>,
}

const SEND_AFTER: &str = "\
The stream is written to the standard output: redirect it to a file or pipe it into `convect receive`. \
Only the sent ranges are read from the volume; a summary is printed at the end.";

/// Arguments of `convect receive`.
#[derive(Args, Debug)]
#[command(after_help = RECEIVE_AFTER)]
pub struct Receive {
    /// Volume: created by a full stream; for an incremental one it must have the base snapshot
    #[arg(value_name = "POOL/VOL")]
    pub volume: String,
    /// Roll the volume back to the base snapshot first; writes since are lost
    #[arg(long)]
    pub force: bool,
    /// Show the progress of an interrupted receive and the token for `send --resume`
    #[arg(long, conflicts_with = "force")]
    pub status: bool,
}

const RECEIVE_AFTER: &str = "\
The stream is read from the standard input. The snapshot appears when the whole stream has been verified. \
Until then the volume cannot be exported, and an interrupted receive can be resumed.";
