//! Serves a volume in memory, to measure what the front end itself costs:
//!
//! ```text
//! cargo run --release -p convect-nbd --example serve_memory_nbd -- unix:/tmp/memory.sock 1G
//! fio --name=a --ioengine=nbd --uri='nbd+unix:///?socket=/tmp/memory.sock' --rw=randread \
//!     --bs=4k --iodepth=64 --size=1G --time_based --runtime=10
//! ```
//!
//! It ends when its standard input does.

mod instant;

use instant::Memory;
use reactor::{ReactorThread, StartExport};
use std::io::Read;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(listen), Some(size)) = (arguments.next(), arguments.next()) else {
        return Err("usage: serve_memory_nbd unix:PATH|tcp:ADDRESS:PORT SIZE".into());
    };
    let size = units::parse_bytes(&size)?;
    let thread = ReactorThread::start("serve-memory", 1)?;
    let export = (frontend_nbd::FRONT_END.start)(StartExport {
        name: "memory".to_owned(),
        volume: "memory".to_owned(),
        device: Memory::volume(size),
        open_for: None,
        keeper: std::sync::Arc::new(reactor::NoKeeper),
        parameters: [("listen".to_owned(), listen)].into(),
        remotes: vec![thread.remote().clone()],
    })?;
    for hint in export.hints() {
        println!("{hint}");
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
