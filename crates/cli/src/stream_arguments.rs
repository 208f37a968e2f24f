//! Arguments of `send` and `receive`.

use clap::Args;

/// `send`.
#[derive(Args, Debug)]
#[command(after_help = SEND_AFTER)]
pub struct Send {
    /// The snapshot
    #[arg(value_name = "POOL/VOL@NAME")]
    pub snapshot: String,
    /// Incremental: send only changes since this snapshot, which the receiver has
    #[arg(long, value_name = "NAME")]
    pub from: Option<String>,
    /// Resume an interrupted stream, by the receiver's token
    #[arg(long, value_name = "TOKEN", conflicts_with = "from")]
    pub resume: Option<String>,
}

const SEND_AFTER: &str = "\
The stream goes to the standard output: a file, or `convect receive`. Only what is sent is read of the \
volume; how much that was is told at the end.";

/// `receive`.
#[derive(Args, Debug)]
#[command(after_help = RECEIVE_AFTER)]
pub struct Receive {
    /// The volume: a new one for a full stream, else one that has the snapshot that the stream is based on
    #[arg(value_name = "POOL/VOL")]
    pub volume: String,
    /// First roll the volume back to that snapshot: what was written since is lost
    #[arg(long)]
    pub force: bool,
    /// Show the progress of an interrupted receive and the token for `send --resume`
    #[arg(long, conflicts_with = "force")]
    pub status: bool,
}

const RECEIVE_AFTER: &str = "\
The stream comes from the standard input. The snapshot is there when all of the stream was right. Until \
then the volume cannot be exported, and goes on from where it is.";
