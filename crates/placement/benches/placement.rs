//! The cost of the policy: time for a use of an extent, memory, and time for the what-if curve.
//!
//! `cargo bench -p convect-placement`. One TiB is mapped: every region of it was used. Memory is
//! allocated and not freed. Skewed is 90 % of the uses in 10,000 extents,
//! uniform is over all of the TiB.
//!
//! Uses come one after the other, each known only when it is there; and as a shard serves them, out of a batch of requests
//! of which it knows the next ones (`engine/src/io/cpu_prefetch.rs`), with an order of RAM that is the owner's.

use placement::{Blocks, Config, Curve, Extent, Policy, WhatIf};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use units::CHUNK_BLOCKS;

/// Counts what is in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; the counter is beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `at` came from `alloc` above with this layout.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Extents of 1 TiB.
const EXTENTS: u64 = 1 << 24;
/// Extents on the fast tier, full ones: 64 GiB.
const RESIDENT: u64 = 1 << 20;
/// Uses that are measured together, and then one by one.
const BATCH: usize = 1_000_000;
/// Uses that curves are measured with.
const USES: usize = 4_000_000;

fn main() {
    let before = IN_USE.load(Ordering::Relaxed);
    let mut policy = Policy::new(Config {
        fast_blocks: RESIDENT * 16,
        ram_blocks: RESIDENT * 16 / 20,
        margin: 40.0,
        seed: 1,
    });
    for number in 0..EXTENTS {
        policy.read(extent(number));
    }
    let mapped = IN_USE.load(Ordering::Relaxed) - before;
    for number in 0..RESIDENT {
        policy.wrote(extent(spread(number)));
    }
    let resident = IN_USE.load(Ordering::Relaxed) - before - mapped;
    println!("memory of 1 TiB mapped: {} MiB (bar: 160)", mapped >> 20);
    let each = resident as f64 / RESIDENT as f64;
    println!(
        "memory of an extent on the fast tier: {each:.1} bytes (bar: 32; a growing table keeps up to twice)"
    );
    wait_for_huge_pages(mapped + resident);
    println!("\n{:<52}{:>10}{:>10}{:>10}", "ns", "mean", "median", "p99");
    let mut random = 1;
    measure("skewed", &mut policy, || skewed(&mut random));
    measure("uniform", &mut policy, || next(&mut random) % EXTENTS);
    curve();
    what_if();
}

/// The system takes small pages together in its own time, 16 MiB in 10 s as it is set up mostly.
const HUGE_PAGES_WAIT: Duration = Duration::from_secs(240);

/// Waits until most of so many bytes are on huge pages, or none come; says how much does.
#[expect(
    clippy::disallowed_methods,
    reason = "only the policy itself does not wait"
)]
fn wait_for_huge_pages(bytes: usize) {
    let began = now();
    let mut huge = 0;
    while huge < bytes / 10 * 9 && began.elapsed() < HUGE_PAGES_WAIT {
        std::thread::sleep(Duration::from_secs(1));
        huge = huge_bytes();
    }
    println!(
        "on huge pages: {} MiB, after {} s",
        huge >> 20,
        began.elapsed().as_secs()
    );
}

