//! Blocks of a vdrive to blocks of its parts: pure arithmetic.

use crate::LayoutConfig;
use units::div_rem;

/// A run of blocks on one part, or on all members of a mirror.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// Part; of a mirror, every part holds it.
    pub part: usize,
    /// First block within the part.
    pub block: u64,
    /// Number of blocks.
    pub count: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Band {
    /// First block of the vdrive.
    start: u64,
    /// First block within each part.
    part_start: u64,
    /// Blocks of each part.
    per_part: u64,
    /// First of the parts, which are sorted by size: the band spans it and all bigger ones.
    first: usize,
}

/// Mapping of a vdrive's blocks to its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    kind: LayoutConfig,
    blocks: u64,
    /// Concat: first block of each part. The parts of a mirror are one, as all have the same.
    starts: Vec<u64>,
    /// Stripe: parts by size, smallest first, and the bands that they make.
    order: Vec<usize>,
    bands: Vec<Band>,
}

impl Layout {
    /// The layout of `kind` over parts of these lengths (in blocks).
    pub fn new(kind: LayoutConfig, parts: &[u64]) -> Self {
        let mut layout = Self {
            kind,
            blocks: 0,
            starts: vec![],
            order: vec![],
            bands: vec![],
        };
        match kind {
            LayoutConfig::Concat => {
                for part in parts {
                    layout.starts.push(layout.blocks);
                    layout.blocks += part;
                }
            }
            LayoutConfig::Mirror => {
                layout.starts.push(0);
                layout.blocks = parts.iter().copied().min().unwrap_or(0);
            }
            LayoutConfig::Stripe { chunk_blocks } => layout.stripe(parts, chunk_blocks),
        }
        layout
    }

    /// Parts of different sizes make bands: the first over all parts up to the smallest one's
    /// end, the next over those that are bigger, and so on.
    fn stripe(&mut self, parts: &[u64], chunk: u64) {
        self.order = (0..parts.len()).collect();
        self.order.sort_by_key(|part| (parts[*part], *part));
        let mut reached = 0;
        for first in 0..parts.len() {
            let end = parts[self.order[first]] / chunk * chunk;
            if end > reached {
                let band = Band {
                    start: self.blocks,
                    part_start: reached,
                    per_part: end - reached,
                    first,
                };
                self.blocks += band.per_part * (parts.len() - first) as u64;
                self.bands.push(band);
                reached = end;
            }
        }
    }

    /// Size in blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Whether every part holds everything.
    pub fn is_mirror(&self) -> bool {
        self.kind == LayoutConfig::Mirror
    }

    /// The run that begins at `block`, of at most `count` blocks.
    ///
    /// # Panics
    /// When `block` is outside.
    #[inline]
    pub fn fragment(&self, block: u64, count: usize) -> Fragment {
        assert!(
            block < self.blocks,
            "block {block} is outside of a vdrive of {} blocks",
            self.blocks
        );
        // Most vdrives are a drive or a mirror.
        match self.starts.len() {
            1 => Fragment {
                part: 0,
                block,
                count: (count as u64).min(self.blocks - block) as usize,
            },
            _ => self.fragment_of_many(block, count),
        }
    }

    /// The same where parts have different blocks.
    fn fragment_of_many(&self, block: u64, count: usize) -> Fragment {
        let limit = |left: u64| (count as u64).min(left) as usize;
        match self.kind {
            LayoutConfig::Mirror | LayoutConfig::Concat => {
                let part = self.starts.partition_point(|start| *start <= block) - 1;
                let end = self.starts.get(part + 1).copied().unwrap_or(self.blocks);
                Fragment {
                    part,
                    block: block - self.starts[part],
                    count: limit(end - block),
                }
            }
            LayoutConfig::Stripe { chunk_blocks } => {
                let index = self.bands.partition_point(|band| band.start <= block) - 1;
                let band = &self.bands[index];
                let width = (self.order.len() - band.first) as u64;
                let (chunk, within) = div_rem(block - band.start, chunk_blocks);
                let (row, column) = div_rem(chunk, width);
                Fragment {
                    part: self.order[band.first + column as usize],
                    block: band.part_start + row * chunk_blocks + within,
                    count: limit(chunk_blocks - within),
                }
            }
        }
    }

    /// The runs that make up `count` blocks from `block` on, in order.
    pub fn fragments(&self, block: u64, count: usize) -> impl Iterator<Item = Fragment> + '_ {
        let mut done = 0;
        std::iter::from_fn(move || {
            (done < count).then(|| {
                let fragment = self.fragment(block + done as u64, count - done);
                done += fragment.count;
                fragment
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn covers_everything_once(kind: LayoutConfig, parts: &[u64], expected: u64) {
        let layout = Layout::new(kind, parts);
        assert_eq!(layout.blocks(), expected, "{kind:?} {parts:?}");
        let mut seen = BTreeSet::new();
        for block in 0..layout.blocks() {
            let fragment = layout.fragment(block, 1);
            assert!(
                fragment.block < parts[fragment.part],
                "{kind:?} {parts:?} {block}"
            );
            assert!(
                seen.insert((fragment.part, fragment.block)),
                "{kind:?} {parts:?} {block}"
            );
        }
        let mut runs = 0;
        for fragment in layout.fragments(0, expected as usize) {
            runs += fragment.count as u64;
        }
        assert_eq!(runs, expected);
    }

    #[test]
    fn every_block_has_a_place_of_its_own() {
        covers_everything_once(LayoutConfig::Concat, &[10, 3, 7], 20);
        covers_everything_once(LayoutConfig::Concat, &[10], 10);
        covers_everything_once(LayoutConfig::Mirror, &[10, 8], 8);
        let stripe = LayoutConfig::Stripe { chunk_blocks: 4 };
        covers_everything_once(stripe, &[16, 16, 16], 48);
        covers_everything_once(stripe, &[16, 40, 9], 64);
        covers_everything_once(stripe, &[5], 4);
    }

    #[test]
    fn a_run_ends_where_its_part_or_chunk_ends() {
        let concat = Layout::new(LayoutConfig::Concat, &[10, 3]);
        assert_eq!(
            concat.fragment(8, 5),
            Fragment {
                part: 0,
                block: 8,
                count: 2
            }
        );
        assert_eq!(
            concat.fragment(10, 5),
            Fragment {
                part: 1,
                block: 0,
                count: 3
            }
        );
        let stripe = Layout::new(LayoutConfig::Stripe { chunk_blocks: 4 }, &[8, 8]);
        assert_eq!(
            stripe.fragment(3, 4),
            Fragment {
                part: 0,
                block: 3,
                count: 1
            }
        );
        assert_eq!(
            stripe.fragment(4, 4),
            Fragment {
                part: 1,
                block: 0,
                count: 4
            }
        );
        assert_eq!(
            stripe.fragment(8, 4),
            Fragment {
                part: 0,
                block: 4,
                count: 4
            }
        );
    }

    #[test]
    #[should_panic(expected = "outside of a vdrive")]
    fn a_block_outside_is_refused() {
        Layout::new(LayoutConfig::Concat, &[10]).fragment(10, 1);
    }
}
