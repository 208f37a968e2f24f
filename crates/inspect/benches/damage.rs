//! Pools damaged at random and repaired: `./dev bench damage [POOLS [SEED]]`.

#[expect(dead_code, reason = "the tests use the rest")]
#[path = "../tests/inspect/support/mod.rs"]
mod support;

fn main() {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    let pools = numbers.first().copied().unwrap_or(1000);
    let tally = support::damage::run(pools, numbers.get(1).copied().unwrap_or(1));
    print!("{}", tally.table());
    let bad = tally.lost_by_repair + tally.closed_by_repair;
    std::process::exit(i32::from(bad > 0));
}
