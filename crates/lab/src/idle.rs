//! The daemon's resource usage while it is idle.

use crate::arguments::Idle;
use crate::daemon::Daemon;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::machine;
use crate::scratch::Scratch;
use crate::screen;
use std::path::Path;
use std::time::{Duration, Instant};

const GIB: u64 = 1 << 30;
/// Work after a start belongs to it, and is left out.
const SETTLE: Duration = Duration::from_secs(3);

/// Exports volumes, waits, and prints the share of a core that the daemon used.
pub fn run(convect: &Path, with: &Idle) -> Result<()> {
    let scratch = Scratch::new("idle", 4 * GIB)?;
    let mut daemon = Daemon::start(convect, scratch.path(), "")?;
    let drive =
        |name: &str, size: &str| format!("file:{}?size={size}", scratch.join(name).display());
    let (fast, slow) = (drive("fast.img", "2G"), drive("slow.img", "16G"));
    daemon.run(&[
        "pool",
        "create",
        "idle",
        "fast",
        &fast,
        "slow",
        &slow,
        "--accept-unmirrored",
    ])?;
    for number in 1..=with.volumes {
        let volume = format!("idle/v{number}");
        daemon.run(&["volume", "create", &volume, "--size", "1G"])?;
        let listen = format!("unix:{}", scratch.join(&format!("{number}.sock")).display());
        let name = format!("e{number}");
        daemon.run(&[
            "export", "create", &name, &volume, "nbd", "--listen", &listen,
        ])?;
    }
    interrupt::pause(SETTLE)?;
    let (begun, before) = (Instant::now(), machine::processor_seconds(daemon.pid())?);
    interrupt::pause(Duration::from_secs(with.seconds))?;
    let used = machine::processor_seconds(daemon.pid())? - before;
    let percent = 100.0 * used / begun.elapsed().as_secs_f64();
    let row = [
        with.volumes.to_string(),
        with.seconds.to_string(),
        format!("{percent:.2} %"),
    ];
    println!(
        "{}",
        screen::table(&["volumes", "seconds", "of a core"], &[row.to_vec()])
    );
    daemon.stop()?;
    match with.limit {
        Some(limit) if percent > limit => Err(Failure::new(format!(
            "{percent:.2} % of a core is more than {limit} %"
        ))),
        _ => Ok(()),
    }
}
