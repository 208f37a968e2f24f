//! Synthetic traces repeat from their seed and match their description.

use std::collections::{HashMap, HashSet};
use traces::Request;
use traces::synthetic::{BLOCKS_MAX, BLOCKS_MIN, SyntheticError, all, make};

/// A footprint of 256 MiB.
const BLOCKS: u64 = 1 << 16;
const REQUESTS: u64 = 30_000;

fn made(name: &str) -> Vec<Request> {
    make(name, BLOCKS, REQUESTS, 1).expect(name)
}

fn block(request: &Request) -> u64 {
    request.sector / 8
}

/// How many of 100 requests are such.
fn percent(requests: &[Request], is_such: impl Fn(&Request) -> bool) -> f64 {
    let such = requests.iter().filter(|request| is_such(request)).count();
    100.0 * such as f64 / requests.len() as f64
}

#[track_caller]
fn is_about(found: f64, expected: f64) {
    assert!((found - expected).abs() < 2.0, "{found}, not {expected}");
}

/// How often each block is requested.
fn counts<'a>(requests: impl Iterator<Item = &'a Request>) -> HashMap<u64, u64> {
    let mut counts = HashMap::new();
    for request in requests {
        *counts.entry(block(request)).or_default() += 1;
    }
    counts
}

#[test]
fn a_seed_makes_the_same_requests_again_and_another_makes_others() {
    for synthetic in all() {
        let name = synthetic.name;
        assert_eq!(made(name), made(name));
        let other = make(name, BLOCKS, REQUESTS, 2).expect(name);
        assert_ne!(made(name), other, "{name}");
        assert!(!synthetic.about.is_empty());
    }
}

#[test]
fn requests_lie_in_the_footprint_at_a_thousand_a_second() {
    for synthetic in all() {
        for blocks in [BLOCKS_MIN, BLOCKS_MIN + 7, BLOCKS] {
            let requests = make(synthetic.name, blocks, REQUESTS, 1).expect("made");
            assert_eq!(requests.len() as u64, REQUESTS);
            // What is read once is beyond it, in as many blocks as there are requests.
            let beyond = if synthetic.name == "one-hit" {
                REQUESTS
            } else {
                0
            };
            let last = requests
                .iter()
                .map(|r| r.sector + u64::from(r.sectors))
                .max();
            assert!(last <= Some(8 * (blocks + beyond)), "{}", synthetic.name);
            assert!(requests.iter().all(|r| r.sectors >= 8 && r.device == 0));
            assert!(requests.is_sorted_by_key(|r| r.at_us));
            is_about(requests[REQUESTS as usize - 1].at_us as f64 / 1e6, 30.0);
        }
    }
}

#[test]
fn the_largest_footprint_can_be_made() {
    for synthetic in all() {
        let requests = make(synthetic.name, BLOCKS_MAX, 1000, 1).expect("made");
        assert!(requests.iter().all(|r| r.sector < 8 * (BLOCKS_MAX + 1000)));
        assert!(make(synthetic.name, BLOCKS, 0, 1).expect("made").is_empty());
    }
}

#[test]
fn what_cannot_be_made_says_why() {
    let failed = make("zip", BLOCKS, 1, 1).expect_err("no such trace");
    assert!(failed.to_string().contains("vdi-boot"), "{failed}");
    for (blocks, requests) in [(0, 1), (BLOCKS_MAX + 1, 1), (BLOCKS, u64::MAX)] {
        let failed = make("zipf", blocks, requests, 1).expect_err("too much");
        assert_eq!(failed, SyntheticError::Size { blocks, requests });
    }
}

#[test]
fn reads_are_as_many_as_is_said() {
    for (name, reads) in [
        ("moving", 70.0),
        ("scattered", 70.0),
        ("zipf", 70.0),
        ("uniform", 70.0),
        ("scan", 100.0),
        ("one-hit", 100.0),
        ("vdi-boot", 90.0),
    ] {
        is_about(percent(&made(name), |request| !request.write), reads);
    }
}

