//! Random reads and writes of 4 KiB on an export, as fast as it answers, in a table.
//!
//! `load SOCKET [SECONDS [DEPTH...]]`; it overwrites the first GiB of the disk.

use frontend_vhost_user_blk::client::{Client, Load, LoadResult, Options};
use std::io::{Error, Result};
use std::path::Path;
use std::time::Duration;

fn run(path: &Path, queues: u16, load: Load) -> Result<Vec<LoadResult>> {
    let mut client = Client::connect(
        path,
        Options {
            queues,
            ..Options::default()
        },
    )?;
    let blocks = (client.capacity()? / 8).min(1 << 18);
    let threads: Vec<_> = client
        .take_queues()
        .into_iter()
        .zip(1..)
        .map(|(mut queue, seed)| {
            let load = Load {
                blocks,
                seed,
                ..load
            };
            std::thread::spawn(move || queue.run(&load))
        })
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().map_err(|_| Error::other("a queue failed"))?)
        .collect()
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let socket = arguments
        .first()
        .ok_or_else(|| Error::other("usage: load SOCKET [SECONDS [DEPTH...]]"))?;
    let seconds = arguments.get(1).map_or(Ok(3), |text| text.parse());
    let seconds = seconds.map_err(Error::other)?;
    let depths: Vec<usize> = match arguments.get(2..) {
        None | Some([]) => vec![1, 32, 256],
        Some(given) => given
            .iter()
            .map(|text| text.parse().map_err(Error::other))
            .collect::<Result<_>>()?,
    };
    println!("what   queues depth       IOPS   p50 us   p99 us  kicks/request");
    for (what, read_percent) in [("read", 100), ("write", 0)] {
        for queues in [1, 2] {
            for depth in &depths {
                let load = Load {
                    depth: *depth,
                    block: 4096,
                    first_sector: 0,
                    blocks: 1,
                    read_percent,
                    duration: Duration::from_secs(seconds),
                    seed: 1,
                    busy: false,
                };
                let results = run(Path::new(socket), queues, load)?;
                let rate: f64 = results.iter().map(LoadResult::rate).sum();
                let requests: u64 = results.iter().map(|one| one.requests).sum();
                let kicks: u64 = results.iter().map(|one| one.kicks).sum();
                if results.iter().any(|one| one.errors > 0) {
                    return Err(Error::other("requests failed"));
                }
                println!(
                    "{what:<6} {queues:>6} {depth:>5} {rate:>10.0} {:>8.1} {:>8.1} {:>14.3}",
                    results[0].latency_ns(50.0) as f64 / 1e3,
                    results[0].latency_ns(99.0) as f64 / 1e3,
                    kicks as f64 / requests as f64,
                );
            }
        }
    }
    Ok(())
}
