//! Compact text encoding of a volume's map, and of its changes. Pure functions.

use api::v1::{LiveMap, MapCell};
use std::fmt::Write as _;

/// The part of a volume's map that a viewer requested.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MapView {
    /// The pool.
    pub pool: String,
    /// The volume.
    pub volume: String,
    /// Number of cells, 1 to 4,096.
    pub cells: usize,
    /// The first byte.
    pub start: u64,
    /// Length in bytes; nothing: to the volume's end.
    pub length: Option<u64>,
}

/// The map at some time: the volume's size, the range, and a code per cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    /// The volume's size in bytes.
    pub size: u64,
    /// The first byte.
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// One per cell, as computed by [`codes`].
    pub codes: Vec<u16>,
}

/// A share in fifteenths, 0 to 15, rounded up: 0 only for nothing.
fn share(part: u64, whole: u64) -> u16 {
    let share = (u128::from(part) * 15).div_ceil(u128::from(whole.max(1)));
    share.min(15) as u16
}

/// Cells as four hexadecimal digits each: shares in RAM, on the fast and the slow tier, and
/// accesses.
pub fn codes(cells: &[MapCell]) -> Vec<u16> {
    let code = |cell: &MapCell| {
        let whole = cell.ram + cell.fast + cell.slow + cell.empty;
        let shares = [cell.ram, cell.fast, cell.slow].map(|part| share(part, whole));
        let digits = [
            shares[0],
            shares[1],
            shares[2],
            u16::from(cell.uses.min(15)),
        ];
        digits.into_iter().fold(0, |code, digit| code << 4 | digit)
    };
    cells.iter().map(code).collect()
}

/// A changed cell: index and new code.
pub type Change = (u16, u16);

/// Changes between two maps with the same number of cells, at most 65,536.
pub fn differences(before: &[u16], now: &[u16]) -> Vec<Change> {
    let both = (0..=u16::MAX).zip(now.iter().zip(before));
    both.filter(|(_, (now, before))| now != before)
        .map(|(at, (now, _))| (at, *now))
        .collect()
}

/// Whether the whole map is shorter than its changes, which take twice as many characters per cell.
pub fn are_most(changed: &[Change], all: &[u16]) -> bool {
    changed.len() * 2 >= all.len() && !changed.is_empty()
}

/// Four hexadecimal digits per cell.
pub fn whole_text(codes: &[u16]) -> String {
    codes.iter().fold(String::new(), |mut all, code| {
        let _ = write!(all, "{code:04x}");
        all
    })
}

/// Eight hexadecimal digits per changed cell: index and code.
pub fn changes_text(changed: &[Change]) -> String {
    changed.iter().fold(String::new(), |mut text, (at, code)| {
        let _ = write!(text, "{at:04x}{code:04x}");
        text
    })
}

impl Picture {
    fn told(&self, view: &MapView) -> LiveMap {
        LiveMap {
            volume: format!("{}/{}", view.pool, view.volume),
            size: self.size,
            start: self.start,
            length: self.length,
            cells: self.codes.len() as u32,
            all: None,
            changed: None,
        }
    }

    /// The whole map.
    pub fn whole(&self, view: &MapView) -> LiveMap {
        LiveMap {
            all: Some(whole_text(&self.codes)),
            ..self.told(view)
        }
    }

    /// Changes since `before`; nothing if there are none.
    pub fn changes(&self, before: &Self, view: &MapView) -> Option<LiveMap> {
        let place = |picture: &Self| (picture.size, picture.start, picture.length);
        if place(self) != place(before) || self.codes.len() != before.codes.len() {
            return Some(self.whole(view));
        }
        let changed = differences(&before.codes, &self.codes);
        if are_most(&changed, &self.codes) {
            return Some(self.whole(view));
        }
        (!changed.is_empty()).then(|| LiveMap {
            changed: Some(changes_text(&changed)),
            ..self.told(view)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> MapView {
        MapView {
            pool: "tank".to_owned(),
            volume: "v".to_owned(),
            cells: 4,
            start: 0,
            length: None,
        }
    }

    fn picture(codes: Vec<u16>) -> Picture {
        Picture {
            size: 1 << 40,
            start: 0,
            length: 1 << 40,
            codes,
        }
    }

    #[test]
    fn cell_encodes_tiers_and_heat() {
        let cell = |ram, fast, slow, empty, uses| MapCell {
            ram,
            fast,
            slow,
            empty,
            uses,
        };
        for (cell, code) in [
            (cell(0, 0, 0, 100, 0), 0x0000),
            (cell(100, 0, 0, 0, 15), 0xf00f),
            (cell(1, 0, 999, 0, 3), 0x10f3),
            (cell(0, 50, 50, 0, 1), 0x0881),
            (cell(0, 0, 0, 0, 0), 0x0000),
            (cell(u64::MAX / 4, 0, 0, 0, 200), 0xf00f),
        ] {
            assert_eq!(codes(&[cell]), [code], "{cell:?}");
        }
    }

    #[test]
    fn only_changed_cells_are_sent_unless_they_are_most() {
        let before = picture(vec![0, 0, 0, 0xf00f]);
        assert_eq!(before.changes(&before, &view()), None);
        assert_eq!(
            before.whole(&view()).all.as_deref(),
            Some("000000000000f00f")
        );
        let one = picture(vec![0, 0, 0x1234, 0xf00f]);
        let told = one.changes(&before, &view()).unwrap();
        assert_eq!(
            (told.all, told.changed.as_deref()),
            (None, Some("00021234"))
        );
        let two = picture(vec![1, 0, 0x1234, 0xf00f]);
        assert!(two.changes(&before, &view()).unwrap().all.is_some());
        let mut grown = before.clone();
        grown.size += 1;
        assert!(grown.changes(&before, &view()).unwrap().all.is_some());
    }

    #[test]
    fn largest_map_update_is_small() {
        let (before, now) = (picture(vec![0; 4096]), picture(vec![0xffff; 4096]));
        let told = now.changes(&before, &view()).unwrap();
        let length = serde_json::to_string(&told).unwrap().len();
        assert!(length < 17 << 10, "{length} bytes");
    }
}
