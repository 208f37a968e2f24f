//! The contract of a modelled drive, in virtual time.

use crate::support::virtual_time;
use block::{DriveIoKind, DriveQueue, DriveQueueExt};
use reactor::Handle;
use std::cell::RefCell;
use std::rc::Rc;

const SIZE: u64 = 1 << 40;
const SECOND: u64 = 1_000_000_000;

fn spec(profile: &str, seed: u64) -> String {
    format!("model:{profile},seed={seed}:null:model?size=1T")
}

/// Latencies of `count` requests by each of `depth` tasks over `queues` queues of one drive, and
/// the time that all took, in nanoseconds.
fn measure(
    spec: &str,
    queues: usize,
    depth: usize,
    count: u64,
    request: impl Fn(&Handle, u64) -> (DriveIoKind, u64, u64) + Copy + 'static,
) -> (Vec<u64>, u64) {
    let drive = drives::open(spec).unwrap();
    let latencies = Rc::new(RefCell::new(Vec::new()));
    let elapsed = virtual_time::run(|handle| {
        let queues: Vec<_> = (0..queues).map(|_| drive.queue(handle).unwrap()).collect();
        for task in 0..depth {
            let (handle2, latencies) = (handle.clone(), latencies.clone());
            let queue = queues[task % queues.len()].clone();
            handle.spawn(async move {
                for number in 0..count {
                    let (kind, offset, len) = request(&handle2, number);
                    let begun = handle2.now_ns();
                    one(&handle2, &queue, kind, offset, len).await;
                    latencies.borrow_mut().push(handle2.now_ns() - begun);
                }
            });
        }
    });
    let latencies = latencies.borrow().clone();
    (latencies, elapsed)
}

async fn one(handle: &Handle, queue: &Rc<dyn DriveQueue>, kind: DriveIoKind, at: u64, len: u64) {
    let with_data = matches!(kind, DriveIoKind::Read | DriveIoKind::Write);
    let buf = with_data.then(|| handle.dma().get(len as usize));
    assert_eq!(queue.start(kind, at, len, buf).await.unwrap().1, Ok(()));
}

fn random_read(len: u64) -> impl Fn(&Handle, u64) -> (DriveIoKind, u64, u64) + Copy {
    move |handle, _| (DriveIoKind::Read, handle.random() % (SIZE / len) * len, len)
}

fn iops(measured: &(Vec<u64>, u64)) -> u64 {
    measured.0.len() as u64 * SECOND / measured.1
}

fn mean(measured: &(Vec<u64>, u64)) -> u64 {
    measured.0.iter().sum::<u64>() / measured.0.len() as u64
}

#[test]
fn random_reads_one_at_a_time_cost_a_seek_and_half_a_turn() {
    for (profile, range) in [("hdd-7200", 75..=90), ("hdd-10000", 120..=150)] {
        let measured = measure(&spec(profile, 1), 1, 1, 2000, random_read(4096));
        assert!(range.contains(&iops(&measured)), "{}", iops(&measured));
    }
}

#[test]
fn a_queue_of_32_is_put_in_the_order_of_least_access_time() {
    for (profile, range) in [("hdd-7200", 150..=270), ("hdd-10000", 280..=420)] {
        let measured = measure(&spec(profile, 1), 1, 32, 200, random_read(4096));
        assert!(range.contains(&iops(&measured)), "{}", iops(&measured));
    }
}

#[test]
fn no_read_starves_in_the_queue() {
    let measured = measure(&spec("hdd-7200", 1), 1, 32, 300, random_read(4096));
    // The age at which a read goes first, and then a queue of reads as old as itself.
    let bound = 500_000_000 + 32 * 25_000_000;
    assert!(measured.0.iter().all(|latency| *latency < bound));
}

#[test]
fn sixteen_times_the_length_costs_a_disk_less_than_a_tenth_more() {
    let short = mean(&measure(
        &spec("hdd-7200", 1),
        1,
        1,
        4000,
        random_read(4096),
    ));
    let long = mean(&measure(
        &spec("hdd-7200", 1),
        1,
        1,
        4000,
        random_read(65_536),
    ));
    let more = long.saturating_sub(short);
    assert!((250_000..=700_000).contains(&more), "{more} ns more");
}

#[test]
fn sequential_reads_run_at_the_rate_of_the_medium_even_one_at_a_time() {
    let len = 1 << 20;
    let cases = [("hdd-7200", 150..=210u64), ("hdd-10000", 190..=240)];
    for (profile, range) in cases {
        let next = move |_: &Handle, number: u64| (DriveIoKind::Read, number * len, len);
        let measured = measure(&spec(profile, 1), 1, 1, 500, next);
        let rate = iops(&measured) * len / 1_000_000;
        assert!(range.contains(&rate), "{profile} {rate} MB/s");
    }
}

#[test]
fn the_inner_tracks_are_slower_than_the_outer() {
    let rate = |start: u64| {
        let len = 1 << 20;
        let next = move |_: &Handle, number: u64| (DriveIoKind::Read, start + number * len, len);
        iops(&measure(&spec("hdd-7200", 1), 1, 1, 200, next))
    };
    let (outer, inner) = (rate(0), rate(SIZE / 64 * 63));
    assert!(
        outer > inner * 3 / 2,
        "{outer} MiB/s outside, {inner} inside"
    );
}

