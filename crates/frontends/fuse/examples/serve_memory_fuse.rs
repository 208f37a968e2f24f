//! Serves a volume in memory, to measure what the front end itself costs:
//!
//! ```text
//! cargo run --release -p convect-fuse --example serve_memory_fuse -- /tmp/folder 1G
//! fio --name=a --filename=/tmp/folder/memory --ioengine=libaio --direct=1 --rw=randread \
//!     --bs=4k --iodepth=64 --size=1G --time_based --runtime=10
//! ```
//!
//! It ends when its standard input does.

#[path = "../../nbd/examples/instant/mod.rs"]
mod instant;

use instant::Memory;
use reactor::{ReactorThread, StartExport};
use std::io::Read;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(mount), Some(size)) = (arguments.next(), arguments.next()) else {
        return Err("usage: serve_memory_fuse FOLDER SIZE".into());
    };
    let size = units::parse_bytes(&size)?;
    let thread = ReactorThread::start("serve-memory", 1)?;
    let export = (frontend_fuse::FRONT_END.start)(StartExport {
        name: "memory".to_owned(),
        volume: "memory".to_owned(),
        device: Memory::volume(size),
        open_for: None,
        keeper: std::sync::Arc::new(reactor::NoKeeper),
        parameters: [("mount".to_owned(), mount)].into(),
        remotes: vec![thread.remote().clone()],
    })?;
    for hint in export.hints() {
        println!("{hint}");
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
