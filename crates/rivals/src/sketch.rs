//! How often keys were used recently, estimated in eight bytes an entry: a count-min sketch of 4-bit
//! counters.
//!
//! G. Cormode, S. Muthukrishnan: "An Improved Data Stream Summary: the Count-Min Sketch and its
//! Applications", Journal of Algorithms 55(1), 2005; with minimal increments and periodic halving
//! as TinyLFU has them. Four rows, each of four counters for each entry, rounded up to a power of
//! two, as in Caffeine, the paper's own implementation; halved after ten uses an entry.

const ROWS: usize = 4;
/// 4-bit counters in a word.
const COUNTERS: usize = 16;
const COUNT_MAX: u64 = 15;
/// Every counter's bits but its highest, for halving all counters of a word together.
const LOW_BITS: u64 = 0x7777_7777_7777_7777;
/// Of a row. Up to `USES_PER_ENTRY` keys an entry are counted at a time.
const COUNTERS_PER_ENTRY: usize = 4;
const USES_PER_ENTRY: usize = 10;

pub(crate) struct Sketch {
    /// Rows one after another.
    words: Vec<u64>,
    width: usize,
    /// Uses counted since counters were halved, those before at half.
    uses: usize,
    uses_max: usize,
}

impl Sketch {
    /// For a cache of so many entries.
    pub(crate) fn new(capacity: usize) -> Self {
        let width = (capacity * COUNTERS_PER_ENTRY)
            .next_power_of_two()
            .max(COUNTERS);
        Self {
            words: vec![0; ROWS * width / COUNTERS],
            width,
            uses: 0,
            uses_max: capacity.max(1) * USES_PER_ENTRY,
        }
    }

    /// How often a key was used: never too low but for the halving, and at most 15.
    pub(crate) fn estimate(&self, key: u64) -> u64 {
        self.lowest(self.places(key))
    }

    /// Counts a use. Only the key's lowest counters grow: the others count other keys, too.
    pub(crate) fn count(&mut self, key: u64) {
        let places = self.places(key);
        let lowest = self.lowest(places);
        if lowest < COUNT_MAX {
            for (word, shift) in places {
                if self.words[word] >> shift & COUNT_MAX == lowest {
                    self.words[word] += 1 << shift;
                }
            }
        }
        self.uses += 1;
        if self.uses >= self.uses_max {
            self.halve();
        }
    }

    fn halve(&mut self) {
        for word in &mut self.words {
            *word = *word >> 1 & LOW_BITS;
        }
        self.uses /= 2;
    }

    fn lowest(&self, places: [(usize, usize); ROWS]) -> u64 {
        let counts = places.map(|(word, shift)| self.words[word] >> shift & COUNT_MAX);
        counts.into_iter().fold(COUNT_MAX, u64::min)
    }

    /// The word and the shift of a key's counter in each row.
    fn places(&self, key: u64) -> [(usize, usize); ROWS] {
        // Two hashes stand for as many as there are rows: A. Kirsch, M. Mitzenmacher, "Less
        // Hashing, Same Performance", ESA 2006.
        let hash = mix(key);
        let (first, step) = (hash as u32, (hash >> 32) as u32 | 1);
        let mut row = 0;
        [(); ROWS].map(|()| {
            let hash = first.wrapping_add(step.wrapping_mul(row as u32));
            let counter = row * self.width + (hash as usize & (self.width - 1));
            row += 1;
            (counter / COUNTERS, counter % COUNTERS * 4)
        })
    }
}

/// Spreads a key over all bits: the finalizer of MurmurHash3.
fn mix(key: u64) -> u64 {
    let key = (key ^ key >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let key = (key ^ key >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    key ^ key >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_seldom_more_than_the_uses_and_never_less() {
        let mut sketch = Sketch::new(1_000);
        for key in 0..1_000 {
            for _ in 0..key % 4 {
                sketch.count(key);
            }
        }
        let over = |key: &u64| sketch.estimate(*key) - key % 4;
        assert!((0..1_000).filter(|key| over(key) > 0).count() < 10);
    }

    #[test]
    fn it_counts_to_fifteen_and_does_not_spill_into_other_counters() {
        let mut sketch = Sketch::new(100);
        for _ in 0..100 {
            sketch.count(1);
        }
        assert_eq!(sketch.estimate(1), 15);
        let counts: u32 = sketch.words.iter().map(|word| word.count_ones()).sum();
        assert_eq!(counts as usize, ROWS * 4);
    }

    #[test]
    fn after_ten_uses_an_entry_it_forgets_half() {
        let mut sketch = Sketch::new(10);
        for _ in 0..9 {
            sketch.count(1);
        }
        for _ in 0..90 {
            sketch.count(2);
        }
        assert_eq!((sketch.estimate(1), sketch.estimate(2)), (9, 15));
        sketch.count(2);
        assert_eq!((sketch.estimate(1), sketch.estimate(2)), (4, 7));
        assert_eq!(sketch.uses, 50);
    }

    #[test]
    fn no_counter_gets_a_bit_of_its_neighbour() {
        let mut sketch = Sketch::new(16);
        sketch.words.fill(u64::MAX);
        sketch.halve();
        assert!(
            sketch
                .words
                .iter()
                .all(|word| *word == 0x7777_7777_7777_7777)
        );
    }

    #[test]
    fn where_there_are_more_keys_than_counters_few_are_estimated_at_twice_their_uses() {
        let mut sketch = Sketch::new(1_000);
        for key in 0..8_000 {
            sketch.count(key);
        }
        let over = (0..8_000).filter(|key| sketch.estimate(*key) > 1).count();
        assert!(over < 8_000 / 4, "{over} of 8000");
    }
}
