//! A volume's map as strips of coloured cells.

use crate::screen;
use api::v1::{MapCell, VolumeMap};

/// Cells of a map; each is a character.
pub const CELLS: usize = 128;
const LINE: usize = 64;
/// A cell of which at least this part is in RAM or on the fast tier has the colour of the larger
/// of the two: hot data is small beside the cells.
const SHOWN: f64 = 0.1;

/// Where a cell lies, as it is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shade {
    /// RAM.
    Ram,
    /// The fast tier.
    Fast,
    /// The slow tier.
    Slow,
    /// Never written.
    Empty,
}

impl Shade {
    /// Every shade with its name, fastest first.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Ram, "RAM"),
        (Self::Fast, "fast"),
        (Self::Slow, "slow"),
        (Self::Empty, "empty"),
    ];

    /// Its colour in a report.
    pub fn colour(self) -> &'static str {
        match self {
            Self::Ram => "#d62f2f",
            Self::Fast => "#f0932b",
            Self::Slow => "#2d6cdf",
            Self::Empty => "#9aa3ad",
        }
    }

    fn terminal(self) -> u8 {
        match self {
            Self::Ram => 196,
            Self::Fast => 208,
            Self::Slow => 27,
            Self::Empty => 240,
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Ram => 'R',
            Self::Fast => 'F',
            Self::Slow => 's',
            Self::Empty => '.',
        }
    }
}

/// How a cell is shown.
pub fn shade(cell: &MapCell) -> Shade {
    let written = (cell.ram + cell.fast + cell.slow) as f64;
    let risen = (cell.ram + cell.fast) as f64;
    match cell {
        _ if written == 0.0 => Shade::Empty,
        _ if risen / written < SHOWN => Shade::Slow,
        cell if cell.ram >= cell.fast => Shade::Ram,
        _ => Shade::Fast,
    }
}

fn cell_text(shade: Shade, colours: bool) -> String {
    match colours {
        true => format!("\x1b[38;5;{}m\u{2588}\x1b[0m", shade.terminal()),
        false => shade.letter().to_string(),
    }
}

fn draw(map: &VolumeMap, colours: bool) -> String {
    let mut text = String::new();
    for line in map.cells.chunks(LINE) {
        text += "  ";
        text.extend(line.iter().map(|cell| cell_text(shade(cell), colours)));
        text += "\n";
    }
    text
}

/// Draws a map, in colour on a terminal and in letters elsewhere.
pub fn text(map: &VolumeMap) -> String {
    let colours = screen::is_terminal() && std::env::var_os("NO_COLOR").is_none();
    draw(map, colours)
}

/// Legend of the colours or letters.
pub fn legend() -> String {
    let colours = screen::is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let parts = Shade::ALL.map(|(shade, name)| format!("{} {name}", cell_text(shade, colours)));
    format!("  {}\n", parts.join("   "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rose_gives_a_cell_its_colour() {
        let cell = |ram, fast, slow| MapCell {
            ram,
            fast,
            slow,
            empty: 100,
            uses: 0,
        };
        for (cell, expected) in [
            (cell(6, 4, 90), Shade::Ram),
            (cell(4, 6, 90), Shade::Fast),
            (cell(0, 100, 0), Shade::Fast),
            (cell(5, 4, 91), Shade::Slow),
            (cell(0, 0, 0), Shade::Empty),
        ] {
            assert_eq!(shade(&cell), expected);
        }
    }

    #[test]
    fn without_colours_a_map_is_letters() {
        let slow = MapCell {
            slow: 1,
            ..MapCell::default()
        };
        let map = VolumeMap {
            size: 2,
            start: 0,
            cells: vec![slow, MapCell::default()],
        };
        assert_eq!(draw(&map, false), "  s.\n");
    }
}
