//! Keys of a terminal: bytes to keys (ECMA-48 cursor keys). Pure.

/// A key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// A character.
    Char(char),
    /// Enter.
    Enter,
    /// Escape, alone.
    Escape,
    /// Backspace.
    Backspace,
    /// Cursor up.
    Up,
    /// Cursor down.
    Down,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// To the first line.
    Home,
    /// To the last line.
    End,
}

/// Sequences after Escape.
const SEQUENCES: [(&str, Key); 12] = [
    ("[A", Key::Up),
    ("[B", Key::Down),
    ("OA", Key::Up),
    ("OB", Key::Down),
    ("[5~", Key::PageUp),
    ("[6~", Key::PageDown),
    ("[H", Key::Home),
    ("[F", Key::End),
    ("OH", Key::Home),
    ("OF", Key::End),
    ("[1~", Key::Home),
    ("[4~", Key::End),
];

/// Length of an unknown control sequence without its Escape.
fn unknown(rest: &str) -> usize {
    let body = rest.strip_prefix('[').unwrap_or_default();
    match body.find(|c: char| ('\u{40}'..='\u{7e}').contains(&c)) {
        Some(end) => end + 2,
        None => rest.len(),
    }
}

/// The keys of what one read returned.
pub fn keys(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.as_ref();
    let mut found = Vec::new();
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\x1b' => {
                let known = SEQUENCES
                    .iter()
                    .find(|(sequence, _)| rest.starts_with(sequence));
                match known {
                    Some((sequence, key)) => {
                        found.push(*key);
                        rest = &rest[sequence.len()..];
                    }
                    None if rest.starts_with('[') => rest = &rest[unknown(rest)..],
                    None => found.push(Key::Escape),
                }
            }
            '\r' | '\n' => found.push(Key::Enter),
            '\x7f' | '\x08' => found.push(Key::Backspace),
            c if !c.is_control() && c != char::REPLACEMENT_CHARACTER => found.push(Key::Char(c)),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_keys() {
        let cases: [(&[u8], Vec<Key>); 7] = [
            (b"q", vec![Key::Char('q')]),
            (b"\x1b", vec![Key::Escape]),
            (
                b"\x1b[A\x1b[6~x",
                vec![Key::Up, Key::PageDown, Key::Char('x')],
            ),
            (b"\x1b[1;5Cx", vec![Key::Char('x')]),
            (b"\x1b[", vec![]),
            (
                "ü\r\x7f".as_bytes(),
                vec![Key::Char('ü'), Key::Enter, Key::Backspace],
            ),
            (b"\xff\x01", vec![]),
        ];
        for (bytes, expected) in cases {
            assert_eq!(keys(bytes), expected, "{bytes:?}");
        }
    }
}