/// Of this process's memory; 0 where the system does not say.
fn huge_bytes() -> usize {
    let maps = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = maps
        .lines()
        .find_map(|it| it.strip_prefix("AnonHugePages:"));
    let kib = line.and_then(|it| it.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kib.unwrap_or(0) << 10
}

/// A use of what is there: where it is, and its heat.
fn look_up(policy: &mut Policy, number: u64) {
    black_box(policy.read(extent(number)));
}

/// The same, and when it is nowhere, taking it in and judging what has to leave RAM for it.
fn use_and_admit(policy: &mut Policy, number: u64) {
    let block = extent(number);
    if policy.read(block).absent != 0 {
        policy.came(block);
        while let Some(leaving) = policy.leave_ram() {
            black_box(leaving);
        }
    }
}

fn measure(name: &str, policy: &mut Policy, mut number: impl FnMut() -> u64) {
    // Others each time: what was used before is known better than what was not.
    let mut numbers = || (0..2 * BATCH + AHEAD).map(|_| number()).collect::<Vec<_>>();
    numbers().iter().for_each(|it| use_and_admit(policy, *it));
    for (what, work) in [
        ("lookup and heat", look_up as fn(&mut Policy, u64)),
        ("lookup, heat and admission", use_and_admit),
    ] {
        let numbers = numbers();
        let name = format!("{what}, {name}");
        told(&name, policy, &numbers, |policy, numbers| {
            work(policy, numbers[0])
        });
    }
    for (what, admits) in [("heat", false), ("heat and admission", true)] {
        let uses = uses(&numbers());
        let name = format!("batches of a shard: {what}, {name}");
        told(&name, policy, &uses, |policy, uses| {
            serve(policy, uses, admits)
        });
    }
}

/// Measures uses: first a batch of them together, then another one by one. `work` is given those from its own on.
fn told<U>(name: &str, policy: &mut Policy, uses: &[U], work: impl Fn(&mut Policy, &[U])) {
    make_room(policy);
    let began = now();
    (0..BATCH).for_each(|at| work(policy, &uses[at..]));
    let mean = began.elapsed().as_nanos() as f64 / BATCH as f64;
    make_room(policy);
    // A look at the clock costs about as much as a use: what an empty one takes is taken off.
    let mut empty: Vec<u64> = (0..BATCH).map(|_| timed(|| ())).collect();
    empty.sort_unstable();
    let look = empty[BATCH / 2];
    let mut times: Vec<u64> = (BATCH..2 * BATCH)
        .map(|at| {
            // Nor does the list of uses have to be waited for, where its next page begins.
            units::prefetch(&uses[(at + 64).min(uses.len() - 1)]);
            timed(|| work(policy, &uses[at..])).saturating_sub(look)
        })
        .collect();
    times.sort_unstable();
    let [median, tail] = [50, 99].map(|percent| times[times.len() * percent / 100]);
    println!("{name:<52}{mean:>10.0}{median:>10}{tail:>10}");
}

/// So many uses ahead of the present one a shard has cells fetched.
const AHEAD: usize = 4;
/// The same of what leaves RAM: entries, and before that cells.
const LEAVES_AHEAD: [usize; 2] = [4, 8];

/// A use as a shard reports it: the extent evicted from RAM for it, and the one evicted a few uses later.
struct Use {
    number: u64,
    leaves: Option<u64>,
    leaves_later: [u64; 2],
}

/// Uses with the evictions of a FIFO RAM of the policy's size.
fn uses(numbers: &[u64]) -> Vec<Use> {
    let mut order: VecDeque<u64> = (0..RESIDENT / 20).map(spread).collect();
    let mut is_there = vec![false; EXTENTS as usize];
    order.iter().for_each(|it| is_there[*it as usize] = true);
    let uses = numbers.iter().map(|number| {
        let missed = !std::mem::replace(&mut is_there[*number as usize], true);
        let leaves = missed.then(|| {
            order.push_back(*number);
            let first = order.pop_front().expect("it is full");
            is_there[first as usize] = false;
            first
        });
        Use {
            number: *number,
            leaves,
            leaves_later: [order[LEAVES_AHEAD[0] - 1], order[LEAVES_AHEAD[1] - 1]],
        }
    });
    uses.collect()
}

/// The first of these uses, as a shard serves it; what it fetches for the ones after it is part of that.
fn serve(policy: &mut Policy, uses: &[Use], admits: bool) {
    policy.prefetch(extent(uses[AHEAD].number).extent);
    let this = &uses[0];
    policy.used_by_host(extent(this.number));
    if admits && let Some(leaves) = this.leaves {
        let admission = policy.left_ram(extent(leaves), u16::MAX, 1.0);
        black_box(admission);
        let [soon, later] = this.leaves_later.map(|it| extent(it).extent);
        policy.prefetch(later);
        policy.prefetch_entry(soon);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "only the policy itself reads no clock"
)]
fn now() -> Instant {
    Instant::now()
}

fn timed(work: impl FnOnce()) -> u64 {
    let began = now();
    work();
    began.elapsed().as_nanos() as u64
}

/// What the mover does in the background.
fn make_room(policy: &mut Policy) {
    while policy.fast_excess() > 0
        && let Some(victim) = policy.victim()
    {
        policy.left_fast(Blocks {
            extent: victim.extent,
            mask: victim.fast,
        });
    }
}

fn curve() {
    let mut random = 1;
    println!("\n{:<52}{:>10}", "what-if curve, ns a block", "mean");
    for (name, blocks) in [
        ("uniform over 1 TiB", 1 << 28),
        ("uniform over 4 GiB", 1u64 << 20),
    ] {
        let numbers: Vec<u64> = (0..USES).map(|_| next(&mut random) % blocks).collect();
        let mut curve = Curve::new(8192);
        numbers.iter().for_each(|block| curve.used(*block));
        let began = now();
        numbers.iter().for_each(|block| curve.used(*block));
        let mean = began.elapsed().as_nanos() as f64 / USES as f64;
        black_box(curve.miss_ratio(1 << 18));
        println!("{name:<52}{mean:>10.1}");
    }
}

fn what_if() {
    let mut random = 1;
    let config = Config {
        fast_blocks: 1 << 24,
        ram_blocks: 1 << 19,
        margin: 40.0,
        seed: 1,
    };
    println!(
        "\n{:<52}{:>10}",
        "what-if beside a fast tier of 64 GiB, ns a use", "mean"
    );
    for (name, blocks) in [
        ("uniform over 1 TiB", 1 << 28),
        ("uniform over 4 GiB", 1u64 << 20),
        ("uniform over 32 MiB", 1 << 13),
    ] {
        let numbers: Vec<u64> = (0..USES).map(|_| next(&mut random) % blocks).collect();
        let mut what_if = WhatIf::new(config);
        let mut all = || {
            for number in &numbers {
                let size = CHUNK_BLOCKS as u64;
                let at = std::iter::once((number % size) as usize);
                what_if.used(1, (1, (number / size) as u32), at, false);
            }
        };
        all();
        let began = now();
        all();
        let mean = began.elapsed().as_nanos() as f64 / USES as f64;
        black_box(what_if.policy());
        println!("{name:<52}{mean:>10.1}");
    }
}

fn extent(number: u64) -> Blocks {
    Blocks {
        extent: Extent { volume: 1, number },
        mask: u16::MAX,
    }
}

/// A number that is far from its neighbours'.
fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b1) % EXTENTS
}

fn next(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 24
}

fn skewed(state: &mut u64) -> u64 {
    match next(state) % 10 {
        0 => next(state) % EXTENTS,
        _ => spread(next(state) % 10_000),
    }
}
