//! Prints what each modelled drive does, in virtual time, beside what such drives are sold as.
//!
//! `cargo run -p convect-drives --example model-table --release`

#[path = "../tests/it/support/virtual_time.rs"]
mod virtual_time;

use block::{DriveIoKind, DriveQueue, DriveQueueExt};
use reactor::Handle;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Size of the modelled drive in bytes.
const SIZE: u64 = 1 << 40;
/// Longest measurement, in nanoseconds of virtual time.
const SPAN_NS: u64 = 60_000_000_000;
/// Most requests of a measurement.
const REQUESTS_MAX: usize = 200_000;

#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    kind: DriveIoKind,
    /// Bytes of a request.
    len: u64,
    /// Requests at a time.
    depth: usize,
    /// Where it begins when sequential, as a share of the drive; random without.
    from: Option<f64>,
}

const fn random(name: &'static str, kind: DriveIoKind, len: u64, depth: usize) -> Workload {
    Workload {
        name,
        kind,
        len,
        depth,
        from: None,
    }
}

const fn sequential(name: &'static str, kind: DriveIoKind, from: f64) -> Workload {
    Workload {
        name,
        kind,
        len: 256 << 10,
        depth: 4,
        from: Some(from),
    }
}

use DriveIoKind::{Read, Write};

const WORKLOADS: [Workload; 8] = [
    random("random read 4K, 1 at a time", Read, 4096, 1),
    random("random read 64K, 1 at a time", Read, 65_536, 1),
    random("random read 4K, 32 at a time", Read, 4096, 32),
    random("random write 4K, 1 at a time", Write, 4096, 1),
    random("random write 4K, 32 at a time", Write, 4096, 32),
    sequential("sequential read, begin", Read, 0.0),
    sequential("sequential read, end", Read, 0.95),
    sequential("sequential write, begin", Write, 0.0),
];

/// What such drives are commonly published with, per workload; see docs/drive-model.md.
const PUBLISHED: [(&str, [&str; 8]); 3] = [
    (
        "hdd-7200",
        [
            "75-90 IOPS",
            "70-85 IOPS",
            "150-270 IOPS",
            "150-350 IOPS",
            "150-350 IOPS",
            "170-220 MB/s",
            "80-120 MB/s",
            "170-220 MB/s",
        ],
    ),
    (
        "hdd-10000",
        [
            "120-150 IOPS",
            "110-145 IOPS",
            "280-420 IOPS",
            "250-500 IOPS",
            "250-500 IOPS",
            "190-240 MB/s",
            "110-140 MB/s",
            "190-240 MB/s",
        ],
    ),
    (
        "ssd-sata",
        [
            "8-13 kIOPS",
            "3-6 kIOPS",
            "75-98 kIOPS",
            "20-40 kIOPS",
            "30-90 kIOPS",
            "500-560 MB/s",
            "500-560 MB/s",
            "450-530 MB/s",
        ],
    ),
];

struct Figures {
    iops: f64,
    megabytes: f64,
    p50_ms: f64,
    p99_ms: f64,
}

fn measure(profile: &str, workload: Workload) -> Figures {
    let spec = format!("model:{profile},seed=1:null:table?size={SIZE}");
    let drive = drives::open(&spec).expect("a null drive is always there");
    let latencies = Rc::new(RefCell::new(Vec::new()));
    let elapsed_ns = virtual_time::run(|handle| {
        let queue = drive.queue(handle).expect("a queue without a ring");
        let started = Rc::new(Cell::new(0u64));
        for _ in 0..workload.depth {
            let (started, latencies) = (started.clone(), latencies.clone());
            let work = worker(handle.clone(), queue.clone(), workload, started, latencies);
            handle.spawn(work);
        }
    });
    let mut latencies = latencies.borrow_mut();
    latencies.sort_unstable();
    let count = latencies.len();
    let at = |share: f64| latencies[((count - 1) as f64 * share) as usize] as f64 / 1e6;
    let seconds = elapsed_ns as f64 / 1e9;
    let iops = count as f64 / seconds;
    Figures {
        iops,
        megabytes: iops * workload.len as f64 / 1e6,
        p50_ms: at(0.5),
        p99_ms: at(0.99),
    }
}

async fn worker(
    handle: Handle,
    queue: Rc<dyn DriveQueue>,
    workload: Workload,
    started: Rc<Cell<u64>>,
    latencies: Rc<RefCell<Vec<u64>>>,
) {
    while handle.now_ns() < SPAN_NS && latencies.borrow().len() < REQUESTS_MAX {
        let number = started.get();
        started.set(number + 1);
        let offset = match workload.from {
            Some(share) => (SIZE as f64 * share) as u64 / 4096 * 4096 + number * workload.len,
            None => handle.random() % (SIZE / workload.len) * workload.len,
        };
        let begun = handle.now_ns();
        let buf = handle.dma().get(workload.len as usize);
        let outcome = queue.start(workload.kind, offset, workload.len, Some(buf));
        assert!(
            matches!(outcome.await, Some((_, Ok(())))),
            "a model never fails"
        );
        latencies.borrow_mut().push(handle.now_ns() - begun);
    }
}

fn main() {
    println!("| profile | workload | IOPS | MB/s | p50 ms | p99 ms | published |");
    println!("| --- | --- | ---: | ---: | ---: | ---: | --- |");
    for profile in drives::profiles() {
        let published = PUBLISHED.iter().find(|(name, _)| *name == profile.name);
        for (index, workload) in WORKLOADS.into_iter().enumerate() {
            let figures = measure(profile.name, workload);
            println!(
                "| {} | {} | {:.0} | {:.1} | {:.2} | {:.2} | {} |",
                profile.name,
                workload.name,
                figures.iops,
                figures.megabytes,
                figures.p50_ms,
                figures.p99_ms,
                published.map_or("", |(_, ranges)| ranges[index]),
            );
        }
    }
}
