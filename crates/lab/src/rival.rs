//! A file served over NBD by qemu-nbd: the performance of the same client without Convect.

use crate::failure::{Failure, Result, While};
use crate::fio::Target;
use crate::interrupt;
use crate::process::Process;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long the server may take to answer.
const START_TIME: Duration = Duration::from_secs(20);
/// Bytes of one write while a file is filled.
const FILL: usize = 1 << 20;

/// A memory area that O_DIRECT accepts.
#[repr(C, align(4096))]
struct Aligned([u8; FILL]);

/// Writes a file full of what looks like data, so that no read of it is answered by a hole.
pub fn write_file(path: &Path, size: u64) -> Result<()> {
    let mut area: Box<Aligned> = Box::new(Aligned([0; FILL]));
    let mut chance = crate::chance::Chance::new(size);
    for word in area.0.chunks_exact_mut(8) {
        word.copy_from_slice(&chance.next().to_le_bytes());
    }
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(libc::O_DIRECT);
    let mut file = options
        .open(path)
        .during(|| format!("cannot make {}", path.display()))?;
    let mut left = size;
    while left > 0 {
        interrupt::check()?;
        let part = left.min(FILL as u64) as usize;
        file.write_all(&area.0[..part])
            .during(|| format!("cannot fill {}", path.display()))?;
        left -= part as u64;
    }
    file.sync_all()?;
    Ok(())
}

/// The content of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// The disk's content, byte by byte.
    Raw,
    /// QEMU's image format.
    Qcow2,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
        }
    }
}

/// A running server.
pub struct Rival {
    socket: PathBuf,
    process: Process,
}

impl Rival {
    /// Serves `file` on a socket in `folder`.
    pub fn serve(file: &Path, format: Format, folder: &Path) -> Result<Self> {
        let socket = folder.join("raw.sock");
        let mut reason = String::new();
        for aio in ["io_uring", "native"] {
            let words = folder.join("qemu-nbd.err");
            let mut command = Command::new("qemu-nbd");
            command
                .args(["--persistent", "--cache=none", "--shared=16"])
                .arg(format!("--format={}", format.name()))
                .arg(format!("--aio={aio}"))
                .arg(format!("--socket={}", socket.display()))
                .arg(file)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(File::create(&words)?);
            let mut process = Process::start("qemu-nbd", &mut command)?;
            let mut gone = false;
            let answers = interrupt::wait_for(START_TIME, || {
                gone = process.ended()?.is_some();
                Ok(gone || UnixStream::connect(&socket).is_ok())
            })?;
            if answers && !gone {
                return Ok(Self { socket, process });
            }
            reason = std::fs::read_to_string(&words).unwrap_or_default();
        }
        Err(Failure::new(format!(
            "qemu-nbd does not serve the {} file: {}",
            format.name(),
            reason.trim()
        )))
    }

    /// The server's process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The target for fio.
    pub fn target(&self) -> Target {
        Target::Nbd {
            export: String::new(),
            socket: self.socket.clone(),
        }
    }
}
