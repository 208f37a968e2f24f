//! Processor time of translating a byte of a volume to a place, with 1 TiB mapped, and of recording that an operation ended.
//!
//! `cargo bench -p convect-engine --bench translation [-- TIB [PAGES]]` prints a table: uniform over
//! a hot set whose pages are in memory, and uniform over everything, where most lookups load a page
//! from a drive in memory unless `PAGES` (default 60,000) is as many as there are. Medians of several rounds; checksums of data are no part of it.

use engine::bench::Translation;
use reactor::Reactor;

const LOOKUPS: usize = 100_000;
const ROUNDS: usize = 7;
/// Exports by which what is recorded came.
const EXPORTS: u16 = 16;
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
        "4 KiB, ns each", "minimum", "median", "maximum"
    );
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let ended: Vec<(bool, u16, u64)> = (0..LOOKUPS)
            .map(|_| {
                let chance = handle.random();
                let took = 1000 << (chance % 12) | chance >> 40 & 0x3ff;
                (
                    chance >> 20 & 1 == 0,
                    1 + (chance >> 24) as u16 % EXPORTS,
                    took,
                )
            })
            .collect();
        let began = handle.now_ns();
        map.record(&ended);
        times.push((handle.now_ns() - began) as f64 / LOOKUPS as f64);
    }
    print("recording what ended, by 16 exports", times);
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
        print(name, times);
    }
    Ok(())
}

fn print(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    println!(
        "{name:<44} {:>12.1} {:>12.1} {:>12.1}",
        times[0],
        times[ROUNDS / 2],
        times[ROUNDS - 1]
    );
}
