//! Serves a volume in memory, to measure what the front end itself costs:
//!
//! ```text
//! cargo run --release -p convect-iscsi --example serve_memory_iscsi -- 127.0.0.1:3260 1G
//! iscsi-perf -m 32 -b 8 -t 10 -r iscsi://127.0.0.1:3260/iqn.2026-11.io.convect:memory/0
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
    let (Some(portal), Some(size)) = (arguments.next(), arguments.next()) else {
        return Err("usage: serve_memory_iscsi ADDRESS:PORT SIZE".into());
    };
    let size = units::parse_bytes(&size)?;
    let thread = ReactorThread::start("serve-memory", 1)?;
    let export = (frontend_iscsi::FRONT_END.start)(StartExport {
        name: "memory".to_owned(),
        volume: "memory".to_owned(),
        device: Memory::volume(size),
        open_for: None,
        keeper: std::sync::Arc::new(reactor::NoKeeper),
        parameters: [("portal".to_owned(), portal)].into(),
        remotes: vec![thread.remote().clone()],
    })?;
    for hint in export.hints() {
        println!("{hint}");
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
