//! Sizes of requests by distribution: `4k:60,64k:40`.

use crate::chance::Chance;
use std::str::FromStr;

/// The smallest unit of a disk in bytes.
const SECTOR: u64 = 512;
/// The largest request in bytes.
const LARGEST: u64 = 16 << 20;

/// Sizes and how often each comes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocks {
    /// Bytes, and the weights of this and all before.
    sizes: Vec<(u32, u64)>,
}

impl Blocks {
    /// One size in bytes.
    pub fn of(bytes: u32) -> Self {
        Self {
            sizes: vec![(bytes, 1)],
        }
    }

    /// The next one, in bytes.
    pub fn next(&self, chance: &mut Chance) -> u32 {
        let (last, all) = self.sizes[self.sizes.len() - 1];
        if self.sizes.len() == 1 {
            return last;
        }
        let number = chance.below(all);
        let found = self.sizes.iter().find(|(_, until)| number < *until);
        found.map_or(last, |(bytes, _)| *bytes)
    }

    /// The smallest, to whose multiples all requests are aligned.
    pub fn smallest(&self) -> u32 {
        self.sizes
            .iter()
            .map(|(bytes, _)| *bytes)
            .min()
            .unwrap_or(0)
    }

    /// The largest.
    pub fn largest(&self) -> u32 {
        self.sizes
            .iter()
            .map(|(bytes, _)| *bytes)
            .max()
            .unwrap_or(0)
    }

    /// Whether all are multiples of a number of bytes.
    pub fn are_multiples_of(&self, bytes: u32) -> bool {
        self.sizes
            .iter()
            .all(|(size, _)| size.is_multiple_of(bytes))
    }
}

fn part(text: &str) -> Result<(u32, u64), String> {
    let (size, weight) = match text.split_once(':') {
        Some((size, weight)) => (size, weight.parse().unwrap_or(0)),
        None => (text, 1),
    };
    let bytes = units::parse_bytes(size).map_err(|error| error.to_string())?;
    if !bytes.is_multiple_of(SECTOR) || !(SECTOR..=LARGEST).contains(&bytes) {
        return Err(format!(
            "'{size}' is no size of a request: give a multiple of 512 bytes up to 16M"
        ));
    }
    if !(1..=1_000_000).contains(&weight) {
        return Err(format!(
            "'{text}' has no weight: give a whole number of 1 or more, as in 4k:60,64k:40"
        ));
    }
    Ok((bytes as u32, weight))
}

impl FromStr for Blocks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut sizes = Vec::new();
        let mut all = 0;
        for text in text.split(',') {
            let (bytes, weight) = part(text)?;
            all += weight;
            sizes.push((bytes, all));
        }
        Ok(Self { sizes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_as_often_as_their_weights_say() {
        let blocks: Blocks = "4k:60,64k:30,512:10".parse().expect("right");
        assert_eq!((blocks.smallest(), blocks.largest()), (512, 65_536));
        assert!(blocks.are_multiples_of(512) && !blocks.are_multiples_of(4096));
        let mut chance = Chance::new(1);
        let mut counts = [0; 3];
        for _ in 0..100_000 {
            match blocks.next(&mut chance) {
                4096 => counts[0] += 1,
                65_536 => counts[1] += 1,
                512 => counts[2] += 1,
                other => panic!("{other}"),
            }
        }
        for (count, wanted) in counts.iter().zip([60_000i32, 30_000, 10_000]) {
            assert!((*count - wanted).abs() < 1_000, "{counts:?}");
        }
    }

    #[test]
    fn what_is_no_distribution_is_refused_with_what_to_write() {
        for (wrong, word) in [
            ("", "size"),
            ("4k:", "weight"),
            ("4k:0", "weight"),
            ("4k:60,", "size"),
            ("100", "multiple of 512"),
            ("0", "multiple of 512"),
            ("32M", "up to 16M"),
        ] {
            let refused = wrong.parse::<Blocks>().expect_err(wrong);
            assert!(refused.contains(word), "{wrong}: {refused}");
        }
    }
}
