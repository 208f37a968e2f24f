//! Places texts in columns. Where a width is given, no line is longer: first long texts are cut,
//! then columns at the end are omitted, at last everything is cut.

use crate::{colour, visible};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns between two columns of a table.
const GAP: usize = 2;
/// A text is cut to this many columns before other columns are omitted.
const CUT_TO: usize = 12;
/// What ends a cut text.
const CUT: char = '…';

/// A column's head.
#[derive(Clone, Debug)]
pub struct Head {
    /// Its header.
    pub header: String,
    /// Whether it is right-aligned, as numbers are. Numbers are cut last.
    pub right: bool,
    /// Whether it is never omitted.
    pub kept: bool,
    /// Whether its cells are states, which have colours.
    pub state: bool,
}

/// Cuts a text to a number of columns of the terminal.
fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut taken = 0;
    let mut shown = String::new();
    for c in text.chars() {
        taken += c.width().unwrap_or(0);
        if taken + 1 > columns {
            break;
        }
        shown.push(c);
    }
    if columns > 0 {
        shown.push(CUT);
    }
    shown
}

fn total(widths: &[(usize, usize)]) -> usize {
    let sum: usize = widths.iter().map(|(_, width)| width).sum();
    sum + GAP * widths.len().saturating_sub(1)
}

/// Narrows the widest columns for which `floor` allows it until `width` is reached.
fn narrow(widths: &mut [(usize, usize)], width: usize, floor: impl Fn(usize) -> usize) {
    while total(widths) > width {
        let narrowable = widths
            .iter_mut()
            .filter(|(index, has)| *has > floor(*index));
        match narrowable.max_by_key(|(_, has)| *has) {
            Some((_, has)) => *has -= 1,
            None => return,
        }
    }
}

/// Index and width of the columns that are shown.
fn fit(heads: &[Head], natural: &[usize], width: Option<usize>) -> Vec<(usize, usize)> {
    let mut shown: Vec<(usize, usize)> = natural.iter().copied().enumerate().collect();
    let Some(width) = width else {
        return shown;
    };
    // Numbers, and what names the object, are not cut while others can be.
    let floor = |index: usize| match heads[index].right || heads[index].kept {
        true => natural[index],
        false => CUT_TO.max(heads[index].header.width()),
    };
    loop {
        let mut tried = shown.clone();
        narrow(&mut tried, width, floor);
        if total(&tried) <= width {
            return tried;
        }
        match shown.iter().rposition(|(index, _)| !heads[*index].kept) {
            Some(last) => {
                shown.remove(last);
            }
            None => break,
        }
    }
    narrow(&mut shown, width, |index| {
        if heads[index].right {
            natural[index]
        } else {
            1
        }
    });
    narrow(&mut shown, width, |_| 1);
    // A terminal narrower than one cell a column.
    while total(&shown) > width && shown.len() > 1 {
        shown.pop();
    }
    shown
}

/// The lines of a table, each with its line end, the header first. Control characters are escaped.
pub fn layout(heads: &[Head], rows: &[Vec<String>], width: Option<usize>, colours: bool) -> String {
    let escaped = |row: &Vec<String>| -> Vec<String> {
        row.iter().map(|cell| visible::cell(cell).into()).collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(escaped).collect();
    let widest = |(index, head): (usize, &Head)| {
        let cells = rows.iter().filter_map(|row| row.get(index));
        let widest = cells.map(|cell| cell.width()).max();
        widest.unwrap_or(0).max(head.header.width())
    };
    let natural: Vec<usize> = heads.iter().enumerate().map(widest).collect();
    let shown = fit(heads, &natural, width);
    let line = |cells: &dyn Fn(usize) -> String, colours: bool| {
        let mut line = String::new();
        let mut blank = 0;
        for (place, &(index, columns)) in shown.iter().enumerate() {
            let cell = cut(&cells(index), columns);
            let rest = columns.saturating_sub(cell.width());
            let (before, after) = match heads[index].right {
                true => (rest, 0),
                false => (0, rest),
            };
            let gap = if place == 0 { 0 } else { GAP };
            blank += gap + before;
            if !cell.is_empty() {
                line.push_str(&" ".repeat(blank));
                match colours && heads[index].state {
                    true => line.push_str(&colour::of_state(&cell, &cells(index))),
                    false => line.push_str(&cell),
                }
                blank = 0;
            }
            blank += after;
        }
        line + "\n"
    };
    let mut text = line(&|index| heads[index].header.clone(), false);
    for row in &rows {
        text += &line(
            &|index| row.get(index).cloned().unwrap_or_default(),
            colours,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads() -> Vec<Head> {
        let head = |header: &str, right, kept, state| Head {
            header: header.to_owned(),
            right,
            kept,
            state,
        };
        vec![
            head("VOLUME", false, true, false),
            head("SIZE", true, false, false),
            head("STATE", false, true, true),
            head("NOTE", false, false, false),
            head("LBA", true, false, false),
        ]
    }

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 5]| cells.map(str::to_owned).to_vec();
        vec![
            row(["tank/vm1", "4 GiB", "online", &"long ".repeat(20), "512"]),
            row(["tank/漢字", "16 GiB", "failed", "", "4096"]),
        ]
    }

    #[test]
    fn nothing_is_cut_without_a_width_and_columns_are_aligned() {
        let mut short = rows();
        short[0][3] = "x".to_owned();
        let text = layout(&heads(), &short, None, false);
        assert_eq!(
            text,
            "VOLUME       SIZE  STATE   NOTE   LBA\n\
             tank/vm1    4 GiB  online  x      512\n\
             tank/漢字  16 GiB  failed        4096\n"
        );
        let long = layout(&heads(), &rows(), None, false);
        assert!(long.contains(&"long ".repeat(20)), "{long}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 1..140 {
            let text = layout(&heads(), &rows(), Some(width), false);
            for line in text.lines() {
                assert!(line.width() <= width, "{width}: {line}");
            }
            assert_eq!(text.lines().count(), 3);
        }
    }

    #[test]
    fn long_texts_are_cut_first_then_columns_omitted_and_names_kept() {
        let at = |width| layout(&heads(), &rows(), Some(width), false);
        let cut = at(80);
        assert!(cut.contains(CUT) && cut.contains("LBA"), "{cut}");
        let narrow = at(40);
        assert!(!narrow.contains("LBA"), "{narrow}");
        assert!(narrow.contains("tank/vm1 ") && narrow.contains("online"));
        let narrower = at(17);
        assert!(!narrower.contains("SIZE"), "{narrower}");
        assert!(narrower.contains("tank/vm1") && narrower.contains("online"));
    }

    #[test]
    fn states_have_colours_and_control_characters_are_escaped() {
        let mut rows = rows();
        rows[0][3] = "\u{1b}[2J\t".to_owned();
        let text = layout(&heads(), &rows, None, true);
        assert!(text.contains("\x1b[32monline\x1b[0m"), "{text}");
        assert!(text.contains("\x1b[31mfailed\x1b[0m"), "{text}");
        assert!(text.contains("\\u001b[2J\\u0009"), "{text}");
    }
}
