//! Division without the instruction for it, which takes a processor 10 to 90 cycles, where that can be.

/// The quotient and the remainder. For a divisor that is a power of two, as most are that turn up here, both are shifts and
/// masks.
///
/// # Panics
/// When the divisor is 0.
#[inline]
pub fn div_rem(value: u64, by: u64) -> (u64, u64) {
    match by.is_power_of_two() {
        true => (value >> by.trailing_zeros(), value & (by - 1)),
        false => (value / by, value % by),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_division_gives() {
        let divisors = (1..70).chain((0..64).flat_map(|shift| {
            let power = 1u64 << shift;
            [power, power - 1, power.wrapping_add(1)]
        }));
        for by in divisors.filter(|by| *by > 0) {
            for value in [0, 1, by - 1, by, by.wrapping_add(1), 12_345_678, u64::MAX] {
                let expected = (value / by, value % by);
                assert_eq!(div_rem(value, by), expected, "{value} by {by}");
            }
        }
    }
}
