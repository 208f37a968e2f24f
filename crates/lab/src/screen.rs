//! Terminal output: a progress line, tables, colours.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often a progress line is drawn on a terminal.
const DRAW_TIME: Duration = Duration::from_millis(200);

/// Whether stdout is a terminal.
pub fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// A line that is drawn over and over; nothing at all where there is no terminal.
pub struct Progress {
    drawn: Option<Instant>,
}

impl Progress {
    /// Nothing is drawn yet.
    pub fn new() -> Self {
        Self { drawn: None }
    }

    /// Whether it is time to draw again.
    pub fn is_due(&self) -> bool {
        is_terminal() && self.drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW_TIME)
    }

    /// Draws the line.
    pub fn draw(&mut self, text: &str) {
        self.drawn = Some(Instant::now());
        // A terminal that went away shows nothing; the measuring continues.
        let _ = write!(std::io::stdout(), "\r\x1b[2K{text}");
        let _ = std::io::stdout().flush();
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if self.drawn.take().is_some() {
            let _ = write!(std::io::stdout(), "\r\x1b[2K");
            let _ = std::io::stdout().flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// `[#####.....]` with `width` places.
pub fn bar(done: f64, width: usize) -> String {
    let full = (done.clamp(0.0, 1.0) * width as f64).round() as usize;
    format!("[{}{}]", "#".repeat(full), ".".repeat(width - full))
}

/// A number with commas between the thousands: `36,300`.
pub fn thousands(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Rows under a head, columns as wide as what they hold; the first is set left, the others right.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells
            .map(|cell| cell.chars().count())
            .chain([head[column].len()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[&str]| {
        let mut text = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let width = widths[column];
            match column {
                0 => text.push_str(&format!("  {cell:<width$}")),
                _ => text.push_str(&format!("  {cell:>width$}")),
            }
        }
        text.trim_end().to_owned() + "\n"
    };
    let mut text = line(head);
    for row in rows {
        text += &line(&row.iter().map(String::as_str).collect::<Vec<_>>());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in [
            (0.0, "0"),
            (999.4, "999"),
            (1000.0, "1,000"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(thousands(number), text);
        }
    }

    #[test]
    fn a_table_lines_up() {
        let rows = [
            vec!["a".to_owned(), "1".to_owned()],
            vec!["bcd".to_owned(), "23".to_owned()],
        ];
        assert_eq!(
            table(&["x", "long"], &rows),
            "  x    long\n  a       1\n  bcd    23\n"
        );
    }

    #[test]
    fn a_bar_is_never_longer_than_its_width() {
        for (done, text) in [(-1.0, "[....]"), (0.5, "[##..]"), (7.0, "[####]")] {
            assert_eq!(bar(done, 4), text);
        }
    }
}
