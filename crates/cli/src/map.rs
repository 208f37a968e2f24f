//! A volume's map as a strip of cells.

use api::v1::{MapCell, MapFrames};
use units::format_bytes;

/// Cells per line.
const LINE: usize = 64;
/// Minimum share of a faster tier for it to be shown in a cell of mostly slower data.
const SHOWN: f64 = 0.02;

/// How tiers are distinguished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Paint {
    /// By colour: RAM red, fast orange, slow blue, empty grey.
    Colour,
    /// By letters: `R`, `F`, `S`, `.`; small where it is not the most of the cell.
    Letters,
}

const COLOURS: [u8; 4] = [196, 208, 27, 240];
const LETTERS: [char; 4] = ['R', 'F', 'S', '.'];
const NAMES: [&str; 4] = ["RAM", "fast", "slow", "empty"];

fn parts(cell: &MapCell) -> [u64; 4] {
    [cell.ram, cell.fast, cell.slow, cell.empty]
}

/// The tier with the largest share of a cell, and the fastest other tier with a visible share.
fn shares(cell: &MapCell) -> (usize, Option<(usize, f64)>) {
    let parts = parts(cell);
    let total = parts.iter().sum::<u64>().max(1) as f64;
    let most = (0..4).max_by_key(|index| parts[*index]).unwrap_or(3);
    let other = (0..most)
        .map(|index| (index, parts[index] as f64 / total))
        .find(|(_, share)| *share >= SHOWN);
    (most, other)
}

fn paint(cell: &MapCell, paint: Paint) -> String {
    let (most, other) = shares(cell);
    match (paint, other) {
        (Paint::Letters, None) => LETTERS[most].to_string(),
        (Paint::Letters, Some((tier, _))) => LETTERS[tier].to_ascii_lowercase().to_string(),
        (Paint::Colour, None) => format!("\x1b[38;5;{}m█\x1b[0m", COLOURS[most]),
        (Paint::Colour, Some((tier, share))) => {
            let shade = match share {
                share if share < 0.2 => '░',
                share if share < 0.4 => '▒',
                _ => '▓',
            };
            format!(
                "\x1b[38;5;{};48;5;{}m{shade}\x1b[0m",
                COLOURS[tier], COLOURS[most]
            )
        }
    }
}

/// The cells in lines, each prefixed with the address of its first byte.
pub fn strip(size: u64, cells: &[MapCell], how: Paint) -> String {
    let mut text = String::new();
    for (number, line) in cells.chunks(LINE).enumerate() {
        let first = u128::from(size) * (number * LINE) as u128 / cells.len().max(1) as u128;
        text.push_str(&format!("{:>9} ", format_bytes(first as u64)));
        text.extend(line.iter().map(|cell| paint(cell, how)));
        text.push('\n');
    }
    text
}

/// Cells of the first of some recorded frames; shares have a resolution of 1/15. Nothing if the
/// frames are missing or invalid.
pub fn cells_then(told: &MapFrames) -> Option<Vec<MapCell>> {
    let all = told.frames.first()?.all.as_deref()?;
    let part = told.size / u64::from(told.cells.max(1));
    let cell = |digits: &[u8]| {
        let code = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        let share = |shift: u32| part * u64::from(code >> shift & 15) / 15;
        let (ram, fast, slow) = (share(12), share(8), share(4));
        Some(MapCell {
            ram,
            fast,
            slow,
            empty: part.saturating_sub(ram + fast + slow),
            uses: (code & 15) as u8,
        })
    };
    all.as_bytes().chunks(4).map(cell).collect()
}

/// A stacked bar of `columns` characters: RAM, fast, slow, and the rest.
pub fn bar(hundredths: [f64; 3], columns: usize, how: Paint) -> String {
    let mut text = String::new();
    let (mut sum, mut shown) = (0.0, 0);
    for (index, part) in hundredths.into_iter().chain([100.0]).enumerate() {
        sum += part;
        let up_to = (sum.min(100.0) / 100.0 * columns as f64).round() as usize;
        let length = up_to.saturating_sub(shown);
        shown += length;
        match how {
            _ if length == 0 => {}
            Paint::Letters => text.extend(std::iter::repeat_n(LETTERS[index], length)),
            Paint::Colour => {
                let colour = COLOURS[index];
                text.push_str(&format!("\x1b[38;5;{colour}m{}\x1b[0m", "█".repeat(length)));
            }
        }
    }
    text
}

/// Legend of colours or letters, with the amount of data of each tier.
pub fn legend(cells: &[MapCell], how: Paint) -> String {
    let mut sums = [0u64; 4];
    for cell in cells {
        for (sum, part) in sums.iter_mut().zip(parts(cell)) {
            *sum += part;
        }
    }
    let entries: Vec<String> = (0..4)
        .map(|index| {
            let sign = match how {
                Paint::Letters => LETTERS[index].to_string(),
                Paint::Colour => format!("\x1b[38;5;{}m█\x1b[0m", COLOURS[index]),
            };
            format!("{sign} {} {}", NAMES[index], format_bytes(sums[index]))
        })
        .collect();
    format!("{:>9} {}\n", "", entries.join("   "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::v1::MapFrame;

    #[test]
    fn recorded_map_is_decoded() {
        let told = |all: &str| MapFrames {
            volume: "tank/v".to_owned(),
            size: 3000,
            cells: 2,
            last_s: 1,
            frames: vec![MapFrame {
                at_s: 1,
                all: Some(all.to_owned()),
                changed: None,
            }],
        };
        let cells = cells_then(&told("f00f00a3")).unwrap();
        let parts = |cell: &MapCell| (cell.ram, cell.fast, cell.slow, cell.empty, cell.uses);
        assert_eq!(parts(&cells[0]), (1500, 0, 0, 0, 15));
        assert_eq!(parts(&cells[1]), (0, 0, 1000, 500, 3));
        assert_eq!(cells_then(&told("f0xx")), None);
        let none = MapFrames {
            frames: Vec::new(),
            ..told("")
        };
        assert_eq!(cells_then(&none), None);
    }
}