#[test]
fn two_queues_of_a_disk_share_its_one_head() {
    let one = iops(&measure(&spec("hdd-7200", 1), 1, 8, 300, random_read(4096)));
    let two = iops(&measure(&spec("hdd-7200", 1), 2, 8, 300, random_read(4096)));
    assert!(two.abs_diff(one) * 10 < one, "{one} by one, {two} by two");
}

#[test]
fn a_write_is_absorbed_and_a_flush_waits_for_the_medium() {
    let write_then_flush = |handle: &Handle, number: u64| {
        let at = handle.random() % (SIZE / 4096) * 4096;
        if number.is_multiple_of(2) {
            (DriveIoKind::Write, at, 4096)
        } else {
            (DriveIoKind::Flush, 0, 0)
        }
    };
    let measured = measure(&spec("hdd-7200", 1), 1, 1, 200, write_then_flush);
    let writes = measured.0.iter().step_by(2);
    let flushes = measured.0.iter().skip(1).step_by(2);
    assert!(writes.max().unwrap() < &1_000_000);
    let mean = flushes.sum::<u64>() / 100;
    assert!((8_000_000..=20_000_000).contains(&mean), "{mean} ns");
}

#[test]
fn a_later_request_that_ends_sooner_is_not_kept_waiting() {
    // By one queue, and by another one that shares the disk.
    for write_queue in [0, 1] {
        let drive = drives::open(&spec("hdd-7200", 1)).unwrap();
        virtual_time::run(|handle| {
            let queues = [drive.queue(handle).unwrap(), drive.queue(handle).unwrap()];
            let (handle2, read) = (handle.clone(), queues[0].clone());
            handle.spawn(async move {
                one(&handle2, &read, DriveIoKind::Read, SIZE / 2, 4096).await;
                assert!(handle2.now_ns() > 2_000_000);
            });
            let (handle2, write) = (handle.clone(), queues[write_queue].clone());
            handle.spawn(async move {
                handle2.sleep(100_000).await;
                one(&handle2, &write, DriveIoKind::Write, 0, 4096).await;
                assert!(handle2.now_ns() < 1_000_000, "{}", handle2.now_ns());
            });
        });
    }
}

#[test]
fn writes_beyond_the_cache_wait_for_the_medium() {
    let len = 1 << 20;
    let next = move |_: &Handle, number: u64| (DriveIoKind::Write, number * len, len);
    let measured = measure(&spec("hdd-7200", 1), 1, 1, 1000, next);
    let rate = iops(&measured) * len / 1_000_000;
    assert!((150..=225).contains(&rate), "{rate} MB/s");
    assert!(measured.0[0] < 3_000_000, "the first goes to the cache");
}

#[test]
fn a_read_of_what_was_just_written_comes_from_the_cache() {
    let write_then_read = |_: &Handle, number: u64| {
        let kind = if number.is_multiple_of(2) {
            DriveIoKind::Write
        } else {
            DriveIoKind::Read
        };
        (kind, number / 2 * (SIZE / 128), 4096)
    };
    let measured = measure(&spec("hdd-7200", 1), 1, 1, 40, write_then_read);
    // The write being put on the medium at this moment is not in the cache any longer.
    let quick = measured.0.iter().filter(|ns| **ns < 1_000_000).count();
    assert!(quick >= 20, "{quick} of 40");
}

#[test]
fn an_ssd_reads_in_parallel_up_to_its_wire() {
    let one = iops(&measure(
        &spec("ssd-sata", 1),
        1,
        1,
        5000,
        random_read(4096),
    ));
    let many = iops(&measure(
        &spec("ssd-sata", 1),
        1,
        32,
        2000,
        random_read(4096),
    ));
    assert!((8_000..=13_000).contains(&one), "{one}");
    assert!((75_000..=98_000).contains(&many), "{many}");
}

#[test]
fn a_limit_of_commands_holds_for_all_queues_together_and_costs_a_lone_one_nothing() {
    let limited = "model:ssd-sata,seed=1,iops=10000:null:model?size=1T";
    let many = iops(&measure(limited, 2, 64, 500, random_read(4096)));
    assert!((9_900..=10_100).contains(&many), "{many}");
    let faster = "model:ssd-sata,seed=1,iops=50000:null:model?size=1T";
    let lone = iops(&measure(faster, 1, 1, 2000, random_read(4096)));
    let free = iops(&measure(
        &spec("ssd-sata", 1),
        1,
        1,
        2000,
        random_read(4096),
    ));
    assert_eq!(lone, free);
}

#[test]
fn an_ssd_stops_now_and_then_to_collect_garbage() {
    let write_and_read = |handle: &Handle, number: u64| {
        let at = handle.random() % (SIZE / 65_536) * 65_536;
        if number.is_multiple_of(2) {
            (DriveIoKind::Write, at, 65_536)
        } else {
            (DriveIoKind::Read, at, 4096)
        }
    };
    let all = measure(&spec("ssd-sata", 1), 1, 1, 20_000, write_and_read).0;
    let mut latencies: Vec<u64> = all.into_iter().skip(1).step_by(2).collect();
    latencies.sort_unstable();
    let middle = latencies[latencies.len() / 2];
    let longest = latencies[latencies.len() - 1];
    assert!(longest > 5 * middle, "{middle} ns, longest {longest} ns");
}

#[test]
fn a_seed_gives_the_same_times_again_and_another_gives_others() {
    for profile in ["hdd-7200", "ssd-sata"] {
        let run = |seed| measure(&spec(profile, seed), 1, 4, 50, random_read(4096)).0;
        assert_eq!(run(1), run(1), "{profile}");
        assert_ne!(run(1), run(2), "{profile}");
    }
}
