//! What is counted: initiator `n` counts in blocks `n` and `n + 1`, so that each block but the first and the last has two
//! who count in it, and every command overlaps with those of two others.

/// Bytes of a number.
const WORD: usize = 8;

/// The place of an initiator's own count within a block.
fn own(number: usize) -> usize {
    // The sum comes first.
    (1 + number) * WORD
}

fn get(block: &[u8], at: usize) -> u64 {
    let word = block[at..at + WORD].first_chunk();
    u64::from_be_bytes(*word.expect("eight bytes"))
}

fn add_one(block: &mut [u8], at: usize) {
    let next = get(block, at).wrapping_add(1);
    block[at..at + WORD].copy_from_slice(&next.to_be_bytes());
}

/// How far an initiator has counted, as both of its blocks say.
///
/// # Errors
/// When they do not say the same: a step was done by half.
pub fn counted(blocks: &[u8], number: usize) -> Result<u64, String> {
    let (one, other) = blocks.split_at(blocks.len() / 2);
    match (get(one, own(number)), get(other, own(number))) {
        (one, other) if one == other => Ok(one),
        (one, other) => Err(format!(
            "initiator {number} has counted to {one} in its first block and to {other} in its second"
        )),
    }
}

/// Both blocks after the next step.
pub fn next(blocks: &[u8], number: usize) -> Vec<u8> {
    let mut blocks = blocks.to_vec();
    let half = blocks.len() / 2;
    for block in blocks.chunks_exact_mut(half) {
        add_one(block, 0);
        add_one(block, own(number));
    }
    blocks
}

/// Whether all blocks say that every initiator has counted so far.
///
/// # Errors
/// Says which does not.
pub fn check(
    blocks: &[u8],
    block_len: usize,
    initiators: usize,
    counts: u64,
) -> Result<(), String> {
    for (at, block) in blocks.chunks_exact(block_len).enumerate() {
        let mut sum = 0;
        for number in 0..initiators {
            let mine = at == number || at == number + 1;
            let (found, wanted) = (get(block, own(number)), if mine { counts } else { 0 });
            if found != wanted {
                return Err(format!(
                    "block {at}: initiator {number} has counted to {found}, not to {wanted}"
                ));
            }
            sum += wanted;
        }
        if get(block, 0) != sum {
            let found = get(block, 0);
            return Err(format!("block {at}: the sum is {found}, not {sum}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_a_lost_one_is_found() {
        let mut disk = vec![0; 4 * 512];
        for _ in 0..3 {
            for number in 0..3 {
                let range = number * 512..(number + 2) * 512;
                let after = next(&disk[range.clone()], number);
                disk[range].copy_from_slice(&after);
            }
        }
        assert_eq!(counted(&disk[512..1536], 1), Ok(3));
        assert_eq!(check(&disk, 512, 3, 3), Ok(()));
        let whole = disk.clone();
        for at in [7, 512 + 7, 512 + 15, 512 + 23] {
            disk.clone_from(&whole);
            disk[at] -= 1;
            assert!(check(&disk, 512, 3, 3).is_err(), "{at}");
        }
        disk.clone_from(&whole);
        disk[512 + 23] -= 1;
        assert!(counted(&disk[512..1536], 1).is_err());
    }
}
