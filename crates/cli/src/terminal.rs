//! The terminal that the standard output may be: its width, and prose that fits it.

use unicode_width::UnicodeWidthStr;

/// Width of the terminal in columns; `None` if the standard output is not a terminal.
pub fn width() -> Option<usize> {
    let size = terminal_size::terminal_size_of(std::io::stdout());
    size.map(|(columns, _)| usize::from(columns.0))
}

/// A line of prose broken between words so that it fits `width`, the following lines indented. A
/// word that is too long stays whole: it may be a path to copy.
pub fn fold(line: &str, indent: usize, width: Option<usize>) -> String {
    let Some(width) = width.filter(|width| line.width() > *width && *width > indent) else {
        return line.to_owned();
    };
    let (head, rest) = match line.char_indices().nth(indent) {
        Some((at, _)) => line.split_at(at),
        None => (line, ""),
    };
    let mut folded = head.to_owned();
    let mut used = indent;
    for (index, word) in rest.split(' ').enumerate() {
        if index > 0 && used + 1 + word.width() > width {
            folded = format!("{}\n{}", folded.trim_end(), " ".repeat(indent));
            used = indent;
        } else if index > 0 {
            folded.push(' ');
            used += 1;
        }
        folded.push_str(word);
        used += word.width();
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_broken_between_words_with_an_indent() {
        for (line, indent, width, expected) in [
            ("used: a bb ccc", 6, Some(10), "used: a bb\n      ccc"),
            ("used: a bb ccc", 6, Some(14), "used: a bb ccc"),
            ("used: a bb ccc", 6, None, "used: a bb ccc"),
            ("used: abcdefgh i", 6, Some(9), "used: abcdefgh\n      i"),
            ("note: one two", 0, Some(9), "note: one\ntwo"),
        ] {
            assert_eq!(fold(line, indent, width), expected);
        }
    }
}
