//! The load of a virtual desktop: it boots, and then works.
//!
//! A boot reads what all desktops read (the system's files: the same runs in the same order), what is scattered over the
//! image (its own services and profile), and writes a little (logs, page file). Then the desktop works: 10 to 15 IOPS, four
//! fifths of them writes to a small part of its own. That is the shape that is published of Windows desktops; the sizes are
//! those that the boot storm by iSCSI (`sessions`) has.

use crate::chance::Chance;
use crate::failure::{Failure, Result};
use crate::load::{Arrivals, Blocks, Pace, Rate, Request};
use crate::tenants::{Next, Source};
use std::sync::Arc;

/// Requests that a desktop has outstanding at most.
pub const DEPTH: u16 = 2;
/// Reads and writes, with the frequency of each size.
pub const BOOT_BLOCKS: &str = "4k:50,16k:30,64k:20";
/// Sizes while it works.
const WORK_BLOCKS: &str = "4k:70,8k:20,16k:10";
/// Of a hundred requests of a boot: reads of what all desktops read, and writes. The others are scattered reads.
const COMMON_PERCENT: u64 = 65;
const BOOT_WRITE_PERCENT: u64 = 10;
/// Writes of a hundred requests while it works.
const WORK_WRITE_PERCENT: u64 = 80;
/// IOPS while it works, from and up to.
const WORK_IOPS: [f64; 2] = [10.0, 15.0];
/// Reads that follow one another in place, of what all read.
const RUN: usize = 8;
/// The part of its own that a desktop writes, in bytes.
pub const OWN_BYTES: u64 = 8 << 20;
/// All places are multiples of this.
const GRAIN: u64 = 4096;

/// State that all desktops of a storm share.
pub struct Boot {
    /// The reads that all do, in their order.
    common: Vec<Request>,
    image: u64,
    bytes: u64,
    boot_blocks: Blocks,
    work_blocks: Blocks,
}

impl Boot {
    /// Desktops with an image of a number of bytes, of which a number is read to boot.
    ///
    /// # Errors
    /// When the image has no room for the part that a desktop writes.
    pub fn new(image: u64, bytes: u64) -> Result<Self> {
        if image < 2 * OWN_BYTES {
            return Err(Failure::new(format!(
                "an image of {image} bytes is too small: take one of {} or more",
                units::format_bytes(2 * OWN_BYTES)
            )));
        }
        let blocks = |text: &str| text.parse::<Blocks>().map_err(Failure::new);
        let boot_blocks = blocks(BOOT_BLOCKS)?;
        Ok(Self {
            common: common(image, bytes * COMMON_PERCENT / 100, &boot_blocks),
            image,
            bytes,
            boot_blocks,
            work_blocks: blocks(WORK_BLOCKS)?,
        })
    }

    /// Sizes of all requests.
    pub fn blocks(&self) -> &Blocks {
        &self.boot_blocks
    }
}

/// Runs of reads anywhere in the image with a total of bytes.
fn common(image: u64, bytes: u64, blocks: &Blocks) -> Vec<Request> {
    let mut chance = Chance::new(image);
    let (mut reads, mut sum, mut offset) = (Vec::new(), 0, 0);
    while sum < bytes || reads.is_empty() {
        let length = blocks.next(&mut chance);
        if reads.len().is_multiple_of(RUN) || offset + u64::from(length) > image {
            offset = place(&mut chance, 0, image, length);
        }
        reads.push(Request {
            offset,
            length,
            write: false,
        });
        offset += u64::from(length);
        sum += u64::from(length);
    }
    reads
}

/// A place for a number of bytes in a range.
fn place(chance: &mut Chance, begin: u64, bytes: u64, length: u32) -> u64 {
    let places = (bytes - u64::from(length)) / GRAIN + 1;
    begin + chance.below(places) * GRAIN
}

/// A desktop.
pub struct Desktop {
    boot: Arc<Boot>,
    chance: Chance,
    /// The next one of the reads that all do.
    next: usize,
    /// Bytes that are left to be read until it has booted.
    left: u64,
    /// Where the part begins that it writes.
    own: u64,
    pace: Option<Pace>,
}

impl Desktop {
    /// One that is switched off; `number` seeds its random choices.
    pub fn new(boot: &Arc<Boot>, number: u64) -> Self {
        let mut chance = Chance::new(number);
        let own = place(&mut chance, 0, boot.image, OWN_BYTES as u32);
        Self {
            left: boot.bytes,
            boot: Arc::clone(boot),
            chance,
            next: 0,
            own,
            pace: None,
        }
    }

