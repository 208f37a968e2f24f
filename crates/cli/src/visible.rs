//! Escapes terminal control characters in untrusted text: names, paths, labels and messages may
//! have been chosen by an attacker who prepared a drive or runs a server.

use serde_json::Value;
use std::borrow::Cow;

/// Whether a terminal may interpret a character instead of showing it: control characters (ECMA-48,
/// 7 and 8 bits) and directional formatting (Unicode standard annex 9, section 2).
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, keeps: impl Fn(char) -> bool) -> Cow<'_, str> {
    let shown = |c: char| keeps(c) || !acts(c);
    if text.chars().all(shown) {
        return Cow::Borrowed(text);
    }
    let mut all = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match shown(c) {
            true => all.push(c),
            // Escape as in JSON, so that the meaning of JSON output is unchanged.
            false => all.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }
    Cow::Owned(all)
}

/// Lines safe for a terminal: control characters other than line ends are written as `\u001b`.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\n')
}

/// A cell of a table safe for a terminal and without line ends or tabs.
pub fn cell(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// Escapes the texts of a response, including line ends.
pub fn answer(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = escaped(text, |_| false) {
                *text = shown;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(answer),
        Value::Object(fields) => fields.values_mut().for_each(answer),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_characters_are_escaped() {
        assert_eq!(
            lines("a\u{1b}[2J\n\rb\u{9b}c\u{7f}"),
            "a\\u001b[2J\n\\u000db\\u009bc\\u007f"
        );
        assert_eq!(lines("\u{202e}txt"), "\\u202etxt");
        assert!(matches!(lines("ä 漢 █\n"), Cow::Borrowed(_)));
        let mut told = serde_json::json!({"items": [{"name": "a\nb\u{7}"}], "n": 1});
        answer(&mut told);
        assert_eq!(
            told,
            serde_json::json!({"items": [{"name": "a\\u000ab\\u0007"}], "n": 1})
        );
    }
}
