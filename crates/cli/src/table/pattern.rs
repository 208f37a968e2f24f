//! Patterns of names: `*` stands for any characters, `?` for one, neither for `/` or `@`.

/// A pattern, compared with a name like `tank/vm1@daily` and with each of its parts: `tank`
/// matches all that is in it, `vm*` the volume, `*@daily` or `daily` the snapshot.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b'/' | b'@')
}

/// Glob matching with one point to return to: the last `*`.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        let byte = name[read];
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, read));
                at += 1;
                continue;
            }
            Some(b'?') if !is_separator(byte) => {
                // One character, which may be several bytes.
                read += 1;
                while name.get(read).is_some_and(|byte| byte & 0xc0 == 0x80) {
                    read += 1;
                }
                at += 1;
                continue;
            }
            Some(wanted) if *wanted == byte => {
                (at, read) = (at + 1, read + 1);
                continue;
            }
            _ => {}
        }
        match star {
            Some((from, taken)) if !is_separator(name[taken]) => {
                star = Some((from, taken + 1));
                (at, read) = (from + 1, taken + 1);
            }
            _ => return false,
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

impl Pattern {
    /// A pattern.
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
        }
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it can match several names of one kind.
    pub fn is_wild(&self) -> bool {
        self.text.contains(['*', '?'])
    }

    /// Whether a name, or a part of it between separators, matches.
    pub fn matches(&self, name: &str) -> bool {
        let bytes = name.as_bytes();
        let ends = |at: &usize| *at == bytes.len() || is_separator(bytes[*at]);
        let begins = |at: &usize| *at == 0 || is_separator(bytes[*at - 1]);
        let starts = (0..bytes.len()).filter(begins);
        let mut parts =
            starts.flat_map(|from| (from..=bytes.len()).filter(ends).map(move |to| (from, to)));
        parts.any(|(from, to)| matches(self.text.as_bytes(), &bytes[from..to]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_matches_a_name_or_its_parts() {
        for (pattern, name, expected) in [
            ("vm*", "tank/vm1", true),
            ("vm*", "tank/db1", false),
            ("tank", "tank/vm1@a", true),
            ("tank/vm?", "tank/vm1@a", true),
            ("tank/vm?", "tank/vm12", false),
            ("*", "tank/vm1", true),
            ("t*1", "tank/vm1", false),
            ("*@daily-*", "tank/vm1@daily-3", true),
            ("*@daily-*", "tank/vm1@hourly-3", false),
            ("*/vm1", "tank/vm1", true),
            ("*/vm2", "tank/vm1", false),
            ("v*m*1", "vxmxm1", true),
            ("v*m*1", "vxmxm2", false),
            ("sda", "file:/dev/sda", true),
            ("m?", "mü", true),
            ("vm1", "vm11", false),
            ("", "vm1", false),
        ] {
            assert_eq!(
                Pattern::new(pattern).matches(name),
                expected,
                "{pattern} {name}"
            );
        }
    }
}
