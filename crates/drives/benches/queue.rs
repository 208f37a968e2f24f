//! Processor time and rate of 4 KiB transfers through the queue of a `file` drive, with memory
//! that is registered with the kernel and with memory that is not.
//!
//! `cargo bench -p convect-drives --bench queue [-- FILE]` prints a table. `FILE` (default: one in
//! the temporary folder) is made with 1 GiB, and removed. The two kinds of memory take turns, so
//! that what else the machine does meets both; medians of several rounds.

use block::{DmaBuf, DmaPool, DriveError, DriveQueue, DriveQueueExt};
use reactor::{Handle, Reactor};
use std::cell::Cell;
use std::rc::Rc;

const SIZE: u64 = 1 << 30;
const DEPTH: usize = 64;
const TRANSFERS: usize = 100_000;
const ROUNDS: usize = 5;

#[derive(Clone, Copy)]
struct Sample {
    rate: f64,
    processor_ns: f64,
}

fn main() {
    let given = std::env::args()
        .skip(1)
        .find(|word| !word.starts_with("--"));
    let path = given.unwrap_or_else(|| {
        let name = format!("convect-queue-{}", std::process::id());
        std::env::temp_dir().join(name).display().to_string()
    });
    let result = measure(&path);
    let _ = std::fs::remove_file(&path);
    result.expect("the drive transfers");
}

fn measure(path: &str) -> Result<(), DriveError> {
    std::fs::write(path, vec![0x5a; SIZE as usize]).expect("1 GiB of space");
    println!(
        "{:<8} {:<12} {:>10} {:>22}",
        "4 KiB", "memory", "IOPS", "processor ns each"
    );
    for write in [false, true] {
        let mut samples = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (registered, samples) in [false, true].into_iter().zip(&mut samples) {
                samples.push(round(path, write, registered)?);
            }
        }
        for (name, samples) in ["ordinary", "registered"].iter().zip(&mut samples) {
            samples.sort_by(|a, b| a.processor_ns.total_cmp(&b.processor_ns));
            let middle = samples[ROUNDS / 2];
            let kind = if write { "write" } else { "read" };
            println!(
                "{kind:<8} {name:<12} {:>10.0} {:>22.0}",
                middle.rate, middle.processor_ns
            );
        }
    }
    Ok(())
}

fn round(path: &str, write: bool, registered: bool) -> Result<Sample, DriveError> {
    let dma = if registered {
        DmaPool::with_arena(DEPTH * 4096)
    } else {
        DmaPool::new()
    };
    let reactor = Reactor::with_buffers(1, dma).expect("io_uring");
    let handle = reactor.handle().clone();
    let drive = drives::open(&format!("file:{path}")).expect("the file can be opened");
    let queue = drive.queue(&handle).expect("the loop has a ring");
    let probe = handle.dma().get(4096);
    assert_eq!(handle.registered_buffer(&probe).is_some(), registered);
    drop(probe);
    let result = reactor.block_on(async move { load(&handle, &queue, write).await });
    result.expect("the loop runs")
}

async fn load(
    handle: &Handle,
    queue: &Rc<dyn DriveQueue>,
    write: bool,
) -> Result<Sample, DriveError> {
    let left = Rc::new(Cell::new(TRANSFERS));
    let began = handle.now_ns();
    let processor = processor_ns();
    let lanes = (0..DEPTH).map(|_| {
        let left = left.clone();
        async move {
            let mut buf = handle.dma().get(4096);
            while left.get() > 0 {
                left.set(left.get() - 1);
                let offset = handle.random() % (SIZE / 4096) * 4096;
                buf = transfer(queue, write, offset, buf).await?;
            }
            Ok::<_, DriveError>(())
        }
    });
    futures_util::future::try_join_all(lanes).await?;
    Ok(Sample {
        rate: TRANSFERS as f64 * 1e9 / (handle.now_ns() - began) as f64,
        processor_ns: (processor_ns() - processor) / TRANSFERS as f64,
    })
}

async fn transfer(
    queue: &Rc<dyn DriveQueue>,
    write: bool,
    offset: u64,
    buf: DmaBuf,
) -> Result<DmaBuf, DriveError> {
    if write {
        queue.write(offset, buf.clone()).await?;
        Ok(buf)
    } else {
        queue.read(offset, buf).await
    }
}

/// Processor time of this thread, the kernel's part included.
fn processor_ns() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the structure in.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    let of = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    of(usage.ru_utime) + of(usage.ru_stime)
}
