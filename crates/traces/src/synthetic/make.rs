//! The table of synthetic traces, and the generator of a pattern's requests.

use super::patterns::{moving, one_hit, scan, scattered, uniform, zipf};
use super::random::Random;
use super::vdi::vdi_boot;
use crate::request::{Request, SECTOR};
use thiserror::Error;

/// Sectors of a block of 4 KiB.
const BLOCK_SECTORS: u64 = 4096 / SECTOR;
/// The mean time between requests.
const GAP_US: u64 = 1000;
/// The smallest footprint in blocks of 4 KiB: below it the parts of some patterns vanish.
pub const BLOCKS_MIN: u64 = 1 << 10;
/// The largest footprint in blocks of 4 KiB.
pub const BLOCKS_MAX: u64 = 1 << 43;
/// The most requests of one trace.
pub const REQUESTS_MAX: u64 = 1 << 32;

/// One request of a pattern, in blocks of 4 KiB.
pub(super) struct Access {
    pub block: u64,
    pub blocks: u64,
    pub write: bool,
}

/// How large a trace is.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub blocks: u64,
    pub requests: u64,
}

/// Generates the request of a number; numbers are consecutive.
pub(super) type Pattern = Box<dyn FnMut(&mut Random, u64) -> Access>;

/// A kind of synthetic trace.
pub struct Synthetic {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    start: fn(Shape, &mut Random) -> Pattern,
}

/// Why no trace is made.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SyntheticError {
    /// There is no trace of this name.
    #[error("there is no synthetic trace {0:?}: use {names}", names = names())]
    Unknown(String),
    /// It would be too small or too large.
    #[error(
        "a synthetic trace of {blocks} blocks and {requests} requests cannot be made: take \
         {BLOCKS_MIN} to {BLOCKS_MAX} blocks and at most {REQUESTS_MAX} requests"
    )]
    Size {
        /// Blocks that were requested.
        blocks: u64,
        /// Requests that were requested.
        requests: u64,
    },
}

const SYNTHETIC: &[Synthetic] = &[
    Synthetic {
        name: "moving",
        about: "90 % of the requests in 5 % of the blocks, elsewhere after each sixth; 70 % reads",
        start: moving,
    },
    Synthetic {
        name: "scan",
        about: "a sequential scan of all in 256 KiB, by turns with zipf reads of 4 KiB",
        start: scan,
    },
    Synthetic {
        name: "one-hit",
        about: "half of the requests to blocks beyond the footprint, each once; half zipf; reads",
        start: one_hit,
    },
    Synthetic {
        name: "scattered",
        about: "90 % of the requests to one block of each MiB, the rest uniform; 70 % reads",
        start: scattered,
    },
    Synthetic {
        name: "vdi-boot",
        about: "100 desktops read the same 4 to 64 KiB ranges, with 10 % writes of their own",
        start: vdi_boot,
    },
    Synthetic {
        name: "zipf",
        about: "zipf 0.99 over blocks in no order; 70 % reads",
        start: zipf,
    },
    Synthetic {
        name: "uniform",
        about: "every block alike; 70 % reads",
        start: uniform,
    },
];

/// All synthetic traces.
pub fn all() -> &'static [Synthetic] {
    SYNTHETIC
}

fn names() -> String {
    let names: Vec<_> = all().iter().map(|synthetic| synthetic.name).collect();
    names.join(", ")
}

/// Makes the trace of a name: so many requests over a footprint of so many blocks of 4 KiB. Equal
/// arguments make equal requests.
///
/// # Errors
///
/// There is no trace of this name, or it would be too small or too large.
pub fn make(
    name: &str,
    blocks: u64,
    requests: u64,
    seed: u64,
) -> Result<Vec<Request>, SyntheticError> {
    let Some(synthetic) = all().iter().find(|synthetic| synthetic.name == name) else {
        return Err(SyntheticError::Unknown(name.to_owned()));
    };
    if !(BLOCKS_MIN..=BLOCKS_MAX).contains(&blocks) || requests > REQUESTS_MAX {
        return Err(SyntheticError::Size { blocks, requests });
    }
    let mut random = Random::new(seed);
    let mut pattern = (synthetic.start)(Shape { blocks, requests }, &mut random);
    let mut at_us = 0;
    let request = |number| {
        let access = pattern(&mut random, number);
        if number > 0 {
            at_us += 1 + random.below(2 * GAP_US - 1);
        }
        Request {
            at_us,
            sector: access.block * BLOCK_SECTORS,
            // Patterns have requests of 256 KiB at most.
            sectors: (access.blocks * BLOCK_SECTORS) as u32,
            device: 0,
            write: access.write,
        }
    };
    Ok((0..requests).map(request).collect())
}