#[test]
fn the_hot_set_moves_six_times_and_takes_nine_of_ten_requests() {
    let requests = made("moving");
    let mut starts = HashSet::new();
    for stay in requests.chunks(REQUESTS as usize / 6) {
        let mut parts = [0; 60];
        for request in stay {
            parts[(block(request) * 60 / BLOCKS) as usize] += 1;
        }
        // 5 % of the footprint are three of sixty parts.
        let hot = parts.windows(3).map(|three| three.iter().sum::<u32>());
        let (at, hits) = hot
            .enumerate()
            .max_by_key(|(_, hits)| *hits)
            .expect("parts");
        starts.insert(at);
        // And 5 % of what is uniform.
        is_about(100.0 * f64::from(hits) / stay.len() as f64, 90.5);
    }
    assert_eq!(starts.len(), 6);
}

#[test]
fn a_scan_goes_through_all_by_turns_with_hot_reads() {
    let requests = made("scan");
    let mut position = 0;
    for scan in requests.iter().step_by(2) {
        assert_eq!((block(scan), scan.sectors), (position, 512));
        position = (position + 64) % BLOCKS;
    }
    let hot: Vec<_> = requests.iter().skip(1).step_by(2).copied().collect();
    assert!(hot.iter().all(|request| request.sectors == 8));
    let counts = counts(hot.iter());
    assert!(counts.values().max() > Some(&500));
}

#[test]
fn half_of_one_hit_is_never_used_again() {
    let requests = made("one-hit");
    is_about(percent(&requests, |request| block(request) >= BLOCKS), 50.0);
    // With every count of requests, whatever it is a multiple of.
    for requests in 1000..1100 {
        let requests = make("one-hit", BLOCKS, requests, 1).expect("made");
        let mut beyond = requests.iter().map(block).filter(|block| *block >= BLOCKS);
        let mut seen = HashSet::new();
        assert!(beyond.all(|block| seen.insert(block)));
    }
}

#[test]
fn scattered_has_one_hot_block_in_each_mib() {
    let requests = made("scattered");
    let counts = counts(requests.iter());
    let hot: Vec<_> = counts.iter().filter(|(_, count)| **count > 20).collect();
    let mibs: HashSet<_> = hot.iter().map(|(block, _)| *block / 256).collect();
    assert_eq!((hot.len(), mibs.len()), (256, 256));
    let hits: u64 = hot.iter().map(|(_, count)| **count).sum();
    is_about(100.0 * hits as f64 / REQUESTS as f64, 90.0);
}

#[test]
fn desktops_share_what_they_read_and_not_what_they_write() {
    let requests = made("vdi-boot");
    let image = BLOCKS / 4 * 3;
    assert!(requests.iter().all(|r| r.write == (block(r) >= image)));
    let sizes: HashSet<_> = requests.iter().map(|r| r.sectors).collect();
    assert_eq!(sizes, HashSet::from([8, 16, 32, 64, 128]));
    let reads = requests.iter().filter(|r| !r.write);
    let ranges: HashSet<_> = reads.map(|r| (r.sector, r.sectors)).collect();
    // The reads of one desktop, of a hundred that read alike.
    assert!(ranges.len() as u64 <= REQUESTS * 9 / 10 / 100);
    // Seven of eight follow another in place.
    let ends: HashSet<_> = ranges.iter().map(|(s, n)| s + u64::from(*n)).collect();
    let following = ranges.iter().filter(|(sector, _)| ends.contains(sector));
    is_about(100.0 * following.count() as f64 / ranges.len() as f64, 87.5);
}

#[test]
fn zipf_asks_for_a_rank_as_often_as_its_law_says() {
    let requests = made("zipf");
    let mut counts: Vec<_> = counts(requests.iter()).into_values().collect();
    counts.sort_by_key(|count| std::cmp::Reverse(*count));
    let weights = (1..=BLOCKS).map(|rank| (rank as f64).powf(-0.99));
    let sum: f64 = weights.clone().sum();
    for top in [1, 10, 100, 1000] {
        let hits: u64 = counts[..top].iter().sum();
        let expected: f64 = weights.clone().take(top).sum();
        is_about(
            100.0 * hits as f64 / REQUESTS as f64,
            100.0 * expected / sum,
        );
    }
}

#[test]
fn uniform_has_nothing_hot() {
    assert!(counts(made("uniform").iter()).into_values().max() < Some(10));
}
