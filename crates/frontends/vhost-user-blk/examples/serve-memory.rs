//! Serves a file, or memory, as a vhost-user-blk disk: to try the front end without an engine.
//!
//! `serve-memory SOCKET SIZE_MIB [FILE]`; a line on its input with a number resizes the disk to so
//! many MiB, the end of the input ends it. With `FAST=1` operations are answered at once by the
//! loop's own thread.

#[path = "../tests/front_end/device.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod device;

use device::{TestDevice, memory_file};
use frontend_vhost_user_blk::FRONT_END;
use reactor::{ReactorThread, StartExport};
use std::io::{BufRead, Error, Result};
use std::sync::Arc;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, size, rest @ ..] = &arguments[..] else {
        return Err(Error::other("usage: serve-memory SOCKET SIZE_MIB [FILE]"));
    };
    let size = size.parse::<u64>().map_err(Error::other)? << 20;
    let file = match rest.first() {
        None => memory_file(size),
        Some(path) => {
            let mut options = std::fs::OpenOptions::new();
            let file = options.read(true).write(true).create(true).open(path)?;
            if file.metadata()?.len() < size {
                file.set_len(size)?;
            }
            file
        }
    };
    let fast = std::env::var_os("FAST").is_some();
    let device = Arc::new(TestDevice::new(file, 512, 128, fast));
    let loops: Vec<ReactorThread> = (0..2)
        .map(|index| ReactorThread::start("loop", index))
        .collect::<Result<_>>()?;
    let export = (FRONT_END.start)(StartExport {
        name: "disk".into(),
        volume: "disk".into(),
        device: device.clone(),
        open_for: None,
        keeper: std::sync::Arc::new(reactor::NoKeeper),
        parameters: [("path".to_owned(), socket.clone())].into(),
        remotes: loops.iter().map(|one| one.remote().clone()).collect(),
    })?;
    println!("serving {}", export.address());
    for line in export.hints() {
        println!("{line}");
    }
    for line in std::io::stdin().lock().lines() {
        if let Ok(size) = line?.trim().parse::<u64>() {
            device.resize(size << 20);
            println!("resized");
        }
    }
    println!("{:?}", device.counts());
    Ok(())
}