    /// A request of its boot.
    fn boots(&mut self) -> Request {
        let percent = self.chance.below(100);
        if percent < COMMON_PERCENT {
            let read = self.boot.common[self.next % self.boot.common.len()];
            self.next += 1;
            return read;
        }
        let length = self.boot.boot_blocks.next(&mut self.chance);
        let write = percent >= 100 - BOOT_WRITE_PERCENT;
        Request {
            offset: self.anywhere(write, length),
            length,
            write,
        }
    }

    fn anywhere(&mut self, own: bool, length: u32) -> u64 {
        match own {
            true => place(&mut self.chance, self.own, OWN_BYTES, length),
            false => place(&mut self.chance, 0, self.boot.image, length),
        }
    }

    /// The pace of its work from now on.
    fn begin_work(&mut self, now_ns: u64) -> Pace {
        let [least, most] = WORK_IOPS;
        let rate = Rate {
            per_second: least + (most - least) * self.chance.unit(),
            arrivals: Arrivals::Poisson,
        };
        let mut pace = Pace::starting_at(rate, now_ns);
        pace.advance(&mut self.chance);
        pace
    }
}

impl Source for Desktop {
    fn next(&mut self, now_ns: u64) -> Next {
        if self.left > 0 {
            let request = self.boots();
            if !request.write {
                self.left = self.left.saturating_sub(u64::from(request.length));
            }
            return Next::Send {
                request,
                due_ns: now_ns,
            };
        }
        let mut pace = match self.pace.take() {
            Some(pace) => pace,
            None => self.begin_work(now_ns),
        };
        let due_ns = pace.due_ns();
        if due_ns > now_ns {
            self.pace = Some(pace);
            return Next::At(due_ns);
        }
        pace.advance(&mut self.chance);
        self.pace = Some(pace);
        let length = self.boot.work_blocks.next(&mut self.chance);
        let write = self.chance.below(100) < WORK_WRITE_PERCENT;
        let request = Request {
            offset: self.anywhere(write, length),
            length,
            write,
        };
        Next::Send { request, due_ns }
    }

    fn is_starting(&self) -> bool {
        self.left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: u64 = 64 << 20;
    const BYTES: u64 = 4 << 20;

    fn boot_of(boot: &Arc<Boot>, number: u64) -> (Desktop, Vec<Request>) {
        let mut desktop = Desktop::new(boot, number);
        let mut requests = Vec::new();
        while desktop.is_starting() {
            let Next::Send { request, .. } = desktop.next(0) else {
                panic!("a boot waits for nothing");
            };
            requests.push(request);
        }
        (desktop, requests)
    }

    #[test]
    fn a_boot_reads_what_all_read_and_ends() {
        let boot = Arc::new(Boot::new(IMAGE, BYTES).unwrap());
        let places = |number| -> std::collections::BTreeSet<u64> {
            let (_, requests) = boot_of(&boot, number);
            let reads = requests.iter().filter(|request| !request.write);
            let bytes: u64 = reads.clone().map(|read| u64::from(read.length)).sum();
            assert!((BYTES..BYTES + (64 << 10)).contains(&bytes));
            reads.map(|read| read.offset).collect()
        };
        let (one, other) = (places(1), places(2));
        let both = one.intersection(&other).count() as f64 / one.len() as f64;
        assert!(
            (0.4..0.95).contains(&both),
            "{both} of the places are common"
        );
    }

    #[test]
    fn what_works_writes_four_fifths_at_its_rate_and_within_its_image() {
        let boot = Arc::new(Boot::new(IMAGE, BYTES).unwrap());
        let (mut desktop, _) = boot_of(&boot, 3);
        let (mut now_ns, mut count, mut writes) = (0, 0, 0);
        while count < 2_000 {
            match desktop.next(now_ns) {
                Next::At(moment) => now_ns = moment,
                Next::Send { request, .. } => {
                    assert!(request.offset + u64::from(request.length) <= IMAGE);
                    count += 1;
                    writes += u32::from(request.write);
                }
            }
        }
        let iops = f64::from(count) / (now_ns as f64 / 1e9);
        assert!((9.0..16.5).contains(&iops), "{iops}");
        assert!((1_500..1_700).contains(&writes), "{writes}");
    }

    #[test]
    fn a_small_image_is_refused() {
        let Err(refused) = Boot::new(1 << 20, BYTES) else {
            panic!("it was taken");
        };
        assert!(refused.to_string().contains("16 MiB"), "{refused}");
    }
}
