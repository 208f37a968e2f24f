//! The effect of a scan on frequently used entries.

use rivals::{Cache, POLICIES};

/// How many of ten keys, used often among others that fill the cache of a hundred, are there after
/// a scan over five hundred more.
fn left_after_a_scan(cache: &mut dyn Cache) -> usize {
    let frequent = 0..10_u64;
    let mut gone = Vec::new();
    for round in 0..40_u64 {
        let others = 1_000 + 20 * round..1_000 + 20 * (round + 1);
        for key in frequent.clone().chain(others) {
            cache.access(key, &mut gone);
        }
    }
    for key in 100_000..100_500 {
        cache.access(key, &mut gone);
    }
    frequent.filter(|key| cache.contains(*key)).count()
}

#[track_caller]
fn check(name: &str, left: usize) {
    let row = POLICIES
        .iter()
        .find(|row| row.name == name)
        .expect("in the table");
    assert_eq!(left_after_a_scan(&mut *(row.make)(100)), left, "{name}");
}

#[test]
fn a_scan_flushes_the_frequent_entries_of_lru() {
    check("lru", 0);
}

#[test]
fn a_scan_leaves_the_frequent_entries_of_the_others() {
    for name in ["nhit3", "arc", "lirs", "2q", "s3-fifo", "w-tinylfu"] {
        check(name, 10);
    }
}
