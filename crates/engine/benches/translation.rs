//! Processor time of translating a byte of a volume to a place, with 1 TiB mapped.
//!
//! `cargo bench -p convect-engine --bench translation [-- TIB [PAGES]]` prints a table: uniform over
//! a hot set whose pages are in memory, and uniform over everything, where most lookups load a page
//! from a drive in memory unless `PAGES` (default 60,000) is as many as there are. Medians of several rounds; checksums of data are no part of it.

use engine::bench::Translation;
use reactor::Reactor;

const LOOKUPS: usize = 100_000;
const ROUNDS: usize = 7;
/// Chunks' pages kept in memory unless told otherwise: 256 MiB of them.
const RESIDENT: usize = 60_000;

fn main() {
    let mut numbers = std::env::args().filter_map(|word| word.parse::<f64>().ok());
    let tib = numbers.next().unwrap_or(1.0);
    let resident = numbers.next().map_or(RESIDENT, |pages| pages as usize);
    let chunks = (tib * 1_048_576.0) as u32;
    let reactor = Reactor::new(1).expect("io_uring");
    let handle = reactor.handle().clone();
    let result = reactor.block_on(async move { measure(handle, chunks, resident).await });
    result.expect("the loop runs").expect("the map is made");
}

async fn measure(
    handle: reactor::Handle,
    chunks: u32,
    resident: usize,
) -> Result<(), engine::EngineError> {
    println!("mapping {chunks} chunks of 1 MiB, {resident} pages in memory ...");
    let map = Translation::new(handle.clone(), chunks, resident).await?;
    println!("memory of the map: {} MiB", map.bytes() >> 20);
    println!(
        "{:<44} {:>12} {:>12} {:>12}",
        "4 KiB lookups, ns each", "minimum", "median", "maximum"
    );
    let hot = chunks.min(RESIDENT as u32 / 2);
    for (name, range) in [
        ("uniform over 29 GiB, pages in memory", hot),
        ("uniform over everything", chunks),
    ] {
        let mut times = Vec::new();
        for round in 0..=ROUNDS {
            let offsets: Vec<u64> = (0..LOOKUPS)
                .map(|_| (handle.random() % (u64::from(range) * 256)) * 4096)
                .collect();
            let began = handle.now_ns();
            let mapped = map.look_up(&offsets).await?;
            let took = (handle.now_ns() - began) as f64 / LOOKUPS as f64;
            assert_eq!(mapped, LOOKUPS as u64, "everything is mapped");
            // The first round brings the pages in.
            if round > 0 {
                times.push(took);
            }
        }
        times.sort_by(f64::total_cmp);
        println!(
            "{name:<44} {:>12.0} {:>12.0} {:>12.0}",
            times[0],
            times[ROUNDS / 2],
            times[ROUNDS - 1]
        );
    }
    Ok(())
}
