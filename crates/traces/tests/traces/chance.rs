//! Random damage: nothing panics, and accepted values are within their bounds.

use crate::samples::samples;
use traces::parse;

const SECTORS: u64 = 1 << 55;

/// Numbers that repeat: xorshift.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[test]
fn no_damage_panics_and_what_is_read_is_within_its_bounds() {
    let mut chance = Chance(20_260_101);
    for sample in samples() {
        for _ in 0..3000 {
            let mut bytes = sample.bytes.clone();
            for _ in 0..=chance.below(4) {
                let at = chance.below(bytes.len());
                match chance.below(4) {
                    0 => bytes.truncate(at + 1),
                    1 => bytes[at] = [0, 0xff, b'9', b' ', b'\n', b',', b'.'][chance.below(7)],
                    2 => bytes[at] ^= 1 << chance.below(8),
                    _ => bytes.insert(at, chance.below(256) as u8),
                }
            }
            for format in [None, Some(sample.format())] {
                let Ok(trace) = parse(&*bytes, format, None) else {
                    continue;
                };
                for request in trace.requests {
                    let sectors = u64::from(request.sectors);
                    assert!((1..=(1 << 21) + 1).contains(&sectors));
                    assert!(request.sector + sectors <= SECTORS);
                }
            }
        }
    }
}
